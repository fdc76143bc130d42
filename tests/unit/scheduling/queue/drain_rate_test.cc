// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/drain_rate.h"

#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using std::chrono::seconds;

DrainRate::Clock::time_point at_second(int second) {
  return DrainRate::Clock::time_point(seconds(second));
}

TEST(DrainRate, TellsHowLongTheQueueWillTake) {
  DrainRate rate(at_second(0));
  rate.begin(at_second(0));
  for (int second = 1; second <= 100; ++second) rate.served(1000, at_second(second));
  EXPECT_NEAR(static_cast<double>(rate.time_for(20'000, at_second(100)).count()), 20, 2);
  EXPECT_EQ(rate.time_for(0, at_second(100)), seconds(1));
  EXPECT_EQ(rate.time_for(10'000'000, at_second(100)), seconds(60));
}

TEST(DrainRate, IsRightSoonAfterTheBeginning) {
  DrainRate rate(at_second(0));
  rate.begin(at_second(0));
  rate.served(1000, at_second(1));
  rate.served(1000, at_second(2));
  EXPECT_NEAR(static_cast<double>(rate.time_for(20'000, at_second(2)).count()), 20, 4);
}

TEST(DrainRate, FollowsTheSpeedOfLate) {
  DrainRate rate(at_second(0));
  rate.begin(at_second(0));
  for (int second = 1; second <= 100; ++second) rate.served(100, at_second(second));
  for (int second = 101; second <= 150; ++second) rate.served(1000, at_second(second));
  EXPECT_NEAR(static_cast<double>(rate.time_for(20'000, at_second(150)).count()), 20, 2);
}

TEST(DrainRate, WithNothingServedItTakesAsLongAgainAsItHas) {
  DrainRate rate(at_second(0));
  rate.begin(at_second(0));
  EXPECT_EQ(rate.time_for(1000, at_second(0)), seconds(1));
  EXPECT_EQ(rate.time_for(1000, at_second(7)), seconds(7));
  EXPECT_EQ(rate.time_for(1000, at_second(1000)), seconds(60));
}

TEST(DrainRate, ForgetsWhatWasLongBeforeTheQueue) {
  DrainRate rate(at_second(0));
  rate.begin(at_second(0));
  rate.served(1000, at_second(1));
  rate.end(at_second(1));
  rate.begin(at_second(5));  // goes on
  EXPECT_EQ(rate.time_for(1'000'000, at_second(5)), seconds(60));
  rate.end(at_second(5));
  rate.begin(at_second(1000));
  EXPECT_EQ(rate.time_for(1'000'000, at_second(1000)), seconds(1));
}

TEST(DrainRate, TimeWithoutAnybodyWaitingDoesNotCount) {
  DrainRate rate(at_second(0));
  for (int second = 0; second < 100; second += 10) {
    rate.begin(at_second(second));
    rate.served(1000, at_second(second + 1));
    rate.end(at_second(second + 1));
  }
  EXPECT_NEAR(rate.forecast(20'000, at_second(100)).value(), 20, 2);
}

TEST(DrainRate, ForetellsNothingBeforeItHasSeenEnough) {
  DrainRate rate(at_second(0));
  EXPECT_EQ(rate.forecast(1000, at_second(0)), std::nullopt);
  rate.begin(at_second(0));
  EXPECT_EQ(rate.forecast(1000, at_second(60)), std::nullopt) << "nothing was served";
  rate.end(at_second(60));
  DrainRate soon(at_second(0));
  soon.begin(at_second(0));
  soon.served(1000, at_second(0));
  EXPECT_EQ(soon.forecast(1000, at_second(0)), std::nullopt);
  EXPECT_GT(soon.forecast(1000, at_second(1)), 0.9);
}

}  // namespace
}  // namespace baton::scheduling
