// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <utility>

namespace baton::scheduling {

// Role. A coroutine's sleep until it is woken, its time is over or its request is cancelled.
// Confinement. The executor of the coroutine; other threads post to it.
// Lifetime. Shared with posted handlers, also those that come too late.
class Waiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Waiter(boost::asio::any_io_executor home) : home_(std::move(home)), timer_(home_) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() = default;

  // Any thread.
  const boost::asio::any_io_executor& home() const { return home_; }

  void ring() {
    rung_ = true;
    timer_.cancel();
  }
  boost::asio::awaitable<void> sleep(Time deadline, Cancellation& cancellation);

 private:
  boost::asio::any_io_executor home_;
  boost::asio::steady_timer timer_;
  bool rung_ = false;
};

}  // namespace baton::scheduling
