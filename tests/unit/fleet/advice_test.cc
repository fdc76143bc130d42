// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <vector>

namespace baton::fleet {
namespace {

using namespace std::chrono_literals;
using model::Role;
using testing::HasSubstr;

WorkHistory::Summary work(double requests, double prefill_seconds,
                          std::optional<double> decode_seconds = 1) {
  return {.seconds = 300,
          .requests_per_second = requests,
          .prefill_load = requests * prefill_seconds,
          .prefill_seconds = prefill_seconds,
          .decode_seconds = decode_seconds};
}

RoleFacts workers(std::size_t count, std::optional<double> places = {}) {
  return {.registered = count, .available = count, .places = places};
}

PoolFacts apart(std::size_t prefill, std::size_t decode, std::optional<double> places = {}) {
  return {.disaggregated = true, .prefill = workers(prefill), .decode = workers(decode, places)};
}

config::Slo promise(std::optional<std::chrono::milliseconds> ttft,
                    std::optional<std::chrono::milliseconds> itl = {}) {
  return {.ttft = ttft, .itl = itl};
}

Advice advice_of(Role role, const WorkHistory::Summary& work, const std::optional<config::Slo>& slo,
                 const PoolFacts& pool) {
  const auto all = advise(work, slo, pool);
  const auto found = std::ranges::find(all, role, &Advice::role);
  EXPECT_NE(found, all.end());
  return found == all.end() ? Advice{.role = role} : *found;
}

std::size_t prefills(double load, double seconds, std::chrono::milliseconds ttft) {
  return advice_of(Role::Prefill, work(load / seconds, seconds), promise(ttft), apart(1, 1)).wanted;
}

TEST(Advice, IsForRolesThatHaveWorkers) {
  EXPECT_TRUE(advise(work(1, 1), {}, {}).empty());
  const auto all = advise(work(1, 1), {}, apart(1, 2));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].role, Role::Prefill);
  EXPECT_EQ(all[1].role, Role::Decode);
  EXPECT_EQ(all[1].registered, 2U);
  EXPECT_EQ(all[1].available, 2U);
}

TEST(Advice, WithoutAnObjectivePrefillWorkersAreBusyForFourFifthsOfTheTime) {
  const auto four = advice_of(Role::Prefill, work(40, 0.1), {}, apart(4, 1));
  EXPECT_EQ(four.wanted, 5U);
  EXPECT_DOUBLE_EQ(*four.utilization, 1);
  EXPECT_THAT(four.reason, HasSubstr("without slo.ttft"));
  EXPECT_EQ(advice_of(Role::Prefill, work(48, 0.1), {}, apart(1, 1)).wanted, 6U);
  EXPECT_EQ(advice_of(Role::Prefill, work(49, 0.1), {}, apart(1, 1)).wanted, 7U);
}

// Numbers of Sakasegawa's formula, worked out by hand.
TEST(Advice, WithAnObjectiveWaitsFitIntoIt) {
  EXPECT_EQ(prefills(4, 0.1, 10s), 5U);
  EXPECT_EQ(prefills(4, 0.1, 500ms), 5U);
  EXPECT_EQ(prefills(4, 0.1, 250ms), 6U);
  EXPECT_EQ(prefills(4, 0.1, 110ms), 9U);
  EXPECT_EQ(prefills(0.5, 0.2, 500ms), 2U);
  const auto told = advice_of(Role::Prefill, work(40, 0.1), promise(250ms), apart(1, 1));
  EXPECT_THAT(told.reason, HasSubstr("slo.ttft (250 ms)"));
  EXPECT_THAT(told.reason, HasSubstr("takes 100 ms"));
  EXPECT_THAT(told.reason, HasSubstr("at most 76 ms for one of 6 workers"));
}

TEST(Advice, SaysWhereNoNumberOfWorkersHelps) {
  const auto hopeless = advice_of(Role::Prefill, work(40, 0.1), promise(100ms), apart(1, 1));
  EXPECT_EQ(hopeless.wanted, 5U);
  EXPECT_THAT(hopeless.reason, HasSubstr("no number of workers keeps"));
}

TEST(Advice, AnIdleFleetWantsOneOfEach) {
  for (const auto& slo : {std::optional<config::Slo>(), std::optional(promise(500ms, 40ms))}) {
    for (const Advice& one : advise(work(0, 0, std::nullopt), slo, apart(7, 7, 16))) {
      EXPECT_EQ(one.wanted, 1U);
      EXPECT_EQ(one.utilization, 0);
    }
  }
}

TEST(Advice, DecodeWorkersAreAsManyAsTheStreamsFill) {
  const auto four =
      advice_of(Role::Decode, work(10, 0.1, 5), promise(500ms, 40ms), apart(1, 2, 16));
  EXPECT_EQ(four.wanted, 4U);
  EXPECT_DOUBLE_EQ(*four.utilization, 50.0 / 32);
  EXPECT_THAT(four.reason, HasSubstr("50.0 streams"));
  EXPECT_THAT(four.reason, HasSubstr("decodes 16.0"));
}

TEST(Advice, KeepsDecodeWorkersWhoseLimitNobodyKnows) {
  const auto unmet = advice_of(Role::Decode, work(10, 0.1, 5), promise({}, 40ms), apart(1, 3));
  EXPECT_EQ(unmet.wanted, 3U);
  EXPECT_FALSE(unmet.utilization);
  EXPECT_THAT(unmet.reason, HasSubstr("no worker has reached the batch"));
  const auto unasked = advice_of(Role::Decode, work(0, 0), promise(500ms), apart(1, 3));
  EXPECT_EQ(unasked.wanted, 3U);
  EXPECT_THAT(unasked.reason, HasSubstr("no slo.itl is configured"));
  const auto endless =
      advice_of(Role::Decode, work(10, 0.1, std::nullopt), promise({}, 40ms), apart(1, 3, 16));
  EXPECT_EQ(endless.wanted, 3U);
  EXPECT_THAT(endless.reason, HasSubstr("no answer has ended"));
}

// Otherwise an outage would make the fleet smaller.
TEST(Advice, KeepsThoseThatAreDown) {
  PoolFacts pool = apart(4, 3);
  pool.decode.available = 0;
  pool.prefill.available = 0;
  for (const Advice& one : advise(work(10, 0.1), {}, pool)) EXPECT_FALSE(one.utilization);
  EXPECT_EQ(advice_of(Role::Decode, work(10, 0.1), {}, pool).wanted, 3U);
}

TEST(Advice, AggregatedWorkersAreAsManyAsTheLargerNeed) {
  const PoolFacts pool{.aggregated = workers(2, 16)};
  const auto slo = promise(500ms, 40ms);
  const auto prompts = advice_of(Role::Aggregated, work(40, 0.1, 0.1), slo, pool);
  EXPECT_EQ(prompts.wanted, 5U);
  EXPECT_THAT(prompts.reason, HasSubstr("prefill seconds"));
  EXPECT_DOUBLE_EQ(*prompts.utilization, 2);
  const auto answers = advice_of(Role::Aggregated, work(10, 0.01, 20), slo, pool);
  EXPECT_EQ(answers.wanted, 14U);
  EXPECT_THAT(answers.reason, HasSubstr("streams"));
  EXPECT_DOUBLE_EQ(*answers.utilization, 200.0 / 32);
}

TEST(Advice, DecodeWorkersWithoutPrefillWorkersComputePrompts) {
  const PoolFacts pool{.decode = workers(2, 16)};
  EXPECT_EQ(advice_of(Role::Decode, work(40, 0.1, 0.1), {}, pool).wanted, 5U);
}

TEST(Advice, PrefillWorkersThatNobodyHandsOverFromStay) {
  PoolFacts pool = apart(3, 2);
  pool.disaggregated = false;
  const auto idle = advice_of(Role::Prefill, work(40, 0.1), {}, pool);
  EXPECT_EQ(idle.wanted, 3U);
  EXPECT_THAT(idle.reason, HasSubstr("nothing is handed over"));
}

TEST(Advice, AggregatedWorkersBesideOthersHaveTheirShare) {
  PoolFacts pool = apart(1, 3, 16);
  pool.aggregated = workers(1, 16);
  EXPECT_DOUBLE_EQ(*advice_of(Role::Prefill, work(40, 0.1), {}, pool).utilization, 3);
  EXPECT_DOUBLE_EQ(*advice_of(Role::Decode, work(40, 0.1, 4), {}, pool).utilization, 120.0 / 48);
  EXPECT_DOUBLE_EQ(*advice_of(Role::Aggregated, work(40, 0.1, 4), {}, pool).utilization, 40.0 / 16);
}

TEST(Advice, BeforeAMinuteWasWatchedAllStay) {
  auto young = work(1000, 1);
  young.seconds = 59.4;
  for (const Advice& one : advise(young, {}, apart(3, 2))) {
    EXPECT_EQ(one.wanted, one.registered);
    EXPECT_FALSE(one.utilization);
    EXPECT_THAT(one.reason, HasSubstr("only 59 s"));
  }
}

TEST(Advice, BeforeFiveMinutesWereWatchedNobodyGoes) {
  auto young = work(5, 0.1);
  young.seconds = 120;
  const auto more = advice_of(Role::Prefill, young, {}, apart(3, 1));
  EXPECT_EQ(more.wanted, 3U);
  EXPECT_THAT(more.reason, HasSubstr("now 120 s"));
  EXPECT_EQ(advice_of(Role::Prefill, work(5, 0.1), {}, apart(3, 1)).wanted, 1U);
  young = work(80, 0.1);
  young.seconds = 120;
  EXPECT_EQ(advice_of(Role::Prefill, young, {}, apart(3, 1)).wanted, 10U);
}

TEST(Advice, OneThatIsHardlyNeededStays) {
  const auto of = [](double load, std::size_t registered) {
    return advice_of(Role::Prefill, work(load, 1), {}, apart(registered, 1));
  };
  EXPECT_EQ(of(2.41, 3).wanted, 4U) << "more come at once";
  EXPECT_EQ(of(2.39, 4).wanted, 4U);
  EXPECT_THAT(of(2.39, 4).reason, HasSubstr("3 would do"));
  EXPECT_EQ(of(2.31, 4).wanted, 4U);
  EXPECT_EQ(of(2.29, 4).wanted, 3U);
  EXPECT_EQ(of(2.39, 3).wanted, 3U);
  EXPECT_EQ(of(2.39, 9).wanted, 4U);
}

// A number from 10^least to 10^most.
double draw(std::mt19937& random, double least, double most) {
  return std::pow(10, std::uniform_real_distribution(least, most)(random));
}

TEST(Advice, MoreLoadNeverWantsFewer) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const double requests = draw(random, -2, 4);
    const double prefill = draw(random, -3, 1);
    const double decode = draw(random, -1, 2);
    const double more = requests * draw(random, 0, 1);
    const auto slo = i % 3 == 0
                         ? std::nullopt
                         : std::optional(promise(std::chrono::milliseconds(static_cast<int>(
                                                     1000 * prefill * draw(random, -0.5, 1))),
                                                 40ms));
    const auto there = static_cast<std::size_t>(draw(random, 0, 2));
    PoolFacts pool = apart(there, there, draw(random, 0, 2));
    pool.disaggregated = i % 2 == 0;
    const auto before = advise(work(requests, prefill, decode), slo, pool);
    const auto after = advise(work(more, prefill, decode), slo, pool);
    for (std::size_t role = 0; role < before.size(); ++role)
      ASSERT_GE(after[role].wanted, before[role].wanted) << i << after[role].reason;
  }
}

// As long as it is above what a prompt takes by itself.
TEST(Advice, ATighterObjectiveNeverWantsFewer) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const double prefill = draw(random, -2, 0);
    const auto load = work(draw(random, -1, 4), prefill);
    const auto tight =
        std::chrono::milliseconds(static_cast<int>(1000 * prefill * draw(random, 0, 2)) + 1);
    const auto loose = std::chrono::milliseconds(
        static_cast<int>(static_cast<double>(tight.count()) * draw(random, 0, 1)));
    const PoolFacts pool = apart(static_cast<std::size_t>(draw(random, 0, 3)), 1);
    ASSERT_GE(advice_of(Role::Prefill, load, promise(tight), pool).wanted,
              advice_of(Role::Prefill, load, promise(loose), pool).wanted)
        << i;
  }
}

TEST(Advice, HostileNumbersAreHarmless) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::vector<double> hostile{0,     -1,     5e-324,    1e-9,       1,           1e9,
                                    1e300, -1e300, kInfinite, -kInfinite, std::nan("")};
  const std::vector<std::optional<config::Slo>> objectives{
      std::nullopt, promise(0ms, 0ms), promise(1ms, 1ms), promise(500ms, 40ms),
      promise(std::chrono::milliseconds::max(), std::chrono::milliseconds::min())};
  for (const double load : hostile) {
    for (const double seconds : hostile) {
      for (const double places : hostile) {
        for (const auto& slo : objectives) {
          const WorkHistory::Summary summary{.seconds = 300,
                                             .requests_per_second = load,
                                             .prefill_load = load,
                                             .prefill_seconds = seconds,
                                             .decode_seconds = seconds};
          PoolFacts pool = apart(2, 2, places);
          pool.aggregated = workers(1, places);
          for (const Advice& one : advise(summary, slo, pool)) {
            ASSERT_GE(one.wanted, 1U);
            ASSERT_LE(one.wanted, kMostWanted);
            if (one.utilization) ASSERT_TRUE(std::isfinite(*one.utilization));
          }
        }
      }
    }
  }
  auto timeless = work(1, 1);
  for (const double seconds : hostile) {
    timeless.seconds = seconds;
    EXPECT_EQ(advise(timeless, {}, apart(2, 2)).size(), 2U);
  }
}

TEST(Advice, NeverWantsMoreThanAnybodyCouldStart) {
  EXPECT_EQ(prefills(1e8, 1, 2s), kMostWanted);
  EXPECT_EQ(advice_of(Role::Decode, work(1e8, 1, 1e6), {}, apart(1, 1, 1)).wanted, kMostWanted);
}

}  // namespace
}  // namespace baton::fleet
