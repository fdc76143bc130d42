// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/cpu_pool.h"

#include "support/io_fixture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace baton::net {
namespace {

class CpuPoolTest : public test::IoFixture {};

TEST_F(CpuPoolTest, WorksElsewhereAndComesBackHome) {
  CpuPool pool(2);
  run([&]() -> test::awaitable<void> {
    const auto home = std::this_thread::get_id();
    const auto there = co_await pool.run([] { return std::this_thread::get_id(); });
    EXPECT_NE(there, home);
    EXPECT_EQ(std::this_thread::get_id(), home);
  });
}

TEST_F(CpuPoolTest, WorkOnLittleTextIsDoneInPlace) {
  CpuPool pool(1);
  run([&]() -> test::awaitable<void> {
    const auto home = std::this_thread::get_id();
    const auto work = [] { return std::this_thread::get_id(); };
    EXPECT_EQ(co_await pool.run_sized(CpuPool::kInPlace, work), home);
    EXPECT_NE(co_await pool.run_sized(CpuPool::kInPlace + 1, work), home);
    EXPECT_EQ(std::this_thread::get_id(), home);
  });
}

TEST_F(CpuPoolTest, BringsBackWhatCanOnlyBeMoved) {
  CpuPool pool(1);
  run([&]() -> test::awaitable<void> {
    auto made = co_await pool.run(
        [given = std::make_unique<std::string>("whole")]() mutable { return std::move(given); });
    EXPECT_EQ(*made, "whole");
  });
}

TEST_F(CpuPoolTest, AnExceptionComesThrough) {
  CpuPool pool(1);
  run([&]() -> test::awaitable<void> {
    std::string caught;
    try {
      co_await pool.run([]() -> int { throw std::runtime_error("out of luck"); });
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "out of luck");
  });
}

TEST_F(CpuPoolTest, OneThreadTakesWorkInOrder) {
  CpuPool pool(1);
  std::vector<int> order;  // written by the pool's one thread, read after everything is done
  std::latch released(1);
  std::atomic<int> done{0};
  start([&]() -> test::awaitable<void> {
    co_await pool.run([&] {
      released.wait();
      return 0;
    });
    ++done;
  });
  for (int i = 0; i < 20; ++i) {
    start([&, i]() -> test::awaitable<void> {
      co_await pool.run([&, i] {
        order.push_back(i);
        return i;
      });
      ++done;
    });
  }
  run_until([&] { return pool.waiting() == 20; });  // all but the one that runs
  released.count_down();
  run_until([&] { return done == 21; });
  EXPECT_EQ(pool.waiting(), 0U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(CpuPoolTest, YieldsToTheThreadsThatServe) {
  CpuPool pool(1);
  run([&]() -> test::awaitable<void> {
    const int niceness =
        co_await pool.run([] { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); });
    EXPECT_GT(niceness, getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())));
  });
}

TEST_F(CpuPoolTest, AThreadSaysWhatItIs) {
  CpuPool pool(1);
  run([&]() -> test::awaitable<void> {
    const std::string name = co_await pool.run([] {
      char buffer[16] = {};
      pthread_getname_np(pthread_self(), buffer, sizeof buffer);
      return std::string(buffer);
    });
    EXPECT_EQ(name, "baton-cpu");
  });
}

TEST_F(CpuPoolTest, JoinDoesWhatWasTakenInFirst) {
  CpuPool pool(1);
  std::latch released(1);
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  for (int i = 0; i < 5; ++i) {
    start([&]() -> test::awaitable<void> {
      co_await pool.run([&] {
        ++begun;
        released.wait();
        return 0;
      });
      ++done;
    });
  }
  run_until([&] { return begun == 1 && pool.waiting() == 4; });
  released.count_down();
  pool.join();
  run_until([&] { return done == 5; });
}

}  // namespace
}  // namespace baton::net
