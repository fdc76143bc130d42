// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/fair_lock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::kvcache {
namespace {

// Two who are always at it: one of them falls asleep just when the other lets go, again and again. A
// wake-up that is lost leaves both asleep, and the test never ends.
TEST(FairLockTest, WakesWhoeverIsNextHoweverOftenTheyMeet) {
  using Clock = std::chrono::steady_clock;
  // For a while, and not so many times: with one core for both, each time takes the scheduler a turn.
  const auto end = Clock::now() + std::chrono::milliseconds(500);
  FairLock lock;
  std::uint64_t together = 0;  // under lock
  std::array<std::uint64_t, 2> alone{};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t& own : alone) {
      threads.emplace_back([&] {
        while (Clock::now() < end) {
          const std::lock_guard guard(lock);
          ++together;
          ++own;
        }
      });
    }
  }
  EXPECT_EQ(together, alone[0] + alone[1]);
  EXPECT_GT(together, 0U);
}

TEST(FairLockTest, LetsOneInAtATime) {
  FairLock lock;
  int inside = 0;  // under lock
  int most = 0;
  std::uint64_t entered = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 300; ++round) {
          const std::lock_guard guard(lock);
          most = std::max(most, ++inside);
          ++entered;
          --inside;
        }
      });
    }
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(entered, 1200U);
}

TEST(FairLockTest, IsFreeAgainAfterEachHold) {
  FairLock lock;
  for (int i = 0; i < 100'000; ++i) {
    lock.lock();
    lock.unlock();
  }
  const std::lock_guard guard(lock);
}

}  // namespace
}  // namespace baton::kvcache
