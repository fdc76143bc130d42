// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/forecast_error.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace baton::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct ForecastErrorTest : testing::Test {
  // So many prompts, one every 10 ms, that took `factor` times as long as was expected.
  void prompts(int count, double factor, double expected = 1) {
    for (int i = 0; i < count; ++i) {
      now += milliseconds(10);
      error.add(expected, expected * factor, now);
    }
  }
  ForecastError error;
  Time now = Time(seconds(1000));
};

TEST_F(ForecastErrorTest, IsNothingBeforeTheFirstPromptAndWhereAllComesTrue) {
  EXPECT_EQ(error.value(now), 0);
  EXPECT_EQ(error.trust(now), 1);
  prompts(1000, 1);
  EXPECT_EQ(error.value(now), 0);
  EXPECT_EQ(error.trust(now), 1);
}

TEST_F(ForecastErrorTest, TooLongIsAsWrongAsTooShort) {
  EXPECT_DOUBLE_EQ(ForecastError::missed(1, 4), 0.75);
  EXPECT_DOUBLE_EQ(ForecastError::missed(4, 1), 0.75);
}

TEST_F(ForecastErrorTest, AFewMillisecondsAreNoMiss) {
  prompts(1000, 3, 0.001);
  EXPECT_EQ(error.trust(now), 1);
}

TEST_F(ForecastErrorTest, WhatMissesByMuchIsNotTrusted) {
  prompts(200, 10);
  EXPECT_NEAR(error.value(now), 0.9, 0.01);
  EXPECT_EQ(error.trust(now), 0);
}

TEST_F(ForecastErrorTest, IsTheSameHoweverFastPromptsCome) {
  for (int i = 0; i < 200; ++i) error.add(1, 10, now += seconds(3));
  EXPECT_NEAR(error.value(now), 0.9, 0.01);
}

TEST_F(ForecastErrorTest, TrustGoesDownAndComesBackSmoothly) {
  double before = 1;
  for (int i = 0; i < 300; ++i) {
    prompts(1, 20);
    const double trust = error.trust(now);
    EXPECT_LE(trust, before);
    EXPECT_LT(before - trust, 0.15);
    before = trust;
  }
  EXPECT_EQ(before, 0);
  for (int i = 0; i < 300; ++i) {
    prompts(1, 1.1);
    const double trust = error.trust(now);
    EXPECT_GE(trust, before);
    EXPECT_LT(trust - before, 0.15);
    before = trust;
  }
  EXPECT_EQ(before, 1);
}

TEST_F(ForecastErrorTest, OneOutlierOfTwentyChangesNothing) {
  for (int i = 0; i < 100; ++i) {
    prompts(19, 1.3);
    prompts(1, 1000);
    EXPECT_EQ(error.trust(now), 1);
  }
}

TEST_F(ForecastErrorTest, FadesWhileNoPromptComes) {
  prompts(200, 100);
  ASSERT_EQ(error.trust(now), 0);
  EXPECT_EQ(error.trust(now + seconds(9)), 0);
  EXPECT_EQ(error.trust(now + seconds(30)), 1);
  EXPECT_LT(error.value(now + seconds(40)), 0.05);
}

TEST_F(ForecastErrorTest, IsFromZeroToOneWhateverComes) {
  std::mt19937_64 random(7);
  const double absurd[] = {0,
                           1e-300,
                           1,
                           1e300,
                           std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN(),
                           -1};
  for (int i = 0; i < 10'000; ++i) {
    now += milliseconds(random() % 50) - milliseconds(5);  // threads tell of times out of order
    error.add(absurd[random() % 7], absurd[random() % 7], now);
    const double value = error.value(now);
    ASSERT_GE(value, 0);
    ASSERT_LE(value, 1);
    const double trust = error.trust(now);
    ASSERT_GE(trust, 0);
    ASSERT_LE(trust, 1);
  }
}

}  // namespace
}  // namespace baton::scheduling
