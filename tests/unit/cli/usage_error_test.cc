// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/usage_error.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::cli {
namespace {

using testing::StartsWith;

// The message of a program with the commands serve and workers (add, drain).
std::string refused(const std::string& line) {
  CLI::App app("", "baton");
  app.require_subcommand(1);
  app.set_version_flag("--version", "1");
  CLI::App* serve = app.add_subcommand("serve");
  std::string text;
  serve->add_option("-c,--config", text);
  serve->add_option("--engine-url", text)->required();
  CLI::App* workers = app.add_subcommand("workers");
  workers->require_subcommand(0, 1);
  workers->add_option("--admin", text);
  workers->add_subcommand("add")->fallthrough();
  workers->add_subcommand("drain")->fallthrough();
  try {
    app.parse(line);
  } catch (const CLI::ParseError& problem) {
    return usage_error(app, problem);
  }
  return "accepted";
}

TEST(UsageError, AMistypedOptionGetsTheNearest) {
  EXPECT_EQ(refused("serve --confg x"),
            "baton serve: unknown option '--confg'; did you mean --config?\n"
            "See 'baton serve --help'.\n");
  EXPECT_THAT(refused("serve --confg=x"), StartsWith("baton serve: unknown option '--confg'; did"));
  EXPECT_THAT(refused("--vers"),
              StartsWith("baton: unknown option '--vers'; did you mean --version?"));
  EXPECT_THAT(refused("serve --bogus"), StartsWith("baton serve: unknown option '--bogus'\n"));
}

TEST(UsageError, AMistypedOptionComesBeforeOneThatIsMissing) {
  EXPECT_THAT(refused("serve --engine-ur x"), testing::HasSubstr("did you mean --engine-url?"));
  EXPECT_THAT(refused("serve"), StartsWith("baton serve: --engine-url is required\n"));
}

TEST(UsageError, AnOptionOfAnOuterCommandIsKnownWhereItMayFollow) {
  EXPECT_THAT(refused("workers add --admn x"), testing::HasSubstr("did you mean --admin?"));
}

TEST(UsageError, AnOptionBeforeItsCommandIsSaidToBelongBehind) {
  EXPECT_THAT(refused("--config x serve"),
              StartsWith("baton: --config belongs after 'baton serve'"));
}

TEST(UsageError, AMistypedCommandGetsTheNearestOrTheList) {
  EXPECT_THAT(refused("srve --config x"),
              StartsWith("baton: unknown command 'srve'; did you mean serve?"));
  EXPECT_THAT(refused("bogus"),
              StartsWith("baton: unknown command 'bogus'; there are serve, workers\n"));
  EXPECT_THAT(refused("workers drian x"),
              StartsWith("baton workers: unknown command 'drian'; did you mean drain?"));
}

TEST(UsageError, AWordTooManyIsNamed) {
  EXPECT_THAT(refused("serve --engine-url x extra"),
              StartsWith("baton serve: unexpected argument 'extra'\n"));
  EXPECT_THAT(refused("serve --engine-url x -"),
              StartsWith("baton serve: unexpected argument '-'\n"));
}

}  // namespace
}  // namespace baton::cli
