// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/loop_lag.h"

#include "support/io_fixture.h"

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace baton::net {
namespace {

using namespace std::chrono_literals;

class LoopLagTest : public test::IoFixture {
 protected:
  std::vector<std::chrono::steady_clock::duration> late;
  LoopLag lag{io, [this](auto by) { late.push_back(by); }};
};

TEST_F(LoopLagTest, TellsHowLongTheThreadWasBusyElsewhere) {
  lag.start();
  run_until([&] { return !late.empty(); });
  late.clear();
  // What keeps a loop from its sockets: here for longer than the period and 250 ms.
  boost::asio::post(io, [] { std::this_thread::sleep_for(350ms); });
  run_until([&] { return !late.empty(); });
  EXPECT_GE(late.front(), 250ms - 1ms);
  lag.stop();
}

TEST_F(LoopLagTest, NeverTellsOfAThreadThatWasEarly) {
  lag.start();
  run_until([&] { return late.size() == 3; });
  for (const auto by : late) EXPECT_GE(by.count(), 0);
  lag.stop();
}

TEST_F(LoopLagTest, LetsTheLoopEndOnceStopped) {
  lag.start();
  lag.stop();
  deadlines.stop();
  io.run();  // would not return
  EXPECT_TRUE(late.empty());
}

}  // namespace
}  // namespace baton::net
