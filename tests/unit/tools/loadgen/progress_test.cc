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

Standing at(milliseconds elapsed, std::uint64_t ended) {
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

}  // namespace
}  // namespace baton::loadgen
