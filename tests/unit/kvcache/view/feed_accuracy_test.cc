// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feed_accuracy.h"

#include <gtest/gtest.h>

#include <random>

namespace baton::kvcache {
namespace {

// Prompts of one fleet differ by this much.
constexpr std::uint64_t kShort = 16;
constexpr std::uint64_t kLong = 4096;

class FeedAccuracyTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint64_t some(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution(least, most)(chance);
  }
  // Between what was said before and after.
  FeedAccuracy::Sample right() {
    const std::uint64_t least = some(0, kLong);
    const std::uint64_t most = some(least, kLong);
    return {.least = least, .most = most, .reported = some(least, most)};
  }
  // One side has nothing at all of what the other has.
  FeedAccuracy::Sample wrong() {
    const std::uint64_t tokens = some(kShort, kLong);
    if (chance() % 2 == 0) return {.least = tokens, .most = tokens, .reported = 0};
    return {.least = 0, .most = 0, .reported = tokens};
  }

  std::mt19937 chance{GetParam()};
  FeedAccuracy meter;
};

TEST_P(FeedAccuracyTest, WhoIsRightIsAlwaysBelieved) {
  for (int i = 0; i < 1'000; ++i) {
    meter.add(right());
    ASSERT_TRUE(meter.believed());
    ASSERT_EQ(meter.error(), 0);
  }
}

TEST_P(FeedAccuracyTest, WhoIsWrongFromTheStartIsSoonDoubted) {
  int samples = 0;
  while (meter.believed() && samples < 100) {
    meter.add(wrong());
    ++samples;
  }
  EXPECT_GT(samples, 3) << "a few are no ground for a judgement";
  EXPECT_LE(samples, 10);
  EXPECT_EQ(meter.error(), 1);
}

TEST_P(FeedAccuracyTest, WhoBecomesWrongIsDoubtedAndWhoBecomesRightIsBelievedAgain) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 200; ++i) meter.add(right());
    ASSERT_TRUE(meter.believed());
    int until_doubted = 0;
    while (meter.believed() && until_doubted < 100) {
      meter.add(wrong());
      ++until_doubted;
    }
    EXPECT_LT(until_doubted, 60);
    for (int i = 0; i < 200; ++i) meter.add(wrong());
    ASSERT_FALSE(meter.believed());
    int until_believed = 0;
    while (!meter.believed() && until_believed < 200) {
      meter.add(right());
      ++until_believed;
    }
    EXPECT_GT(until_believed, 10) << "one right answer proves nothing";
    EXPECT_LT(until_believed, 150);
  }
}

TEST_P(FeedAccuracyTest, AFewMistakesAmongManyAreForgiven) {
  for (int i = 0; i < 2'000; ++i) {
    meter.add(i % 10 == 9 ? wrong() : FeedAccuracy::Sample{kLong, kLong, kLong});
    ASSERT_TRUE(meter.believed());
    ASSERT_LT(meter.error(), 0.5);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FeedAccuracyTest, testing::Range(1U, 21U));

TEST(OneFeedAccuracyTest, WhatSaysNothingDoesNotCount) {
  FeedAccuracy meter;
  for (int i = 0; i < 100; ++i) meter.add({.least = 0, .most = 100, .reported = 0});
  EXPECT_EQ(meter.samples(), 0U);
  EXPECT_EQ(meter.error(), 0);
  meter.add({.least = 10, .most = 10, .reported = 10});
  EXPECT_EQ(meter.samples(), 1U);
}

TEST(OneFeedAccuracyTest, AnythingBetweenBeforeAndAfterIsRight) {
  FeedAccuracy meter;
  meter.add({.least = 10, .most = 20, .reported = 10});
  meter.add({.least = 10, .most = 20, .reported = 15});
  meter.add({.least = 10, .most = 20, .reported = 20});
  EXPECT_EQ(meter.error(), 0);
  meter.add({.least = 10, .most = 20, .reported = 25});
  EXPECT_GT(meter.error(), 0);
}

}  // namespace
}  // namespace baton::kvcache
