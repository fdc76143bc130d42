// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/wait_bound.h"

#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

WaitBound::Time at(double second) {
  return WaitBound::Time(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(second)));
}

// One behind all who wait.
bool allows(WaitBound& bound, double seconds, double at_least, WaitBound::Time now) {
  return bound.allows(seconds, at_least, seconds, now);
}

TEST(WaitBound, LetsNobodyWaitLongerThanTheLongest) {
  WaitBound bound(4);
  EXPECT_TRUE(allows(bound, 4, 0, at(0)));
  EXPECT_FALSE(allows(bound, 4.1, 0, at(0)));
  EXPECT_EQ(bound.limit(), 4);
}

TEST(WaitBound, ZeroIsNone) {
  WaitBound bound(0);
  EXPECT_TRUE(allows(bound, 1e9, 0, at(0)));
}

TEST(WaitBound, WhatTakesLongItselfMayWaitLong) {
  WaitBound bound(4);
  EXPECT_TRUE(allows(bound, 30, 40, at(0)));
  EXPECT_EQ(bound.limit(), 40);
}

TEST(WaitBound, ABurstIsNoOverload) {
  WaitBound bound(4);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(allows(bound, 5, 0, at(0)));
  EXPECT_TRUE(allows(bound, 3.5, 0, at(0.4)));  // it passes
  EXPECT_TRUE(allows(bound, 3.1, 0, at(0.9)));
  EXPECT_TRUE(allows(bound, 3.9, 0, at(2)));
}

TEST(WaitBound, WhereTooMuchComesTheQueueIsKeptShortUntilItIsOver) {
  WaitBound bound(4);
  for (double now = 0; now < 1; now += 0.1) EXPECT_TRUE(allows(bound, 3.9, 0, at(now)));
  for (double now = 1; now < 2; now += 0.1) EXPECT_FALSE(allows(bound, 4.1, 0, at(now)));
  EXPECT_FALSE(allows(bound, 3, 0, at(2)));
  EXPECT_EQ(bound.limit(), 1);
  EXPECT_FALSE(allows(bound, 1.1, 0, at(4)));
  EXPECT_TRUE(allows(bound, 0.9, 0, at(5)));
  EXPECT_FALSE(allows(bound, 1.1, 0, at(5)));
  EXPECT_TRUE(allows(bound, 0.2, 0, at(6)));  // nearly nobody waits
  EXPECT_TRUE(allows(bound, 3.9, 0, at(7)));
}

// They say nothing about how full the queue is.
TEST(WaitBound, WhoOvertakesTheOthersMayComeAndChangesNothing) {
  WaitBound bound(4);
  for (double now = 0; now < 1; now += 0.1) {
    EXPECT_FALSE(bound.allows(4.1, 0, 4.1, at(now)));
    EXPECT_TRUE(bound.allows(0.1, 0, 4.1, at(now)));
  }
  EXPECT_FALSE(bound.allows(3, 0, 4, at(1)));
  EXPECT_EQ(bound.limit(), 1);
}

}  // namespace
}  // namespace baton::scheduling
