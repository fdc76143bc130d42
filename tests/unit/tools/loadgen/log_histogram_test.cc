// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/log_histogram.h"

#include "tools/loadgen/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
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

}  // namespace
}  // namespace baton::loadgen
