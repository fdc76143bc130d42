// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/waiter.h"

#include "support/io_fixture.h"

#include <boost/asio/post.hpp>

#include <memory>

namespace baton::scheduling {
namespace {

using std::chrono::steady_clock;

class WaiterTest : public test::IoFixture {
 protected:
  static constexpr steady_clock::time_point kNever = steady_clock::time_point::max();
  Cancellation cancellation;
};

TEST_F(WaiterTest, SleepsUntilItIsRungFor) {
  Waiter waiter(io.get_executor());
  bool awake = false;
  start([&]() -> test::awaitable<void> {
    co_await waiter.sleep(kNever, cancellation);
    awake = true;
  });
  io.poll();
  EXPECT_FALSE(awake);
  waiter.ring();
  run_until([&] { return awake; });
}

TEST_F(WaiterTest, DoesNotSleepWhereItHasBeenRungForBefore) {
  Waiter waiter(io.get_executor());
  waiter.ring();
  run([&]() -> test::awaitable<void> { co_await waiter.sleep(kNever, cancellation); });
}

TEST_F(WaiterTest, WakesUpWhenItsTimeIsOver) {
  Waiter waiter(io.get_executor());
  run([&]() -> test::awaitable<void> {
    const auto deadline = steady_clock::now() + std::chrono::milliseconds(5);
    co_await waiter.sleep(deadline, cancellation);
    EXPECT_GE(steady_clock::now(), deadline);
  });
}

TEST_F(WaiterTest, WakesUpWhenTheRequestIsCancelled) {
  Waiter waiter(io.get_executor());
  boost::asio::post(io, [&] { cancellation.request(Error(Errc::ClientGone, "gone")); });
  run([&]() -> test::awaitable<void> { co_await waiter.sleep(kNever, cancellation); });
  // And does not sleep where it was before.
  Waiter late(io.get_executor());
  run([&]() -> test::awaitable<void> { co_await late.sleep(kNever, cancellation); });
}

}  // namespace
}  // namespace baton::scheduling
