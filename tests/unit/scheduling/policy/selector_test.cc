// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace baton::scheduling {
namespace {

using model::Policy;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;

constexpr Policy kPolicies[] = {Policy::RoundRobin, Policy::Random, Policy::PowerOfTwo,
                                Policy::LeastLoaded};

// Draws with loads and eligibility given as lists.
class LoadDraws {
 public:
  LoadDraws(Policy policy, std::vector<int> loads) : selector_(policy), loads_(std::move(loads)) {
    eligible_.assign(loads_.size(), true);
  }

  std::optional<std::size_t> next() {
    return selector_.pick(
        loads_.size(), [this](std::size_t i) { return loads_[i]; },
        [this](std::size_t i) { return eligible_[i]; }, [this] { return random_(); });
  }
  std::vector<int> counts(int draws) {
    std::vector<int> counts(loads_.size(), 0);
    for (int i = 0; i < draws; ++i) ++counts.at(next().value());
    return counts;
  }
  void exclude(std::size_t i) { eligible_.at(i) = false; }
  void set_load(std::size_t i, int load) { loads_.at(i) = load; }

 private:
  Selector selector_;
  std::vector<int> loads_;
  std::vector<bool> eligible_;
  std::mt19937_64 random_{20240607};
};

TEST(Selector, PicksNobodyWhereThereIsNobody) {
  for (const Policy policy : kPolicies) {
    EXPECT_EQ(LoadDraws(policy, {}).next(), std::nullopt) << model::to_string(policy);
    LoadDraws none_eligible(policy, {1, 2, 3});
    for (std::size_t i = 0; i < 3; ++i) none_eligible.exclude(i);
    EXPECT_EQ(none_eligible.next(), std::nullopt) << model::to_string(policy);
  }
}

TEST(Selector, PicksTheOnlyOneThereIs) {
  for (const Policy policy : kPolicies) {
    EXPECT_THAT(LoadDraws(policy, {7}).counts(5), ElementsAre(5)) << model::to_string(policy);
  }
}

TEST(Selector, RoundRobinTakesEachInTurn) {
  LoadDraws draws(Policy::RoundRobin, {9, 0, 5});
  std::vector<std::size_t> order;
  for (int i = 0; i < 7; ++i) order.push_back(draws.next().value());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(Selector, RoundRobinPassesOverTheExcluded) {
  LoadDraws draws(Policy::RoundRobin, {0, 0, 0});
  draws.exclude(1);
  std::vector<std::size_t> order;
  for (int i = 0; i < 6; ++i) order.push_back(draws.next().value());
  EXPECT_THAT(order, ElementsAre(0, 2, 2, 0, 2, 2));
}

TEST(Selector, NeverPicksTheExcludedAndReachesAllOthers) {
  for (const Policy policy : kPolicies) {
    LoadDraws draws(policy, {3, 3, 3, 3, 3});
    draws.exclude(0);
    draws.exclude(3);
    const std::vector<int> counts = draws.counts(2000);
    EXPECT_EQ(counts[0], 0) << model::to_string(policy);
    EXPECT_EQ(counts[3], 0) << model::to_string(policy);
    for (const std::size_t i : {1U, 2U, 4U}) {
      EXPECT_GT(counts[i], 0) << model::to_string(policy) << " worker " << i;
    }
  }
}

TEST(Selector, FindsTheOnlyEligibleOneWhateverIsDrawn) {
  for (const Policy policy : {Policy::Random, Policy::PowerOfTwo}) {
    for (const std::size_t count : {1U, 2U, 3U, 5U, 7U}) {
      for (std::size_t only = 0; only < count; ++only) {
        for (std::uint64_t below = 0; below < 4; ++below) {
          Selector selector(policy);
          const auto picked = selector.pick(
              count, [](std::size_t) { return 0; }, [only](std::size_t i) { return i == only; },
              [below] { return std::numeric_limits<std::uint64_t>::max() - below; });
          EXPECT_EQ(picked, only) << "of " << count << ", " << below << " below the largest draw";
        }
      }
    }
  }
}

TEST(Selector, RandomIsEven) {
  // 10,000 draws over four: a standard deviation is 43, so a tenth is almost six of them.
  for (const int count : LoadDraws(Policy::Random, {0, 100, 0, 100}).counts(10'000)) {
    EXPECT_NEAR(count, 2500, 250);
  }
}

TEST(Selector, LeastLoadedTakesTheLightest) {
  LoadDraws draws(Policy::LeastLoaded, {4, 2, 3});
  EXPECT_THAT(draws.counts(10), ElementsAre(0, 10, 0));
  draws.exclude(1);
  EXPECT_THAT(draws.counts(10), ElementsAre(0, 0, 10));
}

TEST(Selector, LeastLoadedSharesTiesInTurn) {
  EXPECT_THAT(LoadDraws(Policy::LeastLoaded, {1, 1, 1}).counts(300), ElementsAre(100, 100, 100));
}

TEST(Selector, LeastLoadedFollowsTheLoad) {
  LoadDraws draws(Policy::LeastLoaded, {0, 1});
  EXPECT_EQ(draws.next(), 0U);
  draws.set_load(0, 2);
  EXPECT_EQ(draws.next(), 1U);
}

TEST(Selector, PowerOfTwoOfTwoAlwaysTakesTheLighter) {
  EXPECT_THAT(LoadDraws(Policy::PowerOfTwo, {5, 1}).counts(200), ElementsAre(0, 200));
}

TEST(Selector, PowerOfTwoNeverTakesTheHeaviestAndPrefersTheLighter) {
  const std::vector<int> counts = LoadDraws(Policy::PowerOfTwo, {9, 1, 5, 3}).counts(6000);
  EXPECT_EQ(counts[0], 0);
  EXPECT_GT(counts[1], counts[3]);
  EXPECT_GT(counts[3], counts[2]);
  EXPECT_GT(counts[2], 0);
  // The lightest wins whenever it is one of the two drawn: half of the pairs of four.
  EXPECT_NEAR(counts[1], 3000, 300);
}

TEST(Selector, PowerOfTwoSpreadsEqualLoads) {
  EXPECT_THAT(LoadDraws(Policy::PowerOfTwo, {2, 2, 2, 2}).counts(8000), Each(Gt(1600)));
}

TEST(Selector, PeekingTellsTheNextPickAndUsesNobodysTurn) {
  for (const Policy policy : {Policy::RoundRobin, Policy::LeastLoaded}) {
    Selector selector(policy);
    const auto load = [](std::size_t) { return 0; };
    const auto eligible = [](std::size_t i) { return i != 1; };
    const auto dice = [] { return std::uint64_t{0}; };
    for (int i = 0; i < 9; ++i) {
      const auto first = selector.peek(3, load, eligible, dice);
      EXPECT_EQ(selector.peek(3, load, eligible, dice), first);
      EXPECT_EQ(selector.pick(3, load, eligible, dice), first) << model::to_string(policy);
    }
  }
}

TEST(Selector, DirectPicksNobodyByItself) {
  EXPECT_EQ(LoadDraws(Policy::Direct, {0, 0}).next(), std::nullopt);
}

TEST(Selector, TurnsAreNotLostBetweenThreads) {
  Selector selector(Policy::RoundRobin);
  std::vector<std::vector<int>> counts(4, std::vector<int>(4, 0));
  {
    std::vector<std::jthread> threads;
    for (auto& mine : counts) {
      threads.emplace_back([&selector, &mine] {
        for (int i = 0; i < 1000; ++i) {
          const auto picked = selector.pick(
              4, [](std::size_t) { return 0; }, [](std::size_t) { return true; },
              [] { return std::uint64_t{0}; });
          ++mine[*picked];
        }
      });
    }
  }
  for (std::size_t worker = 0; worker < 4; ++worker) {
    int total = 0;
    for (const auto& mine : counts) total += mine[worker];
    EXPECT_EQ(total, 1000) << "worker " << worker;
  }
}

}  // namespace
}  // namespace baton::scheduling
