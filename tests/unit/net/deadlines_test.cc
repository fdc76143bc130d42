// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/deadlines.h"

#include "support/io_fixture.h"

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace baton::net {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

struct DeadlinesTest : test::IoFixture {};

TEST_F(DeadlinesTest, FiresOnceAndNeverEarly) {
  int fired = 0;
  Deadline deadline(deadlines, [&] { ++fired; });
  const auto start = steady_clock::now();
  deadline.arm(60ms);
  run_until([&] { return fired > 0; });
  EXPECT_GE(steady_clock::now() - start, 60ms);
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(fired, 1);
}

// As after a pause of the machine: what is armed behind it begins then, and what was armed before has
// as much time left as before.
TEST_F(DeadlinesTest, NeverFiresEarlyWhereTheLoopStoodStill) {
  int fired = 0;
  Deadline before(deadlines, [&] { fired += 100; });
  Deadline after(deadlines, [&] {
    ++fired;
    before.disarm();  // its news has come: the loop has had the time to read it
  });
  steady_clock::time_point start;
  before.arm(300ms);
  boost::asio::post(io, [&] {
    const auto over = steady_clock::now() + 500ms;
    while (steady_clock::now() < over) {
    }
    start = steady_clock::now();
    after.arm(60ms);
  });
  run_until([&] { return fired > 0; });
  EXPECT_GE(steady_clock::now() - start, 60ms);
  EXPECT_EQ(fired, 1);
}

TEST_F(DeadlinesTest, DoesNotFireOnceDisarmedOrGone) {
  int fired = 0;
  Deadline disarmed(deadlines, [&] { ++fired; });
  disarmed.arm(0ms);
  disarmed.disarm();
  {
    Deadline gone(deadlines, [&] { ++fired; });
    gone.arm(0ms);
  }
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(fired, 0);
}

TEST_F(DeadlinesTest, ArmingAgainMovesIt) {
  int fired = 0;
  Deadline deadline(deadlines, [&] { ++fired; });
  deadline.arm(0ms);
  deadline.arm(60s);
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(fired, 0);
  deadline.arm(0ms);
  run_until([&] { return fired == 1; });
}

TEST_F(DeadlinesTest, HasteningBringsAnArmedOneForwardAndArmsNone) {
  int fired = 0;
  Deadline armed(deadlines, [&] { ++fired; });
  Deadline idle(deadlines, [&] { fired += 100; });
  armed.arm(60s);
  armed.hasten(0ms);
  idle.hasten(0ms);
  run_until([&] { return fired > 0; });
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(fired, 1);
}

TEST_F(DeadlinesTest, HasteningNeverPutsOff) {
  int fired = 0;
  Deadline deadline(deadlines, [&] { ++fired; });
  deadline.arm(0ms);
  deadline.hasten(60s);
  run_until([&] { return fired == 1; });
}

TEST_F(DeadlinesTest, LivesOnlyWhileTheLoopRuns) {
  run_for(2 * Deadlines::kTick);  // what came before this test is over
  const auto lived = deadlines.lived();
  const auto now = deadlines.now();
  boost::asio::post(io, [] {
    const auto over = steady_clock::now() + 500ms;
    while (steady_clock::now() < over) {
    }
  });
  run_until([&] { return deadlines.now() - now >= 500ms; });
  EXPECT_GE((deadlines.now() - now) - (deadlines.lived() - lived), 300ms);
}

TEST_F(DeadlinesTest, ACallbackMayArmItsOwnDeadlineAgain) {
  int fired = 0;
  Deadline deadline(deadlines, [&] {
    if (++fired < 3) deadline.arm(0ms);
  });
  deadline.arm(0ms);
  run_until([&] { return fired == 3; });
}

TEST_F(DeadlinesTest, ACallbackMayEndItsOwnDeadlineAndOthers) {
  int fired = 0;
  std::optional<Deadline> self;
  std::optional<Deadline> later;
  self.emplace(deadlines, [&] {
    ++fired;
    later.reset();
    self.reset();
  });
  later.emplace(deadlines, [&] { fired += 100; });
  self->arm(0ms);
  later->arm(0ms);
  run_until([&] { return fired > 0; });
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(fired, 1);
}

TEST_F(DeadlinesTest, ACallbackMayDisarmOneThatIsDueAsWell) {
  int fired = 0;
  Deadline second(deadlines, [&] { fired += 100; });
  Deadline first(deadlines, [&] {
    ++fired;
    second.disarm();
  });
  // Both orders: whichever comes first silences the other.
  Deadline third(deadlines, [&] {
    ++fired;
    second.disarm();
  });
  first.arm(0ms);
  third.arm(0ms);
  run_until([&] { return fired >= 2; });
  EXPECT_EQ(fired, 2);
}

// Regression: a tick that was already due when stop() was called started the next one, and the I/O
// thread never ended.
TEST(DeadlinesStop, EndsAlsoWhereATickIsDueAlready) {
  boost::asio::io_context io{1};
  Deadlines deadlines(io);
  boost::asio::post(io, [&] {
    const auto due = steady_clock::now() + 2 * Deadlines::kTick;
    while (steady_clock::now() < due) {
    }
    // Runs after the timer has been found expired and before its handler runs.
    boost::asio::post(io, [&] { deadlines.stop(); });
  });
  io.run_for(10s);
  EXPECT_TRUE(io.stopped()) << "there is still something to wait for";
}

}  // namespace
}  // namespace baton::net
