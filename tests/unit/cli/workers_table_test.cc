// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/workers_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace baton::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

Json worker(const std::string& name, const Json& cache) {
  return {{"model", "m"},      {"namespace", "default"}, {"role", "decode"},
          {"number", 1},       {"name", name},           {"engine", "vllm"},
          {"state", "ready"},  {"in_flight", 3},         {"last_success_seconds_ago", 0.2},
          {"kv_cache", cache}, {"reason", nullptr}};
}

Json cache(const std::string& source, const std::string& feed, std::uint64_t blocks = 0) {
  return {{"source", source}, {"feed", feed}, {"block_size", 16}, {"blocks", blocks}};
}

std::vector<std::string> lines_of(const std::vector<Json>& workers, TableStyle style = {}) {
  const auto table = workers_table(Json{{"workers", workers}}.dump(), style);
  EXPECT_TRUE(table);
  std::vector<std::string> lines(1);
  for (const char c : table.value_or("")) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

// What the table says of the cache of one worker.
std::string cell(const Json& cache) {
  const auto lines = lines_of({worker("w", cache)});
  const std::size_t column = lines.at(0).find("CACHE");
  EXPECT_NE(column, std::string::npos);
  return lines.at(1).substr(column);
}

TEST(WorkersTable, ShowsALinePerWorkerAndCountsThem) {
  Json broken = worker("b", nullptr);
  broken["state"] = "unreachable";
  broken["reason"] = "it does not answer";
  const auto lines = lines_of({broken, worker("a", nullptr)});
  EXPECT_THAT(lines.at(0), StartsWith("MODEL  NAMESPACE  ROLE"));
  EXPECT_THAT(lines.at(1), HasSubstr("  a  "));
  EXPECT_THAT(lines.at(2), EndsWith("off    it does not answer"));
  EXPECT_EQ(lines.at(4), "2 workers: 1 ready, 1 unreachable");
}

TEST(WorkersTable, SaysByWhoseWordACacheIsKnown) {
  EXPECT_EQ(cell(cache("events", "live", 0)), "events 0");
  EXPECT_EQ(cell(cache("decisions", "none")), "decisions");
  EXPECT_EQ(cell(cache("decisions", "waiting")), "decisions");
  EXPECT_EQ(cell(cache("nothing", "waiting")), "waiting");
  EXPECT_EQ(cell(cache("nothing", "none")), "none");
  EXPECT_EQ(cell(nullptr), "off");
}

TEST(WorkersTable, MarksFeedsThatAreNotWell) {
  EXPECT_EQ(cell(cache("decisions", "silent", 5)), "silent!");
  EXPECT_EQ(cell(cache("nothing", "broken")), "broken!");
  EXPECT_EQ(cell(cache("decisions", "mixed", 5)), "mixed!");
  EXPECT_EQ(cell(cache("decisions", "unreachable")), "unreachable!");
  EXPECT_EQ(cell(cache("nothing", "live", 5)), "wrong!");
}

TEST(WorkersTable, SaysWhyAFeedIsNotWellUnlessTheWorkerItselfIsNot) {
  Json feed = cache("decisions", "unreachable");
  feed["reason"] = "cannot connect";
  Json one = worker("w", feed);
  EXPECT_THAT(lines_of({one}).at(1), EndsWith("unreachable!  cannot connect"));
  one["reason"] = "it does not answer";
  EXPECT_THAT(lines_of({one}).at(1), EndsWith("unreachable!  it does not answer"));
}

TEST(WorkersTable, ShortensCounts) {
  const auto shown = [](std::uint64_t blocks) { return cell(cache("events", "live", blocks)); };
  EXPECT_EQ(shown(999), "events 999");
  EXPECT_EQ(shown(1'000), "events 1.0k");
  EXPECT_EQ(shown(1'299), "events 1.2k");
  EXPECT_EQ(shown(9'999), "events 9.9k");
  EXPECT_EQ(shown(15'900), "events 15k");
  EXPECT_EQ(shown(999'999), "events 999k");
  EXPECT_EQ(shown(3'450'000), "events 3.4M");
}

TEST(WorkersTable, ShowsARouterThatDoesNotTellOfCaches) {
  Json old = worker("w", nullptr);
  old.erase("kv_cache");
  EXPECT_THAT(lines_of({old}).at(1), EndsWith("off"));
}

TEST(WorkersTable, WhatOthersWroteCannotMoveTheCursor) {
  Json bad = worker("w", cache("nothing", "a\x1b[2J"));
  bad["reason"] = "x\ny";
  const auto lines = lines_of({bad});
  EXPECT_THAT(lines.at(1), EndsWith("x y"));
  EXPECT_THAT(lines.at(1), Not(HasSubstr("\x1b")));
}

TEST(WorkersTable, ShortensReasonsToTheTerminal) {
  Json one = worker("w", nullptr);
  one["reason"] = std::string(200, 'x');
  EXPECT_EQ(lines_of({one}, {.colour = false, .width = 120}).at(1).size(), 120U);
}

TEST(WorkersTable, RefusesWhatIsNoAnswerOfARouter) {
  for (const char* bad : {"", "{}", R"({"workers":[{}]})", R"({"workers":3})"})
    EXPECT_FALSE(workers_table(bad, {})) << bad;
}

}  // namespace
}  // namespace baton::cli
