// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <utility>

namespace baton::net {

// Role. The only way to start a task: it is counted until it ends, and an exception that reaches
//   its end is reported instead of lost.
// Confinement. One I/O thread; running() from any.
// Lifetime. Must outlive its tasks: wait until running() is zero before destroying it.
class TaskGroup {
 public:
  using OnException = std::function<void(std::exception_ptr)>;

  TaskGroup(boost::asio::io_context& io, OnException on_exception)
      : io_(io), on_exception_(std::move(on_exception)) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void spawn(boost::asio::awaitable<void> task) {
    running_.fetch_add(1, std::memory_order_relaxed);
    boost::asio::co_spawn(io_, std::move(task), [this](std::exception_ptr thrown) {
      if (thrown) on_exception_(thrown);
      running_.fetch_sub(1, std::memory_order_release);
    });
  }
  std::size_t running() const { return running_.load(std::memory_order_acquire); }

 private:
  boost::asio::io_context& io_;
  OnException on_exception_;
  std::atomic<std::size_t> running_{0};
};

}  // namespace baton::net
