// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/one_of.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <string>

namespace baton::config {
namespace {

TEST(OneOf, RefusesAnyOtherValueWithTheNearest) {
  const CLI::Validator engine = one_of({"vllm", "sglang", "trtllm"});
  EXPECT_EQ(engine(std::string("sglang")), "");
  EXPECT_EQ(engine(std::string("vlm")), "unknown 'vlm'; did you mean vllm?");
  EXPECT_EQ(engine(std::string("other")), "unknown 'other'; write one of vllm, sglang, trtllm");
  EXPECT_EQ(engine(std::string("")), "unknown ''; write one of vllm, sglang, trtllm");
}

TEST(OneOf, HelpListsTheValues) { EXPECT_EQ(one_of({"on", "off"}).get_description(), "{on,off}"); }

TEST(OneOf, TheCaseOfLettersCounts) {
  const CLI::Validator engine = one_of({"vllm", "sglang"});
  EXPECT_EQ(engine(std::string("VLLM")), "unknown 'VLLM'; did you mean vllm?");
  EXPECT_EQ(engine(std::string("vllm ")), "unknown 'vllm '; did you mean vllm?");
}

TEST(OneOf, RefusesOnACommandLineAndNamesTheOption) {
  const auto parse = [](const std::string& value) -> std::string {
    CLI::App app;
    std::string engine = "none";
    app.add_option("--engine", engine)->check(one_of({"vllm", "sglang"}));
    try {
      app.parse("--engine " + value);
    } catch (const CLI::ParseError& e) {
      return e.what();
    }
    return engine;
  };
  EXPECT_EQ(parse("sglang"), "sglang");
  EXPECT_EQ(parse("sglnag"), "--engine: unknown 'sglnag'; did you mean sglang?");
}

}  // namespace
}  // namespace baton::config
