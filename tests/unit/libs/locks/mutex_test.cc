// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/locks/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::locks {
namespace {

class Totals {
 public:
  void add() {
    const Lock lock(mutex_);
    ++sum_;
  }
  bool try_add() {
    if (!mutex_.try_lock()) return false;
    const Lock lock(mutex_, std::adopt_lock);
    ++sum_;
    return true;
  }
  int sum() {
    const Lock lock(mutex_);
    return sum_;
  }
  Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }

 private:
  Mutex mutex_;
  int sum_ GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, AdmitsOneThreadAtATime) {
  constexpr int kEach = 10'000;
  Totals totals;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&totals] {
        for (int n = 0; n < kEach; ++n) totals.add();
      });
  }
  EXPECT_EQ(totals.sum(), 4 * kEach);
}

TEST(Mutex, IsNotTakenTwiceByTryLock) {
  Totals totals;
  EXPECT_TRUE(totals.try_add());
  {
    const Lock lock(totals.mutex());
    std::jthread([&totals] { EXPECT_FALSE(totals.try_add()); }).join();
  }
  EXPECT_TRUE(totals.try_add());
  EXPECT_EQ(totals.sum(), 2);
}

class Word {
 public:
  void set(int value) {
    const Lock lock(mutex_);
    value_ = value;
  }
  int get() {
    const SharedLock lock(mutex_);
    return value_;
  }
  // While another thread reads, too.
  int get_twice() {
    const SharedLock lock(mutex_);
    int other = 0;
    std::jthread([this, &other] { other = get(); }).join();
    return value_ + other;
  }

 private:
  SharedMutex mutex_;
  int value_ GUARDED_BY(mutex_) = 0;
};

TEST(SharedMutex, LetsReadersInTogether) {
  Word word;
  word.set(21);
  EXPECT_EQ(word.get_twice(), 42);
}

class Flag {
 public:
  void raise() {
    const Lock lock(mutex_);
    up_ = true;
    raised_.notify_all();
  }
  void wait() {
    const Lock lock(mutex_);
    while (!up_) raised_.wait(mutex_);
  }
  bool wait_until(std::chrono::steady_clock::time_point end) {
    const Lock lock(mutex_);
    while (!up_ && raised_.wait_until(mutex_, end) == std::cv_status::no_timeout) continue;
    return up_;
  }

 private:
  Mutex mutex_;
  ConditionVariable raised_;
  bool up_ GUARDED_BY(mutex_) = false;
};

TEST(ConditionVariable, WakesAWaitingThread) {
  Flag flag;
  const std::jthread waiting([&flag] { flag.wait(); });
  flag.raise();
}

TEST(ConditionVariable, WaitsNoLongerThanItMay) {
  Flag flag;
  EXPECT_FALSE(flag.wait_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(1)));
  flag.raise();
  EXPECT_TRUE(flag.wait_until(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
}

}  // namespace
}  // namespace baton::locks
