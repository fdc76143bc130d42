// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/error.h"

#include "core/result.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace baton {
namespace {

std::string document() {
  std::ifstream in(BATON_SOURCE_DIR "/docs/errors.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::Client:
      return "client";
    case Fault::Engine:
      return "engine";
    case Fault::Us:
      return "us";
  }
  return "";
}

TEST(ErrorTable, LabelsAreUniqueAndFitForMetrics) {
  std::set<std::string_view> labels;
  for (const ErrorInfo& row : error_table()) {
    EXPECT_TRUE(labels.insert(row.label).second) << row.label;
    EXPECT_TRUE(std::regex_match(std::string(row.label), std::regex("[a-z_]+"))) << row.label;
  }
}

TEST(ErrorTable, StatusTellsWhoseFaultItIs) {
  for (const ErrorInfo& row : error_table()) {
    const bool client_status = row.http_status >= 400 && row.http_status < 500;
    EXPECT_EQ(client_status, row.fault == Fault::Client) << row.label;
    EXPECT_LT(row.http_status, 600) << row.label;
  }
}

TEST(ErrorTable, OnlyFaultsOfEnginesAreTriedElsewhere) {
  for (const ErrorInfo& row : error_table()) {
    EXPECT_EQ(row.retryable, row.fault == Fault::Engine) << row.label;
  }
}

TEST(Error, HasTheStatusOfItsKindUnlessTheEngineGaveOne) {
  Error error(Errc::EngineRejected, "no");
  EXPECT_EQ(error.http_status(), 400);
  error.with_status(422).with_param("messages").with_retry_after(std::chrono::seconds(3));
  EXPECT_EQ(error.http_status(), 422);
  EXPECT_EQ(error.param(), "messages");
  EXPECT_EQ(error.retry_after(), std::chrono::seconds(3));
  EXPECT_EQ(error.message(), "no");
}

TEST(Result, CarriesTheErrorItFailedWith) {
  const Result<int> failed = fail(Errc::NotFound, "no such path");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::NotFound);
  EXPECT_EQ(failed.error().info().label, "not_found");
}

TEST(ErrorDocument, HasARowWithAMeaningForEveryError) {
  const std::string text = document();
  for (const ErrorInfo& row : error_table()) {
    const std::string expected =
        fmt::format("\n| {} | `{}` | `{}` | {} | {} | ", row.http_status, row.type, row.label,
                    name(row.fault), row.retryable ? "yes" : "no");
    const auto at = text.find(expected);
    ASSERT_NE(at, text.npos) << "missing:" << expected;
    const std::string meaning =
        text.substr(at + expected.size(), text.find('\n', at + 1) - at - expected.size());
    EXPECT_GT(meaning.size(), 20u) << row.label;
    EXPECT_TRUE(meaning.ends_with(". |")) << meaning;
  }
}

TEST(ErrorDocument, HasNoOtherRows) {
  const std::string text = document();
  const std::regex row("\\n\\| [0-9]{3} \\|");
  const auto rows = std::distance(std::sregex_iterator(text.begin(), text.end(), row), {});
  EXPECT_EQ(static_cast<std::size_t>(rows), error_table().size());
}

}  // namespace
}  // namespace baton
