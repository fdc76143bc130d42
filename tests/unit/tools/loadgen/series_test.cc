// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/series.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace baton::loadgen
