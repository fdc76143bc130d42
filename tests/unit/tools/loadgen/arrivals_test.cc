// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

namespace baton::loadgen {
namespace {

using std::chrono::microseconds;

std::vector<std::int64_t> times_of(ArrivalTimes times, std::size_t count) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(times.next().count());
  return all;
}

TEST(ArrivalSchedule, BeginsAtOnce) {
  for (const Arrivals kind : {Arrivals::Even, Arrivals::Poisson}) {
    for (const double rate : {0.001, 1.0, 1e6}) {
      EXPECT_EQ(ArrivalTimes(kind, rate, 5).next(), microseconds(0));
    }
  }
}

TEST(ArrivalSchedule, IsTheSameForTheSameSeedAlone) {
  const auto times = times_of(ArrivalTimes(Arrivals::Poisson, 50, 7), 200);
  EXPECT_EQ(times_of(ArrivalTimes(Arrivals::Poisson, 50, 7), 200), times);
  EXPECT_NE(times_of(ArrivalTimes(Arrivals::Poisson, 50, 8), 200), times);
  // Even ones know no chance.
  EXPECT_EQ(times_of(ArrivalTimes(Arrivals::Even, 50, 7), 200),
            times_of(ArrivalTimes(Arrivals::Even, 50, 8), 200));
}

TEST(ArrivalSchedule, NeverRunsBackwards) {
  for (const Arrivals kind : {Arrivals::Even, Arrivals::Poisson}) {
    const auto times = times_of(ArrivalTimes(kind, 1e5, 3), 20'000);
    EXPECT_TRUE(std::ranges::is_sorted(times));
  }
}

// A gap that is no whole number of microseconds: errors must not add up.
TEST(ArrivalSchedule, EvenTimesDoNotDrift) {
  ArrivalTimes times(Arrivals::Even, 3, 1);
  for (std::int64_t i = 0; i < 100'000; ++i) {
    const std::int64_t exact = i * 1'000'000 / 3;
    ASSERT_NEAR(static_cast<double>(times.next().count()), static_cast<double>(exact), 2.0) << i;
  }
}

TEST(ArrivalSchedule, TheSameChancesAtAnotherRateAreTheSameTimesScaled) {
  const auto slow = times_of(ArrivalTimes(Arrivals::Poisson, 10, 9), 1000);
  const auto fast = times_of(ArrivalTimes(Arrivals::Poisson, 40, 9), 1000);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(slow[i]), 4.0 * static_cast<double>(fast[i]), 4.0);
  }
}

// Of exponential gaps, a share of 1 - 1/e is below the mean, and e^-2 is above twice the mean.
TEST(ArrivalSchedule, GapsOfAPoissonProcessAreExponential) {
  constexpr std::size_t kCount = 40'000;
  const auto times = times_of(ArrivalTimes(Arrivals::Poisson, 1000, 2), kCount + 1);
  std::size_t below = 0;
  std::size_t above = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::int64_t gap = times[i + 1] - times[i];
    below += gap < 1000 ? 1 : 0;
    above += gap > 2000 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(below) / kCount, 1 - std::exp(-1), 0.01);
  EXPECT_NEAR(static_cast<double>(above) / kCount, std::exp(-2), 0.01);
}

// In equal stretches of time the number of arrivals varies as much as its mean.
TEST(ArrivalSchedule, CountsOfAPoissonProcessVaryAsMuchAsTheirMean) {
  ArrivalTimes times(Arrivals::Poisson, 100, 4);
  constexpr std::size_t kStretches = 2000;  // of 100 ms: ten each
  std::vector<double> counts(kStretches);
  while (true) {
    const auto stretch = static_cast<std::size_t>(times.next().count() / 100'000);
    if (stretch >= kStretches) break;
    ++counts[stretch];
  }
  double mean = 0;
  for (const double count : counts) mean += count / kStretches;
  double variance = 0;
  for (const double count : counts) variance += (count - mean) * (count - mean) / kStretches;
  EXPECT_NEAR(mean, 10, 0.3);
  EXPECT_NEAR(variance, 10, 1.2);
}

}  // namespace
}  // namespace baton::loadgen
