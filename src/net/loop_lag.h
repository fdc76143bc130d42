// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <utility>

namespace baton::net {

// Role. Measures the lag of an I/O thread: the time between the expiry of a timer, every 100 ms,
//   and its handler's turn.
// Confinement. The thread of its io_context.
class LoopLag {
 public:
  using Report = std::function<void(std::chrono::steady_clock::duration late)>;

  LoopLag(boost::asio::io_context& io, Report report) : timer_(io), report_(std::move(report)) {}

  void start();
  // Afterwards nothing of it keeps the io_context running.
  void stop();

 private:
  void wait();

  boost::asio::steady_timer timer_;
  Report report_;
  bool stopped_ = false;
};

}  // namespace baton::net
