// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/batch_limit.h"

#include "scheduling/policy/load_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace baton::scheduling {
namespace {

using std::chrono::seconds;

Clock::duration in_clock(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// A limit that is told of windows one by one.
struct BatchLimitTest : testing::Test {
  static constexpr double kTarget = 0.01;

  // One window of streams whose tokens came so many times the objective apart.
  void window(double requests, double share) {
    const double gap = share * kTarget;
    now += in_clock(static_cast<double>(BatchLimit::kTokens) * gap + 0.001);
    for (int i = 0; i < 8; ++i) {
      now += in_clock(4 * kTarget);
      limit.observe(requests, gap, kTarget, now);
    }
  }

  BatchLimit limit;
  Time now = Time(seconds(1'000));
};

TEST_F(BatchLimitTest, IsNoneWhileTheObjectiveIsKept) {
  EXPECT_EQ(limit.most(), BatchLimit::kUnlimited);
  for (double requests = 1; requests < 1'000; requests *= 2) window(requests, 1);
  limit.forget(now + seconds(100));
  EXPECT_EQ(limit.most(), BatchLimit::kUnlimited);
}

TEST_F(BatchLimitTest, IsCutByHalfOfWhatIsOver) {
  window(100, 1.25);
  EXPECT_EQ(limit.most(), 90);
  window(90, 1.001);
  EXPECT_EQ(limit.most(), 89) << "by one request at least";
}

TEST_F(BatchLimitTest, TheSameBatchSeenAgainCostsNoMore) {
  for (int i = 0; i < 10; ++i) {
    window(100, 1.25);
    EXPECT_EQ(limit.most(), 90) << i;
  }
}

TEST_F(BatchLimitTest, OneWindowCostsThreeTenthsAtMost) {
  window(100, 50);
  EXPECT_EQ(limit.most(), 70);
}

TEST_F(BatchLimitTest, IsNeverBelowOne) {
  for (int i = 0; i < 20; ++i) window(2, 50);
  EXPECT_EQ(limit.most(), 1);
  window(1, 50);
  EXPECT_EQ(limit.most(), 1);
}

TEST_F(BatchLimitTest, OneAloneSaysNothingOfBatches) {
  for (int i = 0; i < 20; ++i) window(1, 50);
  EXPECT_EQ(limit.most(), BatchLimit::kUnlimited);
}

TEST_F(BatchLimitTest, TwoSamplesAreNoWindow) {
  for (int i = 0; i < 2; ++i) limit.observe(100, 50 * kTarget, kTarget, now += seconds(2));
  EXPECT_EQ(limit.most(), BatchLimit::kUnlimited);
}

TEST_F(BatchLimitTest, WhatBeganBeforeTheLastChangeIsNotCountedAgain) {
  window(100, 2);
  ASSERT_EQ(limit.most(), 75);
  // Streams that were cut meanwhile make the batch smaller; their gaps are from before.
  for (int i = 0; i < 8; ++i) {
    now += std::chrono::milliseconds(10);
    limit.observe(80, 2 * kTarget, kTarget, now);
  }
  EXPECT_EQ(limit.most(), 75);
}

TEST_F(BatchLimitTest, GrowsFasterTheMoreRoomThereIs) {
  window(100, 50);
  ASSERT_EQ(limit.most(), 70);
  window(70, 0.3);
  EXPECT_EQ(limit.most(), 77);
  window(77, 0.8);
  EXPECT_EQ(limit.most(), 78);
  for (int i = 0; i < 4; ++i) window(78, 0.95);
  EXPECT_EQ(limit.most(), 79);
  for (int i = 0; i < 100; ++i) window(79, 0.99);
  EXPECT_EQ(limit.most(), 79) << "just below the objective it stays";
}

TEST_F(BatchLimitTest, GrowsOnlyWhereTheBatchComesNearIt) {
  window(100, 50);
  for (int i = 0; i < 10; ++i) window(50, 0.1);
  EXPECT_EQ(limit.most(), 70);
  window(69, 0.1);
  EXPECT_EQ(limit.most(), 77);
}

// Three streams keep the objective and four do not: it is not tried with four all the time.
TEST_F(BatchLimitTest, ReturnsSlowlyToABatchThatBroke) {
  window(4, 1.1);
  ASSERT_EQ(limit.most(), 3);
  for (int i = 0; i < 15; ++i) {
    window(3, 0.85);
    EXPECT_EQ(limit.most(), 3) << i;
  }
  for (int i = 0; i < 10; ++i) window(3, 0.85);
  EXPECT_EQ(limit.most(), 4);
  for (int i = 0; i < 10; ++i) window(static_cast<double>(limit.most()), 0.5);
  EXPECT_GT(limit.most(), 8) << "the engine has become faster";
}

TEST_F(BatchLimitTest, IsForgottenSlowlyWhereNobodyTells) {
  window(200, 50);
  window(140, 50);
  window(98, 50);
  ASSERT_EQ(limit.most(), 68);
  limit.forget(now + seconds(29));
  EXPECT_EQ(limit.most(), 68);
  limit.forget(now + seconds(31));
  EXPECT_EQ(limit.most(), 75);
  limit.forget(now + seconds(59));
  EXPECT_EQ(limit.most(), 75);
  limit.forget(now + seconds(61));
  EXPECT_EQ(limit.most(), 83);
  limit.forget(now + std::chrono::hours(3));
  EXPECT_EQ(limit.most(), BatchLimit::kUnlimited);
}

TEST_F(BatchLimitTest, IsNeverRaisedWhileTokensComeTooLate) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> requests(1, 300);
  std::uniform_real_distribution<double> share(1.0001, 20);
  for (int i = 0; i < 3'000; ++i) {
    const std::int64_t before = limit.most();
    window(requests(random), share(random));
    EXPECT_LE(limit.most(), before);
    EXPECT_GE(limit.most(), 1);
  }
}

// What a window shows to hold is not forbidden, and what it shows to break is.
TEST_F(BatchLimitTest, IsBelowWhatBrokeAndNoLowerThanWhatHolds) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 1'000; ++i) {
    BatchLimit fresh;
    const double holds = std::uniform_real_distribution<double>(1, 200)(random);
    const double floor = std::uniform_real_distribution<double>(0, 0.9)(random);
    const double runs =
        std::ceil(holds * std::uniform_real_distribution<double>(1.01, 1.8)(random)) + 1;
    const double gap = kTarget * (floor + (1 - floor) * runs / holds);
    for (int sample = 0; sample < 16; ++sample) {
      now += in_clock(4 * kTarget);
      fresh.observe(runs, gap, kTarget, now);
    }
    ASSERT_LT(static_cast<double>(fresh.most()), runs);
    EXPECT_GE(static_cast<double>(fresh.most() + 2), std::min(holds, 0.7 * runs));
  }
}

TEST_F(BatchLimitTest, MayBeToldByManyThreads) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this] {
      for (int i = 1; i <= 2'000; ++i) {
        limit.observe(50, i % 2 == 0 ? 0.5 * kTarget : 2 * kTarget, kTarget,
                      now + i * std::chrono::milliseconds(10));
        limit.forget(now + i * std::chrono::milliseconds(10));
        EXPECT_GE(limit.most(), 1);
      }
    });
  }
}

TEST(TokenGaps, BeginWithTheFirstTokenAndAreSampledEverySixteen) {
  BatchLimit limit;
  RankLoad load;
  TokenGaps gaps(limit, load, 0.01);
  EXPECT_FALSE(gaps.is_due(0));
  EXPECT_TRUE(gaps.is_due(1));
  gaps.sample(1, Time(seconds(100)));
  EXPECT_FALSE(gaps.is_due(16));
  EXPECT_TRUE(gaps.is_due(17));
  gaps.sample(20, Time(seconds(101)));
  EXPECT_FALSE(gaps.is_due(35));
  EXPECT_TRUE(gaps.is_due(36));
}

TEST(TokenGaps, TellTheLimitAndWhetherItGrew) {
  const auto ledger = std::make_shared<LoadLedger>();
  const auto load = std::make_shared<RankLoad>();
  Time now(seconds(1'000));
  std::list<LoadLedger::Entry> running;
  for (int i = 0; i < 10; ++i) running.push_back(ledger->book({{1}, 0}, load, {}, now));
  BatchLimit limit;
  TokenGaps gaps(limit, *load, 0.01);
  std::uint64_t tokens = 1;
  EXPECT_FALSE(gaps.sample(tokens, now));
  const auto stream = [&](double gap) {
    now += in_clock(16 * gap);
    return gaps.sample(tokens += 16, now);
  };
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(stream(0.02)) << "a limit makes no place";
  EXPECT_EQ(limit.most(), 7);
  for (int i = 0; i < 3; ++i) running.pop_back();
  bool grew = false;
  for (int i = 0; i < 20; ++i) grew = stream(0.002) || grew;
  EXPECT_TRUE(grew);
  EXPECT_GT(limit.most(), 7);
}

// Generated engines, and a router that keeps them as full as the limit lets it.

// A step lasts `floor`, and `each` more for each request; all that run get a token of it.
struct Engine {
  double floor;  // seconds
  double each;
  double target;
  std::int64_t offered;  // never more at once

  double gap(double requests) const { return floor + each * requests; }
  double most() const { return std::floor((target - floor) / each); }
};

class FullEngine {
 public:
  // Of the streams, `slow` are read by clients that take two steps of three to come back.
  explicit FullEngine(Engine engine, double slow = 0, std::uint64_t seed = 1)
      : engine_(engine), slow_(slow), random_(seed) {}

  void run(double seconds) {
    batches_.clear();
    const Time end = now_ + in_clock(seconds);
    while (now_ < end) step();
  }
  void stall(double seconds) { now_ += in_clock(seconds); }
  void becomes(Engine engine) { engine_ = engine; }

  std::int64_t limit() const { return limit_.most(); }
  // Of the steps of the last run().
  double median_batch() {
    std::ranges::sort(batches_);
    return static_cast<double>(batches_[batches_.size() / 2]);
  }
  double median_gap() { return engine_.gap(median_batch()); }

 private:
  struct Stream {
    LoadLedger::Entry entry;
    TokenGaps gaps;
    bool slow;
    std::uint64_t length;
    std::uint64_t tokens = 0;
  };

  double dice() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  void fill() {
    while (load_->requests() < std::min(limit_.most(), engine_.offered)) {
      const bool slow = dice() < slow_;
      // As many are there at a time as come: those that are read slowly are shorter.
      const auto length = static_cast<std::uint64_t>((50 + 350 * dice()) / (slow ? 3 : 1));
      streams_.push_back({.entry = ledger_->book({{1}, 0}, load_, {}, now_),
                          .gaps = TokenGaps(limit_, *load_, engine_.target),
                          .slow = slow,
                          .length = length});
    }
  }
  void step() {
    fill();
    const std::int64_t batch = load_->requests();
    batches_.push_back(batch);
    const double noise = std::lognormal_distribution<double>(0, 0.1)(random_);
    now_ += in_clock(engine_.gap(static_cast<double>(batch)) * noise);
    for (auto one = streams_.begin(); one != streams_.end();) {
      const bool reads = !one->slow || dice() * 3 < 1;
      if (reads && one->gaps.is_due(++one->tokens)) one->gaps.sample(one->tokens, now_);
      one = one->tokens >= one->length ? streams_.erase(one) : std::next(one);
    }
  }

  Engine engine_;
  const double slow_;
  std::mt19937_64 random_;
  Time now_{seconds(1'000)};
  BatchLimit limit_;
  const std::shared_ptr<LoadLedger> ledger_ = std::make_shared<LoadLedger>();
  const std::shared_ptr<RankLoad> load_ = std::make_shared<RankLoad>();
  std::list<Stream> streams_;
  std::vector<std::int64_t> batches_;
};

constexpr Engine kEngines[] = {
    {.floor = 0.010, .each = 0.0004, .target = 0.04, .offered = 400},
    {.floor = 0.010, .each = 0.0008, .target = 0.04, .offered = 200},
    {.floor = 0.005, .each = 0.003, .target = 0.05, .offered = 100},
    {.floor = 0.020, .each = 0.0015, .target = 0.05, .offered = 100},
};

TEST(GeneratedEngine, IsFilledToJustBelowWhereItsTokensComeTooLate) {
  for (const Engine& engine : kEngines) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      FullEngine full(engine, 0, seed);
      full.run(200);
      full.run(100);
      EXPECT_LE(full.median_gap(), engine.target) << engine.each;
      EXPECT_GE(full.median_batch(), 0.85 * engine.most()) << engine.each;
    }
  }
}

// Their gaps are three times the engine's.
TEST(GeneratedEngine, IsFilledAsFarWhereFourOfTenClientsReadSlowly) {
  for (const Engine& engine : kEngines) {
    FullEngine full(engine, 0.4);
    full.run(200);
    full.run(100);
    EXPECT_LE(full.median_gap(), engine.target) << engine.each;
    EXPECT_GE(full.median_batch(), 0.85 * engine.most()) << engine.each;
  }
}

TEST(GeneratedEngine, IsFollowedWhereItBecomesSlowerAndFasterAgain) {
  Engine engine = kEngines[0];
  FullEngine full(engine);
  full.run(200);
  engine.each *= 2;
  full.becomes(engine);
  full.run(100);
  full.run(100);
  EXPECT_LE(full.median_gap(), engine.target);
  EXPECT_GE(full.median_batch(), 0.85 * engine.most());
  engine.each /= 2;
  full.becomes(engine);
  full.run(150);
  full.run(100);
  EXPECT_LE(full.median_gap(), engine.target);
  EXPECT_GE(full.median_batch(), 0.85 * engine.most());
}

TEST(GeneratedEngine, IsHardlyLimitedByOneStall) {
  Engine engine = kEngines[0];
  engine.offered = 60;  // which it could serve
  FullEngine full(engine);
  full.run(20);
  full.stall(2);
  full.run(3);
  EXPECT_GE(full.limit(), 40);
  full.run(80);
  full.run(20);
  EXPECT_GE(full.median_batch(), 0.95 * 60);
}

}  // namespace
}  // namespace baton::scheduling
