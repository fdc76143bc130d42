// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace baton::scheduling {
namespace {

constexpr PrefillSpeed kSpeed{.seconds_per_step = 0.01, .seconds_per_token = 1.0 / 10'000};

double total(const PromptFacts& prompt, const RankFacts& rank) {
  return forecast(prompt, rank).total;
}

// Prompts and ranks of any kind.
class Dice {
 public:
  double upto(double most) { return std::uniform_real_distribution(0.0, most)(random_); }
  PromptFacts prompt() {
    const double tokens = upto(50'000);
    return {.tokens = tokens, .best_cached = upto(tokens), .copy_share = upto(1.2) - 0.2};
  }
  RankFacts rank(const PromptFacts& prompt) {
    return {.queue_seconds = upto(10),
            .cached_tokens = upto(prompt.best_cached),
            .speed = {.seconds_per_step = upto(0.1), .seconds_per_token = 1e-6 + upto(1e-3)},
            .transfer_seconds = upto(1),
            .preference = 0.4 + upto(2)};
  }

 private:
  std::mt19937_64 random_{20261115};
};

TEST(ForecastTest, AddsUpQueueComputationAndTransfer) {
  const Forecast terms =
      forecast({.tokens = 5'000, .best_cached = 2'000}, {.queue_seconds = 0.25,
                                                         .cached_tokens = 2'000,
                                                         .speed = kSpeed,
                                                         .transfer_seconds = 0.02,
                                                         .preference = 1});
  EXPECT_DOUBLE_EQ(terms.wait, 0.25);
  EXPECT_DOUBLE_EQ(terms.compute, 0.01 + 0.3);
  EXPECT_DOUBLE_EQ(terms.transfer, 0.02);
  EXPECT_DOUBLE_EQ(terms.waste, 0);
  EXPECT_DOUBLE_EQ(terms.total, 0.25 + 0.31 + 0.02);
}

TEST(ForecastTest, ComputingWhatAnotherHasWeighsMore) {
  const PromptFacts prompt{.tokens = 5'000, .best_cached = 4'000};
  const Forecast terms = forecast(prompt, {.cached_tokens = 1'000, .speed = kSpeed});
  EXPECT_DOUBLE_EQ(terms.waste, kWasteWeight * 0.3);
  EXPECT_DOUBLE_EQ(terms.total, 0.01 + 0.4 + kWasteWeight * 0.3);
}

TEST(ForecastTest, WhatNobodyHasIsNoWaste) {
  const PromptFacts prompt{.tokens = 5'000, .best_cached = 0};
  EXPECT_DOUBLE_EQ(forecast(prompt, {.speed = kSpeed}).waste, 0);
}

TEST(ForecastTest, OfACopyOthersWantTooOnlyAShareIsWaste) {
  PromptFacts prompt{.tokens = 5'000, .best_cached = 4'000, .copy_share = 0.25};
  const RankFacts rank{.cached_tokens = 0, .speed = kSpeed};
  EXPECT_DOUBLE_EQ(forecast(prompt, rank).waste, kWasteWeight * 0.1);
  prompt.copy_share = 0;
  EXPECT_DOUBLE_EQ(forecast(prompt, rank).waste, 0);
}

TEST(ForecastTest, ConversationStaysWithItsCacheWhereAHotPromptMovesOn) {
  const RankFacts cached{.queue_seconds = 0.9, .cached_tokens = 6'000, .speed = kSpeed};
  const RankFacts idle{.queue_seconds = 0, .cached_tokens = 0, .speed = kSpeed};
  PromptFacts prompt{.tokens = 6'100, .best_cached = 6'000, .copy_share = copy_share(0, 0.02, 1)};
  EXPECT_LT(total(prompt, cached), total(prompt, idle));
  prompt.copy_share = copy_share(40, 0.02, 1);
  EXPECT_GT(total(prompt, cached), total(prompt, idle));
}

TEST(CopyShareTest, WhoComesAlonePaysForAllOfACopy) {
  EXPECT_DOUBLE_EQ(copy_share(0, 0.5, 1), 1);
  EXPECT_DOUBLE_EQ(copy_share(0, 0.5, 0), 1);
}

TEST(CopyShareTest, WhatIsPopularButCheapDoesNotSpread) {
  // A hundred per second, which take a hundredth of one rank's time.
  EXPECT_GT(copy_share(100, 0.0001, 1), 0.9);
}

TEST(CopyShareTest, WhatPressesItsHoldersIsNearlyFree) {
  EXPECT_NEAR(copy_share(100, kPressed / 100, 1), 0, 0.001);
  EXPECT_NEAR(copy_share(100, 4 * kPressed / 100, 4), 0, 0.001);
  EXPECT_NEAR(copy_share(100, kPressed / 100, 2), 0.5, 0.001);
}

TEST(CopyShareTest, WhereHoldersArePressedHardThoseWhoComeAfterPay) {
  const double paid = -kMostPaid / kWasteWeight;
  EXPECT_NEAR(copy_share(100, 2 * kPressed / 100, 1), paid, 0.001);
  EXPECT_NEAR(copy_share(100, 2 * kPressed / 100, 2), 0, 0.001);
  // One in a minute: what another would have of it is half as much as oneself.
  EXPECT_NEAR(copy_share(1.0 / 60, 60, 1), (1 + paid) / 2, 0.001);
}

// A document of 4,000 tokens that takes three quarters of the time of both who have it.
TEST(ForecastTest, HotDocumentMovesToAnIdleRankBeforeItsHoldersQueue) {
  const PromptFacts prompt{
      .tokens = 4'200, .best_cached = 4'000, .copy_share = copy_share(60, 0.025, 2)};
  const RankFacts idle{.queue_seconds = 0, .cached_tokens = 0, .speed = kSpeed};
  RankFacts holder{.queue_seconds = 0.02, .cached_tokens = 4'000, .speed = kSpeed};
  EXPECT_GT(total(prompt, holder), total(prompt, idle));
  holder.queue_seconds = 0;
  EXPECT_LT(total(prompt, holder), total(prompt, idle));
}

TEST(CopyShareTest, MorePressureNeverMakesACopyDearer) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    const double rate = dice.upto(100);
    const double seconds = dice.upto(0.1);
    const double holders = 1 + dice.upto(10);
    const double before = copy_share(rate, seconds, holders);
    EXPECT_GT(before, -1 / kWasteWeight);
    EXPECT_LE(before, 1);
    EXPECT_LE(copy_share(rate + dice.upto(10), seconds, holders), before);
    EXPECT_LE(copy_share(rate, seconds + dice.upto(0.1), holders), before);
    EXPECT_LE(copy_share(rate, seconds, 1 + dice.upto(holders - 1)), before);
  }
}

TEST(ForecastTest, MoreOverlapNeverCostsMore) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    const PromptFacts prompt = dice.prompt();
    RankFacts rank = dice.rank(prompt);
    const double before = total(prompt, rank);
    rank.cached_tokens += dice.upto(prompt.tokens);
    EXPECT_LE(total(prompt, rank), before);
  }
}

TEST(ForecastTest, MoreOverlapThanAnyOtherNeverCostsMore) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    PromptFacts prompt = dice.prompt();
    RankFacts rank = dice.rank(prompt);
    const double before = total(prompt, rank);
    rank.cached_tokens = prompt.best_cached =
        prompt.best_cached + dice.upto(prompt.tokens - prompt.best_cached);
    EXPECT_LE(total(prompt, rank), before);
  }
}

TEST(ForecastTest, LongerQueueOrTransferNeverCostsLess) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    const PromptFacts prompt = dice.prompt();
    RankFacts rank = dice.rank(prompt);
    const double before = total(prompt, rank);
    rank.queue_seconds += dice.upto(10);
    const double queued = total(prompt, rank);
    EXPECT_GE(queued, before);
    rank.transfer_seconds += dice.upto(1);
    EXPECT_GE(total(prompt, rank), queued);
  }
}

TEST(ForecastTest, WithoutTrustTheRankWithFewerRequestsIsTheBetterOne) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    const PromptFacts prompt{.tokens = 1 + dice.upto(50'000)};
    RankFacts one = dice.rank(prompt), other = dice.rank(prompt);
    one.cached_tokens = other.cached_tokens = 0;
    one.transfer_seconds = other.transfer_seconds = 0;
    one.preference = other.preference = 1;
    one.usual = other.usual = kSpeed;
    one.requests = 3;
    other.requests = 4;
    EXPECT_LT(forecast(prompt, one, 0).total, forecast(prompt, other, 0).total);
  }
}

TEST(ForecastTest, HalfTrustedItIsHalfwayBetweenForecastAndLoad) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    const PromptFacts prompt = dice.prompt();
    RankFacts rank = dice.rank(prompt);
    rank.usual = kSpeed;
    rank.requests = 2;
    const double believed = forecast(prompt, rank, 1).total;
    const double by_load = forecast(prompt, rank, 0).total;
    EXPECT_NEAR(forecast(prompt, rank, 0.5).total, (believed + by_load) / 2,
                1e-9 * (std::abs(believed) + std::abs(by_load)));
  }
}

TEST(ForecastTest, MoreInFlightNeverBringsTheFirstTokenEarlier) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    const PromptFacts prompt = dice.prompt();
    RankFacts rank = dice.rank(prompt);
    rank.usual = {.seconds_per_step = dice.upto(0.1), .seconds_per_token = 1e-6 + dice.upto(1e-3)};
    const double trust = dice.upto(1);
    rank.requests = static_cast<std::int64_t>(dice.upto(50));
    const double before = forecast(prompt, rank, trust).total;
    ++rank.requests;
    rank.queue_seconds += dice.upto(1);
    EXPECT_GE(forecast(prompt, rank, trust).total, before);
  }
}

TEST(ForecastTest, WithoutAMeasurementItIsWhatIsUsual) {
  const PublishedSpeed nothing;
  SiblingPace siblings;
  EXPECT_EQ(speed_of(nothing, nullptr, Time()), kUnmeasuredSpeed);
  EXPECT_EQ(speed_of(nothing, &siblings, Time()), kUnmeasuredSpeed);
  for (int i = 0; i < 100; ++i) siblings.add({.tokens = 1000, .seconds = 0.5}, Time());
  Dice dice;
  for (int i = 0; i < 1000; ++i) {
    const PromptFacts prompt = dice.prompt();
    EXPECT_EQ(forecast(prompt, {.speed = speed_of(nothing, &siblings, Time())}).total,
              forecast(prompt, {.speed = siblings.speed()}).total);
  }
}

TEST(HasRoomTest, WhatIsNotKnownToWaitIsNotHeldBack) {
  EXPECT_FALSE(has_room(10, 100'000, 8192, kSpeed));
  EXPECT_TRUE(has_room(10, 100'000, 8192, kSpeed, 0));
  EXPECT_FALSE(has_room(10, 100'000, 8192, kSpeed, 0.5));
}

TEST(ForecastTest, WhereItDecodesAPromptHoldsUpAllWhoRun) {
  const PromptFacts prompt{.tokens = 1'000, .best_cached = 500};
  RankFacts holder{.cached_tokens = 500, .speed = kSpeed, .requests = 30};
  const RankFacts idle{.speed = kSpeed, .decodes = true};
  EXPECT_EQ(forecast(prompt, holder).stall, 0) << "a prefill worker";
  EXPECT_LT(total(prompt, holder), total(prompt, idle));
  holder.decodes = true;
  EXPECT_DOUBLE_EQ(forecast(prompt, holder).stall, kStallWeight * 30 * 0.06);
  EXPECT_LT(total(prompt, holder), total(prompt, idle))
      << "a copy of 500 tokens costs more than that";
  holder.requests = 60;
  EXPECT_GT(total(prompt, holder), total(prompt, idle));
}

TEST(ForecastTest, SlowerRankNeverCostsLess) {
  Dice dice;
  for (int i = 0; i < 10'000; ++i) {
    const PromptFacts prompt = dice.prompt();
    RankFacts rank = dice.rank(prompt);
    const double before = total(prompt, rank);
    rank.speed.seconds_per_token *= 1 + dice.upto(3);
    rank.speed.seconds_per_step *= 1 + dice.upto(3);
    EXPECT_GE(total(prompt, rank), before);
  }
}

TEST(ForecastTest, PreferenceScalesTheWhole) {
  const PromptFacts prompt{.tokens = 1'000, .best_cached = 0};
  RankFacts rank{.queue_seconds = 0.5, .speed = kSpeed};
  const double plain = total(prompt, rank);
  rank.preference = 0.5;
  EXPECT_DOUBLE_EQ(total(prompt, rank), plain / 2);
}

TEST(ForecastTest, NothingIsNegativeWhereMoreIsCachedThanThePromptHas) {
  const PromptFacts prompt{.tokens = 100, .best_cached = 128};
  const Forecast full = forecast(prompt, {.cached_tokens = 128, .speed = kSpeed});
  EXPECT_DOUBLE_EQ(full.total, kSpeed.seconds_per_step);
  const Forecast none = forecast(prompt, {.queue_seconds = -1, .speed = kSpeed});
  EXPECT_DOUBLE_EQ(none.wait, 0);
  EXPECT_DOUBLE_EQ(none.waste, kWasteWeight * 0.01);
}

TEST(ForecastTest, WhoJoinsAStepPaysNoFloor) {
  const PromptFacts prompt{.tokens = 1'000};
  const Forecast alone = forecast(prompt, {.speed = kSpeed});
  const Forecast joins = forecast(prompt, {.joins_step = true, .speed = kSpeed});
  EXPECT_DOUBLE_EQ(alone.compute - joins.compute, kSpeed.seconds_per_step);
}

TEST(TurnTest, ShorterOnesGoFirst) {
  EXPECT_LT(turn(0.1, 7), turn(0.2, 7));
  EXPECT_LT(turn(0.1, 7.1), turn(2, 7));
}

TEST(TurnTest, AmongEqualsTheFirstGoesFirst) { EXPECT_LT(turn(0.1, 7), turn(0.1, 7.001)); }

TEST(TurnTest, NobodyIsOvertakenForEver) {
  // Those who come this much later go behind it, however little they need.
  const double seconds = 4;
  EXPECT_GT(turn(0, seconds / kWaitWeight + 0.01), turn(seconds, 0));
}

constexpr double kBatch = 8192;

TEST(HasRoomTest, UntilItHasEnoughToDo) {
  EXPECT_TRUE(has_room(0, 0, kBatch, kSpeed));
  EXPECT_TRUE(has_room(kAheadSeconds / 2, 100'000, kBatch, kSpeed));
  EXPECT_FALSE(has_room(1, 1'000, kBatch, kSpeed));
}

TEST(HasRoomTest, ManyShortPromptsShareALongStep) {
  const PrefillSpeed slow_step{.seconds_per_step = 0.3, .seconds_per_token = 1.0 / 10'000};
  EXPECT_TRUE(has_room(0.31, 100, kBatch, slow_step));
  EXPECT_TRUE(has_room(0.7, 1'000, kBatch, slow_step));
  EXPECT_FALSE(has_room(3, 25'000, 1e6, slow_step));   // more than the floors that it shares
  EXPECT_FALSE(has_room(1, 2'000, 2'000, slow_step));  // more than a step takes in
}

}  // namespace
}  // namespace baton::scheduling
