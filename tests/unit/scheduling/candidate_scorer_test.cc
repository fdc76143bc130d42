// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/candidate_scorer.h"

#include "fleet/worker_set.h"
#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <map>
#include <random>
#include <thread>

namespace baton::scheduling {
namespace {

using fleet::Booking;
using fleet::Forecasts;
using fleet::LoadNotifier;
using fleet::make_worker;
using fleet::worker;
using fleet::Worker;
using fleet::WorkerSet;

using model::Policy;
using model::Role;

constexpr std::uint32_t kBlock = 16;

// A prompt of so many blocks; those with the same `family` begin alike.
std::shared_ptr<KnownPrompt> prompt_of(std::uint64_t blocks, std::uint64_t family = 1,
                                       std::uint64_t common = 0) {
  auto prompt = std::make_shared<KnownPrompt>();
  prompt->tokens = blocks * kBlock;
  std::vector<std::uint64_t> chain;
  for (std::uint64_t i = 0; i < blocks; ++i)
    chain.push_back((i < common ? 1000 : family * 1'000'000) + i);
  prompt->shapes.push_back(
      {kBlock, std::make_shared<const std::vector<std::uint64_t>>(std::move(chain))});
  return prompt;
}

// One of which nothing is known but how long it is.
std::shared_ptr<KnownPrompt> prompt_of_tokens(std::uint64_t tokens) {
  auto prompt = std::make_shared<KnownPrompt>();
  prompt->tokens = tokens;
  return prompt;
}

struct CandidateScorerTest : testing::Test {
  void serve(Policy policy, Role role = Role::Prefill, config::Cost cost = {}, int count = 3) {
    set = std::make_unique<fleet::WorkerSet>(role, policy, cost);
    for (int i = 1; i <= count; ++i) {
      model::WorkerSpec spec = worker(static_cast<std::uint16_t>(i), role);
      spec.name = std::string(1, static_cast<char>('a' + i - 1));
      set->add(make_worker(static_cast<std::uint16_t>(i), std::move(spec)));
    }
  }
  RankKey key_of(std::string_view name) { return {set->find(name)->id(), 0}; }
  const RankLoad& load(std::string_view name) { return *set->find(name)->load(0); }
  fleet::Booking book(const WorkerRequirements& requirements) {
    auto booking = test::book_worker(*set, requirements, random);
    EXPECT_TRUE(booking) << (booking ? "" : booking.error().message());
    return booking ? std::move(*booking) : fleet::Booking();
  }
  WorkerRequirements requirements_with(std::shared_ptr<const KnownPrompt> prompt,
                                       Part part = Part::Prefill) {
    WorkerRequirements requirements;
    requirements.prompt = std::move(prompt);
    requirements.part = part;
    return requirements;
  }

  std::unique_ptr<fleet::WorkerSet> set;
  Random random = std::mt19937_64(7);
};

TEST_F(CandidateScorerTest, TheOneThatHasThePromptGetsIt) {
  serve(Policy::Kv);
  auto prompt = prompt_of(10);
  prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 8});
  const fleet::Booking booking = book(requirements_with(prompt));
  EXPECT_EQ(booking.worker().name(), "b");
  // What is not cached is to be computed.
  EXPECT_EQ(load("b").prefill_tokens(), 2 * kBlock);
  EXPECT_EQ(load("b").decode_blocks(), 10);
  EXPECT_EQ(load("b").requests(), 1);
}

TEST_F(CandidateScorerTest, MuchToDoWeighsMoreThanALittleCache) {
  serve(Policy::Kv);
  auto long_prompt = prompt_of(100, 2);
  long_prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 1});
  const fleet::Booking first = book(requirements_with(long_prompt));
  ASSERT_EQ(first.worker().name(), "b");
  auto prompt = prompt_of(10, 3);
  prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 5});
  const fleet::Booking second = book(requirements_with(prompt));
  EXPECT_NE(second.worker().name(), "b");
}

TEST_F(CandidateScorerTest, LoadAwareDoesNotLookAtCaches) {
  serve(Policy::LoadAware);
  auto prompt = prompt_of(10);
  prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 8});
  std::map<std::string, int> where;
  std::vector<fleet::Booking> running;
  for (int i = 0; i < 9; ++i) {
    running.push_back(book(requirements_with(prompt)));
    ++where[running.back().worker().name()];
  }
  EXPECT_EQ(where, (std::map<std::string, int>{{"a", 3}, {"b", 3}, {"c", 3}}));
  // The whole prompt counts, wherever it is cached, and no block is shared.
  EXPECT_EQ(load("b").prefill_tokens(), 3 * 10 * kBlock);
  EXPECT_EQ(load("b").decode_blocks(), 30);
}

TEST_F(CandidateScorerTest, EqualBeginningsCountOnce) {
  serve(Policy::Kv, Role::Prefill, {}, 1);
  const fleet::Booking first = book(requirements_with(prompt_of(10, 1, 6)));
  const fleet::Booking second = book(requirements_with(prompt_of(10, 2, 6)));
  EXPECT_EQ(load("a").decode_blocks(), 14);
}

TEST_F(CandidateScorerTest, DecodeAfterAPrefillTracksNoPrefillAndSharesNothing) {
  config::Cost cost;
  cost.decode_active_request_weight = 1;
  serve(Policy::Kv, Role::Decode, cost);
  auto prompt = prompt_of(10);
  prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 10});
  std::map<std::string, int> where;
  std::vector<fleet::Booking> running;
  for (int i = 0; i < 6; ++i) {
    running.push_back(book(requirements_with(prompt, Part::Decode)));
    ++where[running.back().worker().name()];
  }
  EXPECT_EQ(where, (std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 2}}));
  EXPECT_EQ(load("b").prefill_tokens(), 0);
  EXPECT_EQ(load("b").decode_blocks(), 20);
}

TEST_F(CandidateScorerTest, APrefillThatIsOverCountsNoMore) {
  serve(Policy::Kv, Role::Aggregated);
  fleet::Booking booking = book(requirements_with(prompt_of(10), Part::Both));
  const std::string name = booking.worker().name();
  EXPECT_EQ(load(name).prefill_tokens(), 10 * kBlock);
  booking.prefill_completed();
  booking.prefill_completed();
  EXPECT_EQ(load(name).prefill_tokens(), 0);
  EXPECT_EQ(load(name).decode_blocks(), 10);
  booking = fleet::Booking();
  EXPECT_EQ(load(name).decode_blocks(), 0);
  EXPECT_EQ(load(name).requests(), 0);
  EXPECT_EQ(set->ledger().tracked_blocks(), 0U);
}

TEST_F(CandidateScorerTest, WhoeverIsBusyIsPassedOver) {
  serve(Policy::Kv, Role::Prefill, {}, 2);
  auto prompt = prompt_of(10);
  prompt->hits.push_back({.key = key_of("a"), .block_size = kBlock, .device = 9});
  WorkerRequirements requirements = requirements_with(prompt);
  requirements.busy = BusyThreshold{.tokens = 0, .share = {}};
  const fleet::Booking first = book(requirements);
  EXPECT_EQ(first.worker().name(), "a");
  const fleet::Booking second = book(requirements);
  EXPECT_EQ(second.worker().name(), "b");
  const auto third = test::book_worker(*set, requirements, random);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), Errc::WorkersBusy);
  EXPECT_TRUE(third.error().retry_after());
  requirements.pin = Pin{.worker = "b", .rank = {}};
  EXPECT_EQ(test::book_worker(*set, requirements, random).error().code(), Errc::WorkersBusy);
  requirements.busy.reset();
  EXPECT_TRUE(test::book_worker(*set, requirements, random));
}

TEST_F(CandidateScorerTest, ShareOfWhatIsBatchedIsALineToo) {
  serve(Policy::Kv, Role::Prefill, {}, 1);
  WorkerRequirements requirements = requirements_with(prompt_of(100));
  requirements.busy = BusyThreshold{.tokens = {}, .share = 0.1};  // of 8192
  const fleet::Booking first = book(requirements);
  EXPECT_EQ(test::book_worker(*set, requirements, random).error().code(), Errc::WorkersBusy);
  requirements.busy->share = 0.2;
  EXPECT_TRUE(test::book_worker(*set, requirements, random));
}

TEST_F(CandidateScorerTest, WhatIsNotAcceptedIsNotBooked) {
  serve(Policy::Kv, Role::Decode, {}, 1);
  WorkerRequirements requirements = requirements_with(prompt_of(10), Part::Both);
  double blocks = 0;
  requirements.accept = [&blocks](const fleet::Worker&, const CandidateScore& weight) {
    blocks = weight.facts.decode_blocks;
    return weight.facts.decode_blocks <= 15;
  };
  const fleet::Booking first = book(requirements);
  EXPECT_EQ(blocks, 10);
  requirements.prompt = prompt_of(10, 2);
  EXPECT_EQ(test::book_worker(*set, requirements, random).error().code(), Errc::NoEligibleWorker);
  EXPECT_EQ(blocks, 20);
  EXPECT_EQ(load("a").requests(), 1);
}

TEST_F(CandidateScorerTest, ARequestMayBeWeighedDifferently) {
  serve(Policy::Kv);
  auto prompt = prompt_of(10);
  prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 10});
  WorkerRequirements requirements = requirements_with(prompt);
  requirements.cost = config::Cost{};
  requirements.cost->overlap_score_credit = 0;
  std::map<std::string, int> where;
  for (int i = 0; i < 60; ++i) ++where[book(requirements).worker().name()];
  EXPECT_EQ(where.size(), 3U);  // equal costs, so each has its share
}

TEST_F(CandidateScorerTest, WithoutCreditForTheDeviceWhatIsCachedNeedNotBeComputed) {
  serve(Policy::Kv, Role::Prefill, {}, 3);
  auto prompt = prompt_of(10);
  prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 4, .host = 4});
  WorkerRequirements requirements = requirements_with(prompt);
  requirements.cost = config::Cost{};
  requirements.cost->overlap_score_credit = 0;
  const fleet::Booking booking = book(requirements);
  EXPECT_EQ(booking.worker().name(), "b") << "for what is on its host";
  EXPECT_EQ(load("b").prefill_tokens(fleet::Clock::now()), 160 - 4 * 16 - 0.75 * 4 * 16);
}

TEST_F(CandidateScorerTest, AnAnswerWeighsLessTheNearerItsExpectedEndIs) {
  config::Cost cost;
  cost.track_output_blocks = true;
  serve(Policy::Kv, Role::Prefill, cost, 1);
  WorkerRequirements requirements = requirements_with(prompt_of(10));
  requirements.expected_output = 64;
  fleet::Booking booking = book(requirements);
  EXPECT_DOUBLE_EQ(load("a").decode_blocks(), 10);
  booking.produced(32);
  EXPECT_DOUBLE_EQ(load("a").decode_blocks(), 12 * 0.5);
}

TEST_F(CandidateScorerTest, WhyIsTold) {
  serve(Policy::Kv, Role::Prefill, {}, 3);
  auto prompt = prompt_of(10);
  prompt->hits.push_back(
      {.key = key_of("c"), .block_size = kBlock, .device = 4, .host = 2, .disk = 1});
  Choice why{.picked = 9, .candidates = {}};
  const auto booking = test::book_worker(*set, requirements_with(prompt), random, &why);
  ASSERT_TRUE(booking);
  EXPECT_EQ(why.picked, 0U);
  EXPECT_EQ(why.of, 3U);
  ASSERT_EQ(why.candidates.size(), 3U);
  EXPECT_EQ(why.candidates[0].worker->name(), "c");
  const CandidateScore& weight = *why.candidates[0].weight;
  EXPECT_EQ(weight.facts.host, 2);
  // 4 + 0.75 · 2 + 0.25 · 1 blocks of 16
  EXPECT_EQ(weight.cached_tokens, 92U);
  EXPECT_DOUBLE_EQ(weight.total, 10 - 5.75 + 10);
  EXPECT_DOUBLE_EQ(why.candidates[1].score, 20);
}

TEST_F(CandidateScorerTest, OfManyOnlyTheBestAreTold) {
  serve(Policy::Kv, Role::Prefill, {}, 26);
  auto prompt = prompt_of(30);
  // The later in the alphabet, the more it has.
  for (std::uint32_t i = 0; i < 26; ++i)
    prompt->hits.push_back({.key = key_of(std::string(1, static_cast<char>('a' + i))),
                            .block_size = kBlock,
                            .device = i + 1});
  Choice why{.picked = 9, .candidates = {}};
  ASSERT_TRUE(test::book_worker(*set, requirements_with(prompt), random, &why));
  EXPECT_EQ(why.of, 26U);
  std::string told;
  for (const auto& candidate : why.candidates) told += candidate.worker->name();
  EXPECT_EQ(told, "zyxwvutsrqponmlk");
}

// Between choosing and booking nobody comes in between: at most one is ever ahead.
TEST_F(CandidateScorerTest, AHerdSpreads) {
  serve(Policy::Kv, Role::Prefill, {}, 4);
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  std::vector<std::vector<fleet::Booking>> bookings(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, &bookings] {
        std::mt19937_64 own(static_cast<std::uint64_t>(t));
        const Random dice = [&own] { return own(); };
        for (int i = 0; i < kEach; ++i) {
          const auto family = static_cast<std::uint64_t>(t * kEach + i + 2);
          bookings[static_cast<std::size_t>(t)].push_back(
              test::book_worker(*set, requirements_with(prompt_of(4, family)), dice).value());
        }
      });
    }
  }
  for (const char* const name : {"a", "b", "c", "d"}) {
    EXPECT_EQ(load(name).requests(), kThreads * kEach / 4) << name;
    EXPECT_EQ(load(name).prefill_tokens(), kThreads * kEach * 4 * kBlock / 4) << name;
  }
}

TEST_F(CandidateScorerTest, TtftGoesWhereTheFirstTokenComesSoonest) {
  serve(Policy::Ttft, Role::Prefill, {}, 2);
  // b is measured to be ten times as fast as a.
  fleet::Time now{};
  for (int i = 0; i < 200; ++i) {
    for (const auto& [name, milliseconds] : {std::pair("a", 100), std::pair("b", 10)}) {
      Pace& pace = set->find(name)->pace(0);
      pace.sent(now);
      pace.computed(now + std::chrono::milliseconds(milliseconds), 1000);
    }
    now += std::chrono::seconds(1);
  }
  const fleet::Booking first = book(requirements_with(prompt_of(100)));
  EXPECT_EQ(first.worker().name(), "b");
  // Until b has so much to do that a is sooner, all go there.
  std::vector<fleet::Booking> running;
  std::size_t to_b = 0;
  for (std::uint64_t i = 2; running.empty() || running.back().worker().name() == "b"; ++i, ++to_b) {
    ASSERT_LT(i, 100U);
    running.push_back(book(requirements_with(prompt_of(100, i))));
  }
  EXPECT_GE(to_b, 5U);
  EXPECT_LE(to_b, 20U);
  EXPECT_GT(load("b").prefill_seconds(fleet::Clock::now()), 0);
}

TEST_F(CandidateScorerTest, TtftCountsWhatIsOnItsWayAsCached) {
  serve(Policy::Ttft, Role::Prefill, {}, 2);
  const fleet::Booking first = book(requirements_with(prompt_of(100, 1, 90)));
  Choice why{.picked = 9, .candidates = {}};
  const auto second =
      test::book_worker(*set, requirements_with(prompt_of(100, 2, 90)), random, &why);
  ASSERT_TRUE(second);
  for (const auto& candidate : why.candidates) {
    const bool same = candidate.worker->name() == first.worker().name();
    EXPECT_EQ(candidate.weight->cached_tokens, same ? 90 * kBlock : 0);
    ASSERT_TRUE(candidate.weight->forecast);
  }
}

// Of a prompt of 110 blocks of which `a` has 100: what computing it on `b` wastes, in seconds.
struct HotBeginningTest : CandidateScorerTest {
  HotBeginningTest() { serve(Policy::Ttft, Role::Prefill, {}, 2); }
  WorkerRequirements requirements(std::uint64_t family, std::uint64_t common = 0) {
    auto prompt = prompt_of(110, family, common);
    prompt->hits.push_back({.key = key_of("a"), .block_size = kBlock, .device = 100});
    return requirements_with(prompt);
  }
  double waste(std::uint64_t family) {
    const auto choice = scheduling::peek(*set, requirements(family), random);
    EXPECT_TRUE(choice);
    for (const auto& candidate : choice->candidates) {
      if (candidate.worker->name() == "b") return candidate.weight->forecast->waste;
    }
    return -1;
  }
  const double all = kWasteWeight * kUnmeasuredSpeed.seconds_per_token * 1600;
};

TEST_F(HotBeginningTest, WhoComesAlonePaysForAllOfACopy) {
  EXPECT_DOUBLE_EQ(waste(1), all);
  // Looking makes nothing popular.
  for (int i = 0; i < 1000; ++i) waste(1);
  EXPECT_DOUBLE_EQ(waste(1), all);
}

TEST_F(HotBeginningTest, WhatManyWaitForMayBeComputedOnceMore) {
  for (int i = 0; i < 400; ++i) book(requirements(1));
  EXPECT_LT(waste(1), all / 10);
  EXPECT_DOUBLE_EQ(waste(2), all);
}

TEST_F(HotBeginningTest, WhoHasToWaitCountsOnceHoweverOftenItIsTried) {
  const fleet::Booking one = book(requirements(1));
  const fleet::Booking other = book(requirements(1));
  const double little = waste(1);
  WorkerRequirements waiting = requirements(1);
  waiting.busy = BusyThreshold{.tokens = 0, .share = {}};
  waiting.allowed = {{"a"}};
  const auto first = scheduling::book(*set, waiting, random);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code(), Errc::WorkersBusy);
  EXPECT_TRUE(first.error().arrival_counted);
  const double less = waste(1);
  EXPECT_LT(less, little);
  for (int i = 0; i < 100; ++i) {
    const auto again = scheduling::book(*set, waiting, random, {.count_arrival = false});
    ASSERT_FALSE(again);
    EXPECT_FALSE(again.error().arrival_counted);
  }
  EXPECT_GE(waste(1), less);  // time goes on, and nothing else
}

// Prompts with the same beginning share the steps in which their ends are computed.
TEST_F(HotBeginningTest, WhatOnlyTakesTheFloorOfAStepPressesNobody) {
  for (const char* const name : {"a", "b"}) {
    Pace& pace = set->find(name)->pace(0);
    fleet::Time now = fleet::Clock::now();
    for (int i = 0; i < 100; ++i) {
      const int tokens = i % 2 == 0 ? 100 : 10'000;
      pace.sent(now);
      now += std::chrono::milliseconds(40) + std::chrono::microseconds(tokens * 10);
      pace.computed(now, static_cast<std::uint64_t>(tokens));
    }
  }
  WorkerRequirements holder = requirements(1);
  holder.pin = Pin{"a", {}};
  std::vector<fleet::Booking> stampede;
  for (int i = 0; i < 8; ++i) stampede.push_back(book(holder));
  const double of_one_who_comes_alone = waste(2);
  EXPECT_GT(waste(1), 0.7 * of_one_who_comes_alone);
}

TEST_F(HotBeginningTest, SpreadsBeforeOthersDo) {
  // How many go to the one that has their beginning before the other one is better.
  const auto until_it_spreads = [this](bool alike) {
    std::vector<fleet::Booking> running;
    for (std::uint64_t i = 2; i < 1000; ++i) {
      running.push_back(book(requirements(i, alike ? 100 : 0)));
      if (running.back().worker().name() == "b") break;
    }
    return running.size();
  };
  const std::size_t different = until_it_spreads(false);
  EXPECT_LT(until_it_spreads(true), different);
}

TEST_F(HotBeginningTest, WhatNobodyHasIsNoWaste) {
  const auto choice = scheduling::peek(*set, requirements_with(prompt_of(110)), random);
  ASSERT_TRUE(choice);
  for (const auto& candidate : choice->candidates) EXPECT_EQ(candidate.weight->forecast->waste, 0);
}

TEST_F(CandidateScorerTest, TotalsAreThoseOfTheWeights) {
  for (const Policy policy : {Policy::Kv, Policy::LoadAware, Policy::Ttft}) {
    serve(policy, Role::Prefill, {}, 4);
    const fleet::Booking first = book(requirements_with(prompt_of(50, 1, 30)));
    auto prompt = prompt_of(60, 2, 30);
    prompt->hits.push_back({.key = key_of("c"), .block_size = kBlock, .device = 9, .host = 3});
    prompt->hits.push_back({.key = key_of("b"), .block_size = kBlock, .device = 7});
    prompt->hits.push_back({.key = {{99}, 0}, .block_size = kBlock, .device = 60});
    const WorkerRequirements requirements = requirements_with(prompt);
    const Popularity popularity;
    CandidateScorer scorer(Role::Prefill, policy, {}, set->ledger(), popularity, *set->members(),
                           requirements, fleet::Clock::now());
    const std::vector<std::uint32_t> all{0, 1, 2, 3};
    scorer.compare(all);
    for (const std::uint32_t i : all) EXPECT_EQ(scorer.total(i), scorer.weigh(i).total);
  }
}

TEST_F(CandidateScorerTest, FartherPrefillWorkersTakeLonger) {
  serve(Policy::Ttft, Role::Prefill, {}, 2);
  for (int i = 0; i < 20; ++i) set->find("a")->transfers(0).took(1600, 0.05, fleet::Clock::now());
  for (int i = 0; i < 20; ++i) set->find("b")->transfers(0).took(1600, 0.01, fleet::Clock::now());
  EXPECT_EQ(book(requirements_with(prompt_of(100))).worker().name(), "b");
  // A worker that answers itself hands nothing on.
  const auto choice = scheduling::peek(*set, requirements_with(prompt_of(100), Part::Both), random);
  ASSERT_TRUE(choice);
  for (const auto& candidate : choice->candidates)
    EXPECT_EQ(candidate.weight->forecast->transfer, 0);
}

TEST_F(CandidateScorerTest, WhatIsMeasuredBecomesLessToDoAsTimeGoesBy) {
  for (const auto model : {config::PrefillLoadModel::None, config::PrefillLoadModel::Measured}) {
    config::Cost cost;
    cost.prefill_load_model = model;
    serve(Policy::Kv, Role::Prefill, cost, 1);
    const fleet::Booking booking = book(requirements_with(prompt_of(100)));
    const fleet::Time later = fleet::Clock::now() + std::chrono::seconds(10);
    EXPECT_EQ(load("a").prefill_tokens(later),
              model == config::PrefillLoadModel::None ? 100 * kBlock : 0);
  }
}

TEST_F(CandidateScorerTest, WhatIsGivenBackBeforeItWasSentBlursNoMeasurement) {
  serve(Policy::Ttft, Role::Prefill, {}, 1);
  fleet::Booking sent = book(requirements_with(prompt_of(100, 1)));
  sent.sent();
  book(requirements_with(prompt_of(100, 2)));
  sent.prefill_completed();
  EXPECT_TRUE(set->find("a")->pace(0).measured());
}

TEST_F(CandidateScorerTest, WhatFailedBlursTheNextMeasurement) {
  serve(Policy::Ttft, Role::Prefill, {}, 1);
  fleet::Booking sent = book(requirements_with(prompt_of(100, 1)));
  sent.sent();
  book(requirements_with(prompt_of(100, 2))).sent();
  sent.prefill_completed();
  EXPECT_FALSE(set->find("a")->pace(0).measured());
}

TEST_F(CandidateScorerTest, WhoeverBindsLateWaitsForTheBestWorker) {
  serve(Policy::Ttft, Role::Prefill, {}, 2);
  WorkerRequirements requirements = requirements_with(prompt_of(1000));
  requirements.busy = BusyThreshold{.tokens = {}, .share = {}, .late = true};
  fleet::Booking first = book(requirements);
  requirements.prompt = prompt_of(1000, 2);
  const fleet::Booking second = book(requirements);
  EXPECT_NE(first.worker().name(), second.worker().name());
  requirements.prompt = prompt_of(1, 3);
  EXPECT_EQ(test::book_worker(*set, requirements, random).error().code(), Errc::WorkersBusy);
  const std::string freed = first.worker().name();
  first.prefill_completed();
  EXPECT_EQ(book(requirements).worker().name(), freed);
}

// It would never be learned that the guess is too slow.
TEST_F(CandidateScorerTest, WhoIsAnsweredAsAWholeWaitsForNoGuess) {
  serve(Policy::Ttft, Role::Aggregated, {}, 1);
  WorkerRequirements requirements = requirements_with(prompt_of_tokens(100'000), Part::Both);
  requirements.busy = BusyThreshold{.tokens = {}, .share = {}, .late = true};
  fleet::Booking first = book(requirements);
  first.sent();
  EXPECT_EQ(test::book_worker(*set, requirements, random).error().code(), Errc::WorkersBusy);
  requirements.observed = false;
  const fleet::Booking unseen = book(requirements);
  first.prefill_completed();
  ASSERT_TRUE(set->find("a")->pace(0).measured());
  const fleet::Booking longer = book(requirements_with(prompt_of_tokens(1'000'000'000)));
  EXPECT_EQ(test::book_worker(*set, requirements, random).error().code(), Errc::WorkersBusy);
}

// What is before it in the line, and itself.
TEST_F(CandidateScorerTest, APromptThatNobodySeesIsDueAfterThoseBeforeIt) {
  for (const Policy policy : {Policy::Ttft, Policy::Kv}) {
    serve(policy, Role::Aggregated, {}, 1);
    const fleet::Booking first = book(requirements_with(prompt_of_tokens(1'000'000'000)));
    const auto alone = first.prefill_due();
    const fleet::Booking second = book(requirements_with(prompt_of_tokens(1'000'000'000)));
    EXPECT_GT(alone, std::chrono::hours(10));
    EXPECT_GT(second.prefill_due(), alone + std::chrono::hours(10)) << model::to_string(policy);
  }
}

// A session is worth its prompt, and not more.
TEST_F(CandidateScorerTest, ASessionLeavesARankThatHasBecomeTooDear) {
  for (const Policy policy : {Policy::Kv, Policy::LoadAware, Policy::Ttft}) {
    serve(policy, Role::Aggregated, {}, 2);
    WorkerRequirements requirements = requirements_with(prompt_of(1000));
    requirements.affinity = RankId{set->find("a")->id(), {}};
    WorkerRequirements other = requirements_with(prompt_of(400, 2));
    other.pin = Pin{"a", {}};
    std::vector<fleet::Booking> before;
    before.push_back(book(other));
    EXPECT_EQ(book(requirements).worker().name(), "a") << model::to_string(policy);
    other.prompt = prompt_of(100'000, 3);
    before.push_back(book(other));
    EXPECT_EQ(book(requirements).worker().name(), "b") << model::to_string(policy);
    // Where requests wait, the queue's line says what is too much.
    requirements.busy = BusyThreshold{.tokens = 100'000'000, .share = {}, .late = false};
    EXPECT_EQ(book(requirements).worker().name(), "a") << model::to_string(policy);
  }
}

}  // namespace
}  // namespace baton::scheduling
