// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/pick.h"

#include "unit/scheduling/policy/chi_squared.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace baton::scheduling {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Draws with costs and eligibility given as lists.
class CostDraws {
 public:
  explicit CostDraws(std::vector<double> costs, double temperature = 0)
      : costs_(std::move(costs)), eligible_(costs_.size(), true), temperature_(temperature) {}

  std::optional<std::size_t> next() {
    return pick_cheapest(
        costs_.size(), [this](std::size_t i) { return costs_[i]; },
        [this](std::size_t i) { return eligible_[i]; }, [this] { return random_(); }, temperature_);
  }
  std::vector<int> counts(int draws) {
    std::vector<int> counts(costs_.size(), 0);
    for (int i = 0; i < draws; ++i) ++counts.at(next().value());
    return counts;
  }
  CostDraws& exclude(std::size_t i) {
    eligible_.at(i) = false;
    return *this;
  }

 private:
  std::vector<double> costs_;
  std::vector<bool> eligible_;
  double temperature_;
  std::mt19937_64 random_{20240607};
};

// The chance of each, found with bits that go evenly through all there are.
std::vector<double> chances(const std::vector<double>& costs, double temperature) {
  constexpr std::uint64_t kSteps = 1 << 20;
  std::vector<double> chances(costs.size(), 0);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const auto picked = pick_cheapest(
        costs.size(), [&costs](std::size_t i) { return costs[i]; },
        [](std::size_t) { return true; }, [step] { return (2 * step + 1) << 43; }, temperature);
    chances.at(picked.value()) += 1.0 / kSteps;
  }
  return chances;
}

TEST(Pick, PicksNobodyWhereThereIsNobody) {
  for (const double temperature : {0.0, 1.0}) {
    EXPECT_EQ(CostDraws({}, temperature).next(), std::nullopt);
    EXPECT_EQ(CostDraws({1, 2}, temperature).exclude(0).exclude(1).next(), std::nullopt);
    EXPECT_EQ(CostDraws({kInfinity, kNotANumber, -kInfinity}, temperature).next(), std::nullopt);
  }
}

TEST(Pick, PicksTheCheapestEligibleOne) {
  EXPECT_EQ(CostDraws({36.5, 22, 15}).next(), 2U);
  EXPECT_EQ(CostDraws({36.5, 22, 15}).exclude(2).next(), 1U);
  EXPECT_EQ(CostDraws({-1, 22, -15, 0}).next(), 2U);
  EXPECT_EQ(CostDraws({22, 15}, -1).next(), 1U);           // a temperature below zero is none
  EXPECT_EQ(CostDraws({22, 15}, kNotANumber).next(), 1U);  // nor is this one
}

TEST(Pick, PassesOverWhatIsNotFinite) {
  EXPECT_EQ(CostDraws({kNotANumber, 7, -kInfinity, 9}).next(), 1U);
  for (const int count : {CostDraws({kNotANumber, 7, kInfinity, -kInfinity}, 1).counts(100)[1]}) {
    EXPECT_EQ(count, 100);
  }
}

TEST(Pick, SharesTiesEqually) {
  constexpr int kDraws = 60'000;
  const std::vector<int> counts = CostDraws({3, 1, 1, 2, 1, 1, 9, 1, 1}).counts(kDraws);
  EXPECT_EQ(counts[0] + counts[3] + counts[6], 0);
  const std::vector<int> ties{counts[1], counts[2], counts[4], counts[5], counts[7], counts[8]};
  EXPECT_LT(chi_squared(ties, std::vector(6, kDraws / 6.0)), chi_squared_limit(6));
}

TEST(Pick, SharesTiesEquallyAmongMany) {
  constexpr int kDraws = 100'000;
  const std::vector<int> counts = CostDraws(std::vector<double>(100, 5)).counts(kDraws);
  EXPECT_LT(chi_squared(counts, std::vector(100, kDraws / 100.0)), chi_squared_limit(100));
}

TEST(Pick, GivesOthersTheReferencesChances) {
  const std::vector<double> found = chances({36.5, 22, 15}, 1);
  EXPECT_NEAR(found[0], 0.176020, 2e-6);
  EXPECT_NEAR(found[1], 0.345508, 2e-6);
  EXPECT_NEAR(found[2], 0.478472, 2e-6);
}

TEST(Pick, DrawsByTheirChances) {
  constexpr int kDraws = 100'000;
  const std::vector<double> costs{36.5, 22, 15, 22};
  for (const double temperature : {0.2, 0.5, 1.0, 4.0}) {
    std::vector<double> expected;
    double sum = 0;
    for (const double cost : costs) {
      expected.push_back(std::exp(-(cost - 15) / (21.5 * temperature)));
      sum += expected.back();
    }
    for (double& one : expected) one *= kDraws / sum;
    EXPECT_LT(chi_squared(CostDraws(costs, temperature).counts(kDraws), expected),
              chi_squared_limit(4))
        << temperature;
  }
}

TEST(Pick, DrawsEquallyWhereAllCostTheSame) {
  constexpr int kDraws = 50'000;
  const std::vector<int> counts = CostDraws(std::vector<double>(5, 7.25), 0.3).counts(kDraws);
  EXPECT_LT(chi_squared(counts, std::vector(5, kDraws / 5.0)), chi_squared_limit(5));
}

TEST(Pick, LeavesOutTheIneligibleAlsoWhereItDraws) {
  const std::vector<int> counts = CostDraws({1, 2, 3}, 5).exclude(1).counts(1000);
  EXPECT_EQ(counts[1], 0);
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[2], 0);
}

TEST(Pick, IsTheCheapestWhereTheTemperatureIsTiny) {
  for (const double temperature : {1e-3, 1e-300, 5e-324}) {
    EXPECT_EQ(CostDraws({2, 1, 1.5}, temperature).counts(200)[1], 200) << temperature;
  }
}

TEST(Pick, NeverPicksWhatHasNoChance) {
  const std::vector<double> costs{2, 1};
  for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{1}}) {
    const auto picked = pick_cheapest(
        2, [&costs](std::size_t i) { return costs[i]; }, [](std::size_t) { return true; },
        [bits] { return bits; }, 1e-4);
    EXPECT_EQ(picked, 1U);
  }
}

TEST(Pick, AsksForEachCostOnce) {
  for (const double temperature : {0.0, 1.0}) {
    std::vector<int> asked(4, 0);
    pick_cheapest(
        4,
        [&asked](std::size_t i) {
          ++asked[i];
          return 1.0;
        },
        [](std::size_t i) { return i != 2; }, [] { return std::uint64_t{0}; }, temperature);
    EXPECT_EQ(asked, (std::vector{1, 1, 0, 1}));
  }
}

TEST(Pick, BelowReachesAllAndNoMore) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(below(1, kMost), 0U);
  EXPECT_EQ(below(10, 0), 0U);
  EXPECT_EQ(below(10, kMost), 9U);
  EXPECT_EQ(below(2, kMost / 2), 0U);
  EXPECT_EQ(below(2, kMost / 2 + 1), 1U);
}

}  // namespace
}  // namespace baton::scheduling
