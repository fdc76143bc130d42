// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/fair_lock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::kvindex {
namespace {

// Two who are always at it: one of them falls asleep just when the other lets go, again and again. A
// wake-up that is lost leaves both asleep, and the test never ends.
TEST(FairLockTest, WakesWhoeverIsNextHoweverOftenTheyMeet) {
  constexpr std::uint64_t kThreads = 2;
  constexpr std::uint64_t kTimes = 250'000;
  constexpr int kRounds = 8;
  FairLock lock;
  std::uint64_t count = 0;  // under lock
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (std::uint64_t k = 0; k < kTimes; ++k) {
          const std::lock_guard guard(lock);
          ++count;
        }
      });
    }
  }
  EXPECT_EQ(count, kRounds * kThreads * kTimes);
}

}  // namespace
}  // namespace baton::kvindex
