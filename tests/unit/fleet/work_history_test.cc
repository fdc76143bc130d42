// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/work_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace baton::fleet {
namespace {

using namespace std::chrono_literals;

struct WorkHistoryTest : testing::Test {
  // One request each second from `from` on.
  void requests(std::chrono::seconds from, int count, double prefill_seconds) {
    for (int i = 0; i < count; ++i) history.came(prefill_seconds, begun + from + i * 1s);
  }
  WorkHistory::Summary at(std::chrono::seconds time) const { return history.summary(begun + time); }

  const Time begun{1000h};
  WorkHistory history{begun};
};

TEST_F(WorkHistoryTest, IsEmptyAtFirst) {
  const auto summary = at(0s);
  EXPECT_EQ(summary.seconds, 0);
  EXPECT_EQ(summary.requests_per_second, 0);
  EXPECT_EQ(summary.prefill_load, 0);
  EXPECT_EQ(summary.prefill_seconds, 0);
  EXPECT_FALSE(summary.decode_seconds);
  EXPECT_EQ(summary.streams(), 0);
}

TEST_F(WorkHistoryTest, KnowsHowLongItHasWatched) {
  EXPECT_EQ(at(59s).seconds, 59);
  EXPECT_EQ(at(300s).seconds, 300);
  EXPECT_EQ(at(3000s).seconds, 300);
  EXPECT_EQ(at(-10s).seconds, 0);
}

TEST_F(WorkHistoryTest, TellsTheRatesOfAMinute) {
  requests(0s, 60, 0.5);
  history.decoded(3, begun + 30s);
  history.decoded(5, begun + 31s);
  const auto summary = at(60s);
  EXPECT_DOUBLE_EQ(summary.requests_per_second, 1);
  EXPECT_DOUBLE_EQ(summary.prefill_load, 0.5);
  EXPECT_DOUBLE_EQ(summary.prefill_seconds, 0.5);
  EXPECT_DOUBLE_EQ(*summary.decode_seconds, 4);
  EXPECT_DOUBLE_EQ(*summary.streams(), 4);
}

TEST_F(WorkHistoryTest, CountsTheMinuteThatIsNotOverWithWhatItHasSoFar) {
  requests(0s, 600, 0.5);
  for (int i = 0; i < 60; ++i) history.came(0.5, begun + 600s);
  EXPECT_NEAR(at(601s).requests_per_second, 1 + 50.0 / 60, 1e-9);
}

TEST_F(WorkHistoryTest, RemembersTheBusiestMinuteForFiveMinutes) {
  requests(0s, 60, 0.1);
  requests(60s, 60, 2);
  for (auto time = 120s; time <= 360s; time += 10s) {
    EXPECT_DOUBLE_EQ(at(time).prefill_load, 2) << time.count();
    EXPECT_DOUBLE_EQ(at(time).prefill_seconds, 2) << time.count();
    requests(time, 10, 0.1);
  }
  EXPECT_LT(at(370s).prefill_load, 2);
  EXPECT_NEAR(at(430s).prefill_load, 0.1, 1e-9);
  EXPECT_NEAR(at(430s).prefill_seconds, 0.1, 1e-9);
}

TEST_F(WorkHistoryTest, TheMinutesWithMostRequestsAndMostWorkMayDiffer) {
  for (int i = 0; i < 10; ++i) requests(0s, 60, 0);
  requests(60s, 60, 1);
  EXPECT_DOUBLE_EQ(at(120s).requests_per_second, 10);
  EXPECT_DOUBLE_EQ(at(120s).prefill_load, 1);
  EXPECT_DOUBLE_EQ(at(120s).prefill_seconds, 1);
}

TEST_F(WorkHistoryTest, ForgetsAllInFiveMinutesOfSilence) {
  requests(0s, 60, 1);
  history.decoded(1, begun + 59s);
  EXPECT_GT(at(350s).requests_per_second, 0);
  for (const auto time : {370s, 400s, 100'000s}) {
    EXPECT_EQ(at(time).requests_per_second, 0);
    EXPECT_EQ(at(time).prefill_load, 0);
    EXPECT_FALSE(at(time).decode_seconds);
  }
  requests(100'000s, 60, 2);
  EXPECT_DOUBLE_EQ(at(100'060s).prefill_load, 2);
  EXPECT_DOUBLE_EQ(at(100'060s).requests_per_second, 1);
}

TEST_F(WorkHistoryTest, NobodyKnowsHowManyStreamsThereAreBeforeTheFirstHasEnded) {
  requests(0s, 60, 1);
  EXPECT_FALSE(at(60s).streams());
  history.decoded(2, begun + 60s);
  EXPECT_DOUBLE_EQ(*at(61s).streams(), 2);
}

TEST_F(WorkHistoryTest, TakesNewsThatComesLate) {
  requests(200s, 1, 0);
  history.came(1, begun + 100s);
  history.came(1, begun - 100s);
  EXPECT_NEAR(at(200s).prefill_load, 1.0 / 60, 1e-9);
  requests(1000s, 1, 0);
  history.came(1, begun + 5s);  // of a bucket that is gone
  EXPECT_NEAR(at(1000s).prefill_load, 1.0 / 60, 1e-9);
  EXPECT_NEAR(at(5s).prefill_load, 1.0 / 60, 1e-9) << "time does not run backwards";
}

TEST_F(WorkHistoryTest, WhatIsNoDurationIsNone) {
  for (const double hostile :
       {std::numeric_limits<double>::quiet_NaN(), -1.0, -std::numeric_limits<double>::infinity()}) {
    history.came(hostile, begun);
    history.decoded(hostile, begun);
  }
  EXPECT_EQ(at(1s).prefill_load, 0);
  EXPECT_EQ(at(1s).decode_seconds, 0);
  EXPECT_NEAR(at(1s).requests_per_second, 3.0 / 60, 1e-9);
  for (const double hostile : {std::numeric_limits<double>::infinity(), 1e300}) {
    history.came(hostile, begun);
    history.decoded(hostile, begun);
  }
  EXPECT_TRUE(std::isfinite(at(1s).prefill_load));
  EXPECT_TRUE(std::isfinite(*at(1s).streams()));
}

// Against a plain list of all that came.
TEST_F(WorkHistoryTest, IsWhatAListOfEverythingSays) {
  std::mt19937 random(7);
  std::vector<std::pair<std::int64_t, double>> all;  // bucket, prefill seconds
  std::chrono::milliseconds time{0};
  for (int i = 0; i < 1000; ++i) {
    time += std::chrono::milliseconds(random() % (i % 200 == 0 ? 400'000 : 2000));
    const double seconds = static_cast<double>(random() % 1000) / 1000;
    history.came(seconds, begun + time);
    all.emplace_back(time / 10s, seconds);
    const std::int64_t last = time / 10s;
    double most = 0;
    for (std::int64_t end = last - 25; end <= last; ++end) {
      double sum = 0;
      for (auto one = all.rbegin(); one != all.rend() && one->first >= last - 30; ++one)
        sum += one->first > end - 6 && one->first <= end ? one->second : 0;
      most = std::max(most, sum);
    }
    ASSERT_NEAR(history.summary(begun + time).prefill_load, most / 60, 1e-9) << i;
  }
}

TEST_F(WorkHistoryTest, IsToldByAllThreads) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 1000; ++i) {
        history.came(0.5, begun + i * 10ms);
        history.decoded(1, begun + i * 10ms);
        if (i % 100 == thread) history.summary(begun + i * 10ms);
      }
    });
  }
  threads.clear();
  EXPECT_NEAR(at(10s).requests_per_second, 4000.0 / 60, 1e-9);
  EXPECT_DOUBLE_EQ(*at(10s).decode_seconds, 1);
}

}  // namespace
}  // namespace baton::fleet
