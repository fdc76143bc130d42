// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/demand.h"

#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using std::chrono::seconds;

struct DemandTest : testing::Test {
  static Demand::Time at(int second) { return Demand::Time(seconds(second)); }
  static constexpr double kPerToken = 0.001;
  static Work cold(double tokens) { return {.tokens = tokens, .seconds = tokens * kPerToken}; }
  // Serves a second of work each second while somebody waits, until second 100.
  Demand served(std::vector<std::uint64_t> quanta = {1}) {
    config::Queue config;
    for (const std::uint64_t quantum : quanta) config.classes.emplace_back().quantum = quantum;
    config.longest_wait = seconds(4);
    Demand demand(config, at(0));
    demand.add(0, cold(1), at(0));
    for (int second = 1; second <= 100; ++second) demand.served(cold(1000), at(second));
    demand.remove(0, cold(1), at(100));
    return demand;
  }
  static Demand::Newcomer after(double tokens) {
    return {.policy_class = 0, .before = cold(tokens), .priority_jump = 0, .compute_seconds = 0};
  }
};

TEST_F(DemandTest, ForeseesTheWaitByWhatIsBeforeIt) {
  Demand demand = served();
  EXPECT_FALSE(demand.too_long(after(1e9), at(100))) << "nobody waits";
  demand.add(0, cold(6000), at(100));
  EXPECT_FALSE(demand.too_long(after(3000), at(100)));
  const auto wait = demand.too_long(after(1e9), at(100));
  ASSERT_TRUE(wait);
  EXPECT_NEAR(wait->seconds, 6, 0.5);
  EXPECT_EQ(wait->limit, 4);
  EXPECT_NEAR(static_cast<double>(demand.retry_after(at(100)).count()), 6, 1);
  demand.remove(0, cold(6000), at(100));
  EXPECT_EQ(demand.retry_after(at(100)), seconds(1));
}

TEST_F(DemandTest, APriorityJumpAndALongPromptMayStandFurtherBack) {
  Demand demand = served();
  demand.add(0, cold(6000), at(100));
  Demand::Newcomer jumps = after(1e9);
  jumps.priority_jump = 3;
  EXPECT_FALSE(demand.too_long(jumps, at(100)));
  Demand::Newcomer takes_long = after(1e9);
  takes_long.compute_seconds = 1;
  EXPECT_FALSE(demand.too_long(takes_long, at(100)));
  EXPECT_TRUE(demand.too_long(after(1e9), at(100)));
}

TEST_F(DemandTest, ClassesShareByTheirQuanta) {
  Demand demand = served({100, 300});
  demand.add(1, cold(50'000), at(100));
  EXPECT_FALSE(demand.too_long(after(1e9), at(100))) << "nobody of its class is before it";
  demand.add(0, cold(500), at(100));  // and 1500 of the other class in that time
  EXPECT_FALSE(demand.too_long(after(1e9), at(100)));
  demand.add(0, cold(1000), at(100));
  EXPECT_TRUE(demand.too_long(after(1e9), at(100)));
}

TEST_F(DemandTest, WhileNobodyKnowsHowFastItGoesNothingIsTooLong) {
  config::Queue config;
  config.classes.emplace_back();
  config.longest_wait = seconds(1);
  Demand demand(config, at(0));
  demand.add(0, cold(1'000'000), at(0));
  EXPECT_FALSE(demand.too_long(after(1e9), at(50)));
}

// What is nearly all cached takes a moment for each request, and has next to no tokens.
TEST_F(DemandTest, WhereColdAndCachedPromptsMixSecondsCountAndNotTokens) {
  constexpr Work kCold{.tokens = 1000, .seconds = 0.1};
  constexpr Work kCached{.tokens = 10, .seconds = 0.02};
  const auto served_only = [](const Work& work) {
    config::Queue config;
    config.classes.emplace_back();
    config.longest_wait = seconds(4);
    Demand demand(config, at(0));
    for (int second = 1; second <= 100; ++second) {
      demand.add(0, work, at(second - 1));
      for (double done = 0; done < 0.999; done += work.seconds) demand.served(work, at(second));
      demand.remove(0, work, at(second));
    }
    return demand;
  };
  const auto waits_behind = [](Demand& demand, int requests, const Work& work) {
    for (int i = 0; i < requests; ++i) demand.add(0, work, at(100));
    return demand.too_long({.policy_class = 0, .before = {1e9, 1e9}}, at(100));
  };
  // Fifty cached ones a second are 500 tokens a second, but a second's wait is no more than that.
  Demand after_cached = served_only(kCached);
  EXPECT_FALSE(waits_behind(after_cached, 10, kCold)) << "not 10,000 tokens at 500 a second";
  // Ten cold ones a second are 10,000 tokens a second.
  Demand after_cold = served_only(kCold);
  const auto wait = waits_behind(after_cold, 300, kCached);
  ASSERT_TRUE(wait) << "3,000 tokens at 10,000 a second would not be long";
  EXPECT_NEAR(wait->seconds, 6, 0.5);
}

TEST_F(DemandTest, ClassesShareTokensWhateverTheseTake) {
  Demand demand = served({100, 100});
  demand.add(0, cold(1000), at(100));
  EXPECT_FALSE(demand.too_long(after(1e9), at(100)));
  // In that time 1000 tokens of the other class, too: one second each.
  demand.add(1, {.tokens = 4000, .seconds = 4}, at(100));
  EXPECT_FALSE(demand.too_long(after(1e9), at(100)));
  demand.add(1, {.tokens = 4000, .seconds = 36}, at(100));
  const auto wait = demand.too_long(after(1e9), at(100));
  ASSERT_TRUE(wait);
  EXPECT_NEAR(wait->seconds, 1 + 40.0 / 8, 0.5);
}

}  // namespace
}  // namespace baton::scheduling
