// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

namespace baton::telemetry {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::EndsWith;
using testing::MatchesRegex;

constexpr const char* kTime = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z";

std::string log_line(Format format, std::string_view event, Logger::Fields fields) {
  std::string out;
  Logger(format, Level::Debug, out).info(event, fields);
  return out;
}

TEST(Logger, WritesOneJsonObjectPerLine) {
  const std::string line = log_line(
      Format::Json, "request",
      {{"model", "demo"}, {"tokens", std::int64_t{-42}}, {"seconds", 0.25}, {"stream", true}});
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_THAT(line, EndsWith("}\n"));
  const json parsed = json::parse(line);
  EXPECT_THAT(parsed["ts"].get<std::string>(), MatchesRegex(kTime));
  EXPECT_EQ(parsed["level"], "info");
  EXPECT_EQ(parsed["event"], "request");
  EXPECT_EQ(parsed["model"], "demo");
  EXPECT_EQ(parsed["tokens"], -42);
  EXPECT_EQ(parsed["seconds"], 0.25);
  EXPECT_EQ(parsed["stream"], true);
  EXPECT_EQ(parsed.size(), 7u);
}

TEST(Logger, WritesAlignedTextForPeople) {
  const std::string line = log_line(Format::Human, "request",
                                    {{"model", "demo"},
                                     {"agent", "va lue"},
                                     {"tokens", std::int64_t{7}},
                                     {"stream", false},
                                     {"none", ""}});
  EXPECT_THAT(line, MatchesRegex(std::string(kTime) + " info  request  model=demo "
                                                      "agent=\"va lue\" tokens=7 stream=false "
                                                      "none=\"\"\n"));
}

TEST(Logger, EventsStandInOneColumnAtEveryLevel) {
  std::string out;
  Logger log(Format::Human, Level::Debug, out);
  log.debug("here");
  log.info("here");
  log.warning("here");
  log.error("here");
  std::istringstream lines(out);
  std::vector<std::size_t> columns;
  for (std::string line; std::getline(lines, line);) columns.push_back(line.find("here"));
  EXPECT_THAT(columns, ElementsAre(columns[0], columns[0], columns[0], columns[0]));
}

TEST(Logger, NoValueForgesALineOrAField) {
  const std::string_view evil =
      "x\n2026-01-01T00:00:00.000Z error \"paid\" admin=true\r\x1b[1A\xff";
  for (const Format format : {Format::Json, Format::Human}) {
    const std::string line = log_line(format, "event\nforged", {{"path", evil}});
    EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
    EXPECT_EQ(line.find('\r'), std::string::npos);
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
  const json parsed = json::parse(log_line(Format::Json, "e", {{"path", "a\",\"admin\":\"yes"}}));
  EXPECT_EQ(parsed["path"], "a\",\"admin\":\"yes");
  EXPECT_FALSE(parsed.contains("admin"));
  EXPECT_THAT(log_line(Format::Human, "e", {{"path", "a=b"}}), EndsWith("  path=\"a=b\"\n"));
}

TEST(Logger, BracesInAValueAreNotAFormat) {
  EXPECT_THAT(log_line(Format::Human, "{} %v {0}", {{"k", "{}%n"}}),
              EndsWith("{} %v {0}  k={}%n\n"));
}

TEST(Logger, ANumberThatJsonCannotHoldIsNull) {
  const json parsed = json::parse(log_line(Format::Json, "e",
                                           {{"nan", std::numeric_limits<double>::quiet_NaN()},
                                            {"inf", std::numeric_limits<double>::infinity()}}));
  EXPECT_TRUE(parsed["nan"].is_null());
  EXPECT_TRUE(parsed["inf"].is_null());
}

TEST(Logger, LeavesOutLinesBelowItsLevel) {
  std::string out;
  Logger log(Format::Json, Level::Warning, out);
  log.debug("a");
  log.info("b");
  EXPECT_EQ(out, "");
  EXPECT_FALSE(log.enabled(Level::Info));
  log.warning("c");
  log.error("d");
  EXPECT_EQ(std::ranges::count(out, '\n'), 2);
}

TEST(Logger, LinesOfSeveralThreadsStayWhole) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  std::string out;
  {
    Logger log(Format::Json, Level::Info, out);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < kLines; ++i) log.info("tick", {{"thread", std::int64_t{t}}});
      });
    }
  }
  std::istringstream lines(out);
  std::vector<int> seen(kThreads);
  for (std::string line; std::getline(lines, line);) {
    ++seen.at(json::parse(line)["thread"].get<std::size_t>());
  }
  EXPECT_THAT(seen, testing::Each(kLines));
}

}  // namespace
}  // namespace baton::telemetry
