// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/error.h"

#include "core/result.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace baton {
namespace {

constexpr const char* kPage = BATON_SOURCE_DIR "/docs/errors.md";
constexpr std::string_view kBegin =
    "<!-- made of src/core/error.cc by ./dev docs; do not edit -->\n\n";
constexpr std::string_view kEnd = "\n<!-- end -->\n";

std::string page() {
  std::ifstream in(kPage);
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

std::string as_markdown() {
  std::string rows =
      "| status | type | code | fault | retryable | meaning |\n|---|---|---|---|---|---|\n";
  for (const ErrorInfo& row : error_table()) {
    rows += fmt::format("| {} | `{}` | `{}` | {} | {} | {} |\n", row.http_status, row.type,
                        row.label, name(row.fault), row.retryable ? "yes" : "no", row.meaning);
  }
  return rows;
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
    // What has ended several workers is not offered to another.
    const bool ends_workers = row.code == Errc::PoisonRequest;
    EXPECT_EQ(row.retryable, row.fault == Fault::Engine && !ends_workers) << row.label;
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

TEST(Error, CarriesFiguresForPrograms) {
  Error error(Errc::QueueFull, "no");
  EXPECT_EQ(error.figures(), std::nullopt);
  error.with_figures(R"({"limit":3})");
  const Error copy = error;
  EXPECT_EQ(copy.figures(), R"({"limit":3})");
}

TEST(Error, KeepsWhatTheSystemSaidApartFromWhatClientsSee) {
  Error error(Errc::EngineUnreachable, "no");
  EXPECT_EQ(error.cause(), std::nullopt);
  error.with_cause(std::errc::connection_refused);
  const Error copy = error;
  EXPECT_EQ(copy.cause(), std::errc::connection_refused);
  EXPECT_EQ(copy.message(), "no");
  EXPECT_EQ(copy.http_status(), 502);
}

TEST(Result, CarriesTheErrorItFailedWith) {
  const Result<int> failed = fail(Errc::NotFound, "no such path");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::NotFound);
  EXPECT_EQ(failed.error().info().label, "not_found");
}

TEST(ErrorTable, SaysWhatEveryErrorMeansInWholeSentences) {
  for (const ErrorInfo& row : error_table()) {
    EXPECT_GT(row.meaning.size(), 20u) << row.label;
    EXPECT_TRUE(row.meaning.ends_with('.')) << row.label;
    EXPECT_EQ(row.meaning.find_first_of("|\n"), row.meaning.npos) << row.label;
  }
}

// With BATON_WRITE_DOCS set, which is what ./dev docs does, the page is brought up to date instead.
TEST(ErrorPage, HasTheTable) {
  std::string text = page();
  const auto begin = text.find(kBegin);
  const auto end = text.find(kEnd);
  ASSERT_NE(begin, text.npos);
  ASSERT_NE(end, text.npos);
  const auto at = begin + kBegin.size();
  ASSERT_LE(at, end);
  if (std::getenv("BATON_WRITE_DOCS") != nullptr) {
    text.replace(at, end - at, as_markdown());
    std::ofstream(kPage) << text;
    text = page();
  }
  EXPECT_TRUE(text.substr(at).starts_with(as_markdown() + std::string(kEnd)))
      << "docs/errors.md is not what src/core/error.cc says; run ./dev docs";
}

}  // namespace
}  // namespace baton
