// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/log_histogram.h"

#include "tools/loadgen/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace baton::loadgen {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// From microseconds to minutes, as latencies are.
std::vector<std::int64_t> some_durations(std::size_t count, std::uint64_t seed) {
  Draw draw(seed);
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(static_cast<std::int64_t>(3000 * std::exp(2.5 * draw.normal())));
  return all;
}

double exact_quantile_ms(std::vector<std::int64_t> all, double quantile) {
  std::ranges::sort(all);
  const double rank = std::ceil(quantile * static_cast<double>(all.size()));
  return static_cast<double>(all[static_cast<std::size_t>(std::max(rank, 1.0)) - 1]) / 1000;
}

class EveryPrecision : public testing::TestWithParam<unsigned> {};

TEST_P(EveryPrecision, QuantilesAreAsCloseAsPromisedToThoseOfASortedList) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const std::size_t count : {1U, 2U, 10U, 5000U}) {
      const auto all = some_durations(count, seed);
      LogHistogram histogram(GetParam());
      for (const std::int64_t one : all) histogram.add(microseconds(one));
      for (const double quantile : {0.0, 0.01, 0.5, 0.9, 0.99, 1.0}) {
        const double exact = exact_quantile_ms(all, quantile);
        const double allowed = exact / std::pow(2, GetParam()) + 0.001;
        EXPECT_NEAR(histogram.quantile_ms(quantile), exact, allowed)
            << "quantile " << quantile << " of " << count;
      }
      const double mean =
          static_cast<double>(std::accumulate(all.begin(), all.end(), std::int64_t{0})) /
          static_cast<double>(count) / 1000;
      EXPECT_NEAR(histogram.mean_ms(), mean, 1e-6 * mean + 1e-9);
      EXPECT_EQ(histogram.least_ms(), static_cast<double>(*std::ranges::min_element(all)) / 1000);
      EXPECT_EQ(histogram.most_ms(), static_cast<double>(*std::ranges::max_element(all)) / 1000);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPrecision, testing::Values(3U, 7U));

TEST(LogHistogram, MergedIsTheSameAsAllInOne) {
  const auto all = some_durations(3000, 9);
  LogHistogram one;
  std::vector<LogHistogram> parts(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    one.add(microseconds(all[i]));
    parts[i * i % 3].add(microseconds(all[i]));
  }
  LogHistogram merged;
  for (const LogHistogram& part : parts) merged.merge(part);
  EXPECT_EQ(merged.count(), one.count());
  EXPECT_EQ(merged.least_ms(), one.least_ms());
  EXPECT_EQ(merged.most_ms(), one.most_ms());
  for (const double quantile : {0.1, 0.5, 0.99})
    EXPECT_EQ(merged.quantile_ms(quantile), one.quantile_ms(quantile));
}

TEST(LogHistogram, BucketsCountEverythingBelowTheirBounds) {
  const auto all = some_durations(2000, 4);
  LogHistogram histogram;
  for (const std::int64_t one : all) histogram.add(microseconds(one));
  std::uint64_t seen = 0;
  double last = 0;
  for (const auto& bucket : histogram.buckets()) {
    EXPECT_GT(bucket.below_ms, last);
    last = bucket.below_ms;
    seen += bucket.count;
    const auto below = std::ranges::count_if(all, [&bucket](std::int64_t us) {
      return static_cast<double>(us) / 1000 < bucket.below_ms;
    });
    EXPECT_EQ(seen, static_cast<std::uint64_t>(below));
  }
  EXPECT_EQ(seen, 2000U);
}

TEST(LogHistogram, TakesWhateverItIsGivenInBoundedMemory) {
  LogHistogram histogram;
  EXPECT_EQ(histogram.quantile_ms(0.5), 0);
  histogram.add(nanoseconds(-5));
  histogram.add(nanoseconds::max());
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.least_ms(), 0);
  EXPECT_LE(histogram.buckets().size(), 2U);
  EXPECT_GT(histogram.most_ms(), 1e8);
}

TEST(LogHistogram, SmallDurationsAreExact) {
  // Below 2^7 microseconds each has a bucket of its own.
  LogHistogram histogram(7);
  for (int us = 0; us < 128; ++us) histogram.add(microseconds(us));
  for (int us = 0; us < 128; ++us) {
    const double quantile = (us + 1) / 128.0;
    EXPECT_EQ(histogram.quantile_ms(quantile), us / 1000.0) << us;
  }
  EXPECT_EQ(histogram.buckets().size(), 128U);
}

// By hand, for two buckets a doubling: 0 1 | 2 3 | 4-5 6-7 | 8-11 12-15 | 16-23 24-31.
TEST(LogHistogram, BucketsGrowWithWhatTheyHold) {
  const std::vector<std::pair<int, double>> bounds{
      {0, 0.001},  {1, 0.002},  {2, 0.003},  {3, 0.004},  {4, 0.006},
      {5, 0.006},  {6, 0.008},  {7, 0.008},  {8, 0.012},  {11, 0.012},
      {12, 0.016}, {16, 0.024}, {23, 0.024}, {24, 0.032}, {31, 0.032}};
  for (const auto& [us, below] : bounds) {
    LogHistogram histogram(1);
    histogram.add(microseconds(us));
    const auto buckets = histogram.buckets();
    ASSERT_EQ(buckets.size(), 1U);
    EXPECT_DOUBLE_EQ(buckets[0].below_ms, below) << us;
    EXPECT_EQ(buckets[0].count, 1U);
  }
}

TEST(LogHistogram, OneDurationIsEveryQuantile) {
  for (const std::int64_t us : {0L, 1L, 999L, 123'456'789L}) {
    LogHistogram histogram(3);
    histogram.add(microseconds(us));
    for (const double quantile : {0.0, 0.001, 0.5, 1.0}) {
      EXPECT_EQ(histogram.quantile_ms(quantile), static_cast<double>(us) / 1000);
    }
    EXPECT_EQ(histogram.mean_ms(), static_cast<double>(us) / 1000);
  }
}

TEST(LogHistogram, PartsOfAMicrosecondCountInTheMeanAlone) {
  LogHistogram histogram;
  histogram.add(nanoseconds(500));
  histogram.add(nanoseconds(1'500));
  EXPECT_DOUBLE_EQ(histogram.mean_ms(), 0.001);
  EXPECT_EQ(histogram.least_ms(), 0);
  EXPECT_EQ(histogram.most_ms(), 0.001);
}

TEST(LogHistogram, AQuantileIsTheFirstThatCoversItsShare) {
  LogHistogram histogram;
  for (int i = 0; i < 10; ++i) histogram.add(microseconds(10 * (i + 1)));
  EXPECT_EQ(histogram.quantile_ms(0.1), 0.01);
  EXPECT_EQ(histogram.quantile_ms(0.10001), 0.02);
  EXPECT_EQ(histogram.quantile_ms(0.5), 0.05);
  EXPECT_EQ(histogram.quantile_ms(0.9), 0.09);
  EXPECT_EQ(histogram.quantile_ms(0.91), 0.1);
  EXPECT_EQ(histogram.quantile_ms(0.99), 0.1);
}

TEST(LogHistogram, MergesWithNothingInEitherDirection) {
  LogHistogram full;
  full.add(microseconds(7));
  LogHistogram empty;
  empty.merge(LogHistogram());
  EXPECT_EQ(empty.count(), 0U);
  EXPECT_EQ(empty.mean_ms(), 0);
  full.merge(empty);
  EXPECT_EQ(full.count(), 1U);
  EXPECT_EQ(full.least_ms(), 0.007);  // not that of nothing, which is 0
  empty.merge(full);
  EXPECT_EQ(empty.least_ms(), 0.007);
  EXPECT_EQ(empty.most_ms(), 0.007);
}

TEST(LogHistogram, MergesShortAndLongOnes) {
  LogHistogram brief;
  LogHistogram lengthy;
  brief.add(microseconds(1));
  lengthy.add(std::chrono::hours(1));
  LogHistogram one = brief;
  one.merge(lengthy);
  LogHistogram other = lengthy;
  other.merge(brief);
  for (const LogHistogram& merged : {one, other}) {
    EXPECT_EQ(merged.count(), 2U);
    EXPECT_EQ(merged.least_ms(), 0.001);
    EXPECT_EQ(merged.most_ms(), 3'600'000);
    EXPECT_EQ(merged.quantile_ms(0.5), 0.001);
  }
}

}  // namespace
}  // namespace baton::loadgen
