// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/draw.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

namespace baton::loadgen {
namespace {

// The published output of SplitMix64 from seed 0: each step adds the same odd number to the state.
TEST(Mixed, IsSplitMix64) {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;
  constexpr std::array<std::uint64_t, 5> kPublished{0xE220A8397B1DCDAFU, 0x6E789E6AA1B965F4U,
                                                    0x06C45D188009454FU, 0xF88BB8A8724C81ECU,
                                                    0x1B39896A51A8749BU};
  for (std::uint64_t i = 0; i < kPublished.size(); ++i) {
    EXPECT_EQ(mixed(i * kStep), kPublished[i]) << i;
  }
}

TEST(Mixed, DependsOnEachPartAndOnTheirOrder) {
  EXPECT_EQ(mixed({1, 2, 3}), mixed({1, 2, 3}));
  EXPECT_NE(mixed({1, 2, 3}), mixed({1, 3, 2}));
  EXPECT_NE(mixed({1, 2}), mixed({1, 2, 0}));
  std::set<std::uint64_t> all;
  for (std::uint64_t a = 0; a < 40; ++a) {
    for (std::uint64_t b = 0; b < 40; ++b) all.insert(mixed({a, b}));
  }
  EXPECT_EQ(all.size(), 1600U);
}

TEST(Draw, GivesTheSameSequenceForTheSameSeed) {
  Draw one(5);
  Draw two(5);
  Draw other(6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t bits = one.bits();
    EXPECT_EQ(two.bits(), bits);
    differs = differs || other.bits() != bits;
  }
  EXPECT_TRUE(differs);
}

TEST(Draw, AUnitIsBelowOneAndSpreadEvenly) {
  Draw draw(1);
  std::array<int, 10> tenths{};
  for (int i = 0; i < 50'000; ++i) {
    const double unit = draw.unit();
    ASSERT_GE(unit, 0);
    ASSERT_LT(unit, 1);
    ++tenths[static_cast<std::size_t>(unit * 10)];
  }
  for (const int count : tenths) EXPECT_NEAR(count, 5000, 250);
}

TEST(Draw, StaysBelowItsBoundAndReachesAllBelowIt) {
  Draw draw(2);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t number = draw.below(7);
    ASSERT_LT(number, 7U);
    seen.insert(number);
  }
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_EQ(draw.below(1), 0U);
}

TEST(Draw, AChanceOfNothingNeverComesAndOneOfAllAlwaysDoes) {
  Draw draw(3);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(draw.chance(0));
    EXPECT_TRUE(draw.chance(1));
  }
}

TEST(Draw, NormalNumbersHaveTheirMeanAndDeviation) {
  Draw draw(4);
  constexpr int kCount = 40'000;
  double sum = 0;
  double squares = 0;
  int within = 0;
  for (int i = 0; i < kCount; ++i) {
    const double number = draw.normal();
    ASSERT_TRUE(std::isfinite(number));
    sum += number;
    squares += number * number;
    within += std::abs(number) < 1 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1, 0.03);
  EXPECT_NEAR(static_cast<double>(within) / kCount, 0.6827, 0.01);
}

TEST(Draw, ExponentialNumbersAreFiniteAndHaveTheirMean) {
  Draw draw(5);
  double sum = 0;
  for (int i = 0; i < 40'000; ++i) {
    const double number = draw.exponential(250);
    ASSERT_GE(number, 0);
    ASSERT_TRUE(std::isfinite(number));
    sum += number;
  }
  EXPECT_NEAR(sum / 40'000, 250, 5);
}

}  // namespace
}  // namespace baton::loadgen
