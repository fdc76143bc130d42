// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "net/deadlines.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <utility>

namespace baton::test {

using boost::asio::awaitable;

// Role. An I/O thread's world on the test's thread. Nothing runs unless the test says so, and
//   nothing runs for longer than a few seconds.
class IoFixture : public testing::Test {
 protected:
  using Body = std::function<awaitable<void>()>;
  using Socket = boost::asio::ip::tcp::socket;

  ~IoFixture() override;

  // Runs a coroutine to its end. Use EXPECT in it: ASSERT returns, which a coroutine cannot.
  void run(Body body);
  // Starts a coroutine; it goes on whenever something else runs.
  void start(Body body);
  // Lets everything go on until `condition` holds; a failure where it does not in time.
  void run_until(const std::function<bool()>& condition);
  void run_for(std::chrono::milliseconds time);
  // Two ends of one connection over loopback.
  std::pair<Socket, Socket> socket_pair();

  boost::asio::io_context io{1};
  net::Deadlines deadlines{io};

 private:
  std::size_t started_ = 0;
};

}  // namespace baton::test
