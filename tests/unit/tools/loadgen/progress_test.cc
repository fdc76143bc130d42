// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::loadgen {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Status at(milliseconds elapsed, std::uint64_t ended) {
  return {.elapsed = elapsed,
          .sent = ended + 3,
          .ended = ended,
          .in_flight = 3,
          .refused = 2,
          .failed = 1,
          .ttft_p50_ms = 40,
          .ttft_p99_ms = 90};
}

TEST(Progress, SaysNothingWhereItIsToBeQuiet) {
  Progress progress(Progress::Style::Quiet, {.requests = 10, .duration = {}}, 80);
  EXPECT_EQ(progress.tell(at(seconds(100), 5)), "");
  EXPECT_EQ(progress.end(), "");
}

TEST(Progress, IsALineNowAndThenWhereThereIsNoTerminal) {
  Progress progress(Progress::Style::Lines, {.requests = 100, .duration = {}}, 0);
  int lines = 0;
  std::string last;
  for (int tenth = 0; tenth <= 200; ++tenth) {
    const std::string line =
        progress.tell(at(milliseconds(100 * tenth), static_cast<std::uint64_t>(tenth)));
    if (line.empty()) continue;
    ++lines;
    last = line;
  }
  EXPECT_EQ(lines, 4);
  EXPECT_EQ(last,
            "20 s  200/100 done  10.0/s  3 running  TTFT p50 40 p99 90 ms  2 refused  1 failed\n");
}

TEST(Progress, IsDrawnOverItselfOnATerminalAndNeverWiderThanIt) {
  Progress progress(Progress::Style::Bar, {.requests = 10, .duration = {}}, 60);
  const std::string line = progress.tell(at(seconds(1), 5));
  EXPECT_TRUE(line.starts_with("\r[##########..........]  50 %")) << line;
  EXPECT_TRUE(line.ends_with("\x1b[K"));
  EXPECT_LE(line.size(), 60U + 3);
  EXPECT_EQ(progress.tell(at(milliseconds(1050), 6)), "");  // too soon
  EXPECT_EQ(progress.end(), "\r\x1b[K");
}

TEST(Progress, IsTheShareOfWhatEndsTheRunFirst) {
  const Progress both(Progress::Style::Bar, {.requests = 100, .duration = seconds(10)}, 0);
  EXPECT_EQ(both.share(at(seconds(5), 10)), 0.5);
  EXPECT_EQ(both.share(at(seconds(5), 80)), 0.8);
  EXPECT_EQ(both.share(at(seconds(50), 80)), 1);
}

TEST(Progress, WithoutAGoalNothingIsDone) {
  const Progress progress(Progress::Style::Bar, {.requests = {}, .duration = {}}, 0);
  EXPECT_EQ(progress.share(at(seconds(100), 1000)), 0);
  const Progress none(Progress::Style::Bar, {.requests = 0, .duration = seconds(0)}, 0);
  EXPECT_EQ(none.share(at(seconds(100), 1000)), 0);
}

TEST(Progress, SaysHowManyThereAreToBeOnlyWhereThatIsKnown) {
  Progress progress(Progress::Style::Lines, {.requests = {}, .duration = seconds(60)}, 0);
  EXPECT_EQ(progress.tell(at(seconds(6), 30)),
            "6 s  30 done  5.0/s  3 running  TTFT p50 40 p99 90 ms  2 refused  1 failed\n");
}

TEST(Progress, TheRateIsThatSinceTheLastLine) {
  Progress progress(Progress::Style::Lines, {.requests = {}, .duration = {}}, 0);
  EXPECT_THAT(progress.tell(at(seconds(5), 50)), HasSubstr(" 10.0/s "));
  EXPECT_EQ(progress.tell(at(milliseconds(9'999), 90)), "");
  EXPECT_THAT(progress.tell(at(seconds(10), 60)), HasSubstr(" 2.0/s "));
  EXPECT_THAT(progress.tell(at(seconds(20), 60)), HasSubstr(" 0.0/s "));
}

TEST(Progress, TheRateOfABarMovesByAFifth) {
  Progress progress(Progress::Style::Bar, {.requests = {}, .duration = {}}, 0);
  EXPECT_THAT(progress.tell(at(seconds(1), 100)), HasSubstr(" 100.0/s "));
  // No more came: from 100 a fifth of the way to 0.
  EXPECT_THAT(progress.tell(at(seconds(2), 100)), HasSubstr(" 80.0/s "));
  EXPECT_THAT(progress.tell(at(seconds(3), 100)), HasSubstr(" 64.0/s "));
}

TEST(Progress, ABarIsEmptyAtFirstAndFullAtTheEnd) {
  Progress progress(Progress::Style::Bar, {.requests = 10, .duration = {}}, 0);
  EXPECT_THAT(progress.tell(at(milliseconds(0), 0)), HasSubstr("[....................]   0 %"));
  EXPECT_THAT(progress.tell(at(seconds(1), 1)), HasSubstr("[##..................]  10 %"));
  EXPECT_THAT(progress.tell(at(seconds(2), 9)), HasSubstr("[##################..]  90 %"));
  EXPECT_THAT(progress.tell(at(seconds(3), 10)), HasSubstr("[####################] 100 %"));
  EXPECT_THAT(progress.tell(at(seconds(4), 12)), HasSubstr("[####################] 100 %"));
}

TEST(Progress, ALineOnATerminalIsCutOneColumnBeforeItsEnd) {
  for (const unsigned width : {2U, 10U, 40U}) {
    Progress progress(Progress::Style::Bar, {.requests = 10, .duration = {}}, width);
    // Between the return to the line's begin and the order to clear its rest.
    EXPECT_EQ(progress.tell(at(seconds(1), 5)).size(), 1 + (width - 1) + 3);
  }
}

TEST(Progress, LinesLeaveNothingToBeCleared) {
  EXPECT_EQ(Progress(Progress::Style::Lines, {.requests = 1, .duration = {}}, 0).end(), "");
}

}  // namespace
}  // namespace baton::loadgen
