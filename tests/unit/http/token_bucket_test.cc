// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/token_bucket.h"

#include <gtest/gtest.h>

namespace baton::http {
namespace {

using namespace std::chrono_literals;

constexpr TokenBucket::Clock::time_point kBegin{1h};

// How many can be taken at once.
int drain(TokenBucket& bucket, const Rate& rate, TokenBucket::Clock::time_point now) {
  int taken = 0;
  while (taken < 10'000 && !bucket.take(rate, now)) ++taken;
  return taken;
}

TEST(TokenBucket, HoldsABurstAndRefillsAtItsRate) {
  const Rate rate = Rate::of(10, 5);
  TokenBucket bucket;
  EXPECT_EQ(drain(bucket, rate, kBegin), 5);
  EXPECT_EQ(drain(bucket, rate, kBegin + 99ms), 0);
  EXPECT_EQ(drain(bucket, rate, kBegin + 100ms), 1);
  EXPECT_EQ(drain(bucket, rate, kBegin + 350ms), 2);
  EXPECT_EQ(drain(bucket, rate, kBegin + 10s), 5) << "and never holds more";
}

TEST(TokenBucket, TellsHowLongUntilThereIsOne) {
  const Rate rate = Rate::of(0.5, 1);
  TokenBucket bucket;
  EXPECT_FALSE(bucket.take(rate, kBegin));
  const auto wait = bucket.take(rate, kBegin + 500ms);
  ASSERT_TRUE(wait);
  EXPECT_EQ(*wait, 1500ms);
  EXPECT_TRUE(bucket.take(rate, kBegin + 500ms + *wait - 1ns));
  EXPECT_FALSE(bucket.take(rate, kBegin + 500ms + *wait)) << "refusals cost nothing";
}

TEST(TokenBucket, IsFullAgainWhenAllOfItIsBack) {
  const Rate rate = Rate::of(10, 5);
  TokenBucket bucket;
  EXPECT_TRUE(bucket.full(kBegin));
  bucket.take(rate, kBegin);
  bucket.take(rate, kBegin);
  EXPECT_FALSE(bucket.full(kBegin + 199ms));
  EXPECT_TRUE(bucket.full(kBegin + 200ms));
}

TEST(TokenBucket, WithoutABurstHoldsASecondsWorth) {
  TokenBucket fast;
  EXPECT_EQ(drain(fast, Rate::of(7.2, 0), kBegin), 8);
  TokenBucket slow;
  EXPECT_EQ(drain(slow, Rate::of(0.01, 0), kBegin), 1);
}

TEST(TokenBucket, LimitsNothingWithoutARate) {
  TokenBucket bucket;
  EXPECT_FALSE(Rate::of(0, 5).limited());
  EXPECT_EQ(drain(bucket, Rate::of(0, 5), kBegin), 10'000);
  EXPECT_TRUE(bucket.full(kBegin));
}

// The bounds that the configuration has.
TEST(TokenBucket, KeepsItsCountAtTheExtremes) {
  TokenBucket slow;
  const Rate slowest = Rate::of(0.001, 1'000'000);
  EXPECT_EQ(drain(slow, slowest, kBegin), 10'000);
  EXPECT_FALSE(slow.full(kBegin + 24h * 100));
  TokenBucket fast;
  const Rate fastest = Rate::of(1'000'000, 1);
  EXPECT_EQ(drain(fast, fastest, kBegin), 1);
  EXPECT_EQ(drain(fast, fastest, kBegin + 1us), 1);
}

}  // namespace
}  // namespace baton::http
