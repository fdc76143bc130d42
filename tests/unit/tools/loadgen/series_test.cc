// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/series.h"

#include "tools/loadgen/draw.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

namespace baton::loadgen {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t all_sent(const Series& series) {
  std::uint64_t sum = 0;
  for (const Moment& moment : series.moments()) sum += moment.sent;
  return sum;
}

TEST(Series, CountsByTheSecond) {
  Series series;
  ++series.at(milliseconds(0)).sent;
  ++series.at(milliseconds(999)).sent;
  ++series.at(milliseconds(2000)).sent;
  ASSERT_EQ(series.moments().size(), 3U);
  EXPECT_EQ(series.moments()[0].sent, 2U);
  EXPECT_EQ(series.moments()[1].sent, 0U);
  EXPECT_EQ(series.moments()[2].sent, 1U);
}

TEST(Series, StaysBoundedAndLosesNothingWhenARunIsLong) {
  Series series;
  constexpr std::int64_t kSeconds = 30'000;
  for (std::int64_t i = 0; i < kSeconds; ++i) {
    ++series.at(seconds(i)).sent;
    series.at(seconds(i)).ttft.add(milliseconds(1));
  }
  EXPECT_LE(series.moments().size(), Series::kMost);
  EXPECT_EQ(series.width(), seconds(16));
  EXPECT_EQ(all_sent(series), static_cast<std::uint64_t>(kSeconds));
  for (std::size_t i = 0; i + 1 < series.moments().size(); ++i) {
    EXPECT_EQ(series.moments()[i].sent, 16U);
    EXPECT_EQ(series.moments()[i].ttft.count(), 16U);
  }
}

TEST(Series, MergesWhateverTheWidths) {
  Series wide;
  for (std::int64_t i = 0; i < 4000; ++i) ++wide.at(seconds(i)).sent;
  Series narrow;
  for (std::int64_t i = 0; i < 10; ++i) ++narrow.at(seconds(i)).sent;
  Series one = wide;
  one.merge(narrow);
  Series other = narrow;
  other.merge(wide);
  for (const Series& merged : {one, other}) {
    EXPECT_EQ(merged.width(), seconds(2));
    EXPECT_EQ(all_sent(merged), 4010U);
    EXPECT_EQ(merged.moments()[0].sent, 4U);
    EXPECT_EQ(merged.moments()[5].sent, 2U);
  }
}

TEST(Series, ATimeBeforeTheStartIsTheStart) {
  Series series;
  ++series.at(milliseconds(-500)).sent;
  ++series.at(seconds(-3)).sent;
  ASSERT_EQ(series.moments().size(), 1U);
  EXPECT_EQ(series.moments()[0].sent, 2U);
}

TEST(Series, WidensAtItsLastMomentAndNotBefore) {
  Series series;
  ++series.at(seconds(3599)).sent;
  EXPECT_EQ(series.width(), seconds(1));
  EXPECT_EQ(series.moments().size(), Series::kMost);
  ++series.at(seconds(3600)).sent;
  EXPECT_EQ(series.width(), seconds(2));
  ASSERT_EQ(series.moments().size(), 1801U);
  EXPECT_EQ(series.moments()[1799].sent, 1U);
  EXPECT_EQ(series.moments()[1800].sent, 1U);
}

TEST(Series, OneLateEventWidensItAsOftenAsNeeded) {
  Series series;
  ++series.at(seconds(0)).sent;
  ++series.at(seconds(5)).sent;
  ++series.at(std::chrono::hours(24 * 14)).sent;  // 1209600 s: 512 seconds a moment
  EXPECT_EQ(series.width(), seconds(512));
  EXPECT_LE(series.moments().size(), Series::kMost);
  EXPECT_EQ(series.moments()[0].sent, 2U);
  EXPECT_EQ(series.moments()[1209600 / 512].sent, 1U);
}

TEST(Moment, MergesEachOfItsFigures) {
  Moment one{.sent = 1, .completed = 2, .refused = 3, .failed = 4};
  one.output_tokens = 5;
  one.prompt_tokens = 6;
  one.cached_tokens = 7;
  one.ttft.add(milliseconds(1));
  Moment other = one;
  other.itl.add(milliseconds(2));
  one.merge(other);
  EXPECT_EQ(one.sent, 2U);
  EXPECT_EQ(one.completed, 4U);
  EXPECT_EQ(one.refused, 6U);
  EXPECT_EQ(one.failed, 8U);
  EXPECT_EQ(one.output_tokens, 10U);
  EXPECT_EQ(one.prompt_tokens, 12U);
  EXPECT_EQ(one.cached_tokens, 14U);
  EXPECT_EQ(one.ttft.count(), 2U);
  EXPECT_EQ(one.itl.count(), 1U);
}

// Events at any times in several series: merged, each is in the moment that its time is in.
TEST(Series, MergedIsTheSameAsAllInOne) {
  Draw draw(41);
  for (int round = 0; round < 40; ++round) {
    std::vector<Series> parts(3);
    std::vector<std::uint64_t> times;
    const std::uint64_t longest = std::uint64_t{10} << (2 * draw.below(6));
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t second = draw.below((1 + longest) >> draw.below(4));
      times.push_back(second);
      ++parts[draw.below(3)].at(seconds(second)).sent;
    }
    Series merged = parts[0];
    merged.merge(parts[1]);
    merged.merge(parts[2]);
    std::map<std::uint64_t, std::uint64_t> expected;
    const auto width = static_cast<std::uint64_t>(merged.width().count());
    for (const std::uint64_t second : times) ++expected[second / width];
    for (std::size_t i = 0; i < merged.moments().size(); ++i) {
      const auto found = expected.find(i);
      ASSERT_EQ(merged.moments()[i].sent, found == expected.end() ? 0 : found->second);
    }
    EXPECT_EQ(all_sent(merged), times.size());
  }
}

}  // namespace
}  // namespace baton::loadgen
