// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace baton::scheduling {

// Role. Several I/O threads, and the tasks on them; at its end all of them have ended.
class IoThreads {
 public:
  explicit IoThreads(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back();
  }
  ~IoThreads() {
    for (Thread& each : threads_) each.io.stop();
  }
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // `task` is a function that makes a coroutine; it runs on the next of the threads.
  template <class Task>
  void start(Task task) {
    {
      const std::scoped_lock lock(mutex_);
      ++running_;
    }
    Thread& next = threads_.front();
    threads_.splice(threads_.end(), threads_, threads_.begin());
    boost::asio::co_spawn(next.io, std::move(task), [this](std::exception_ptr thrown) {
      EXPECT_FALSE(thrown);
      const std::scoped_lock lock(mutex_);
      if (--running_ == 0) ended_.notify_all();
    });
  }

  // False where they do not end in time.
  bool all_ended() {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, std::chrono::seconds(50), [this] { return running_ == 0; });
  }

 private:
  struct Thread {
    boost::asio::io_context io{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work =
        boost::asio::make_work_guard(io);
    std::jthread thread{[this] { io.run(); }};
  };

  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
  std::list<Thread> threads_;
};

// Lets others of the thread run.
inline boost::asio::awaitable<void> step_back() {
  co_await boost::asio::post(co_await boost::asio::this_coro::executor, boost::asio::use_awaitable);
}

}  // namespace baton::scheduling
