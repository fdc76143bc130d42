// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/loop.h"

#include "net/await.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include <memory>

namespace baton::net {
namespace {

namespace asio = boost::asio;

// What a thread has: its loop first, because everything else is made with it.
struct Thread {
  ~Thread() { loop.destroy_handlers(); }

  Loop loop{1};
  std::unique_ptr<int> used = std::make_unique<int>(0);
  asio::steady_timer timer{loop};
  asio::ip::tcp::socket socket{loop, asio::ip::tcp::v4()};
};

struct UsesAtItsEnd {
  explicit UsesAtItsEnd(Thread& thread, bool& was_there) : thread(thread), was_there(was_there) {}
  ~UsesAtItsEnd() {
    thread.timer.cancel();
    was_there = thread.used != nullptr;
  }
  Thread& thread;
  bool& was_there;
};

TEST(Loop, SuspendedCoroutinesEndBeforeWhatTheyUse) {
  bool was_there = false;
  {
    Thread thread;
    asio::co_spawn(
        thread.loop,
        [&]() -> asio::awaitable<void> {
          const UsesAtItsEnd last(thread, was_there);
          thread.timer.expires_at(asio::steady_timer::time_point::max());
          co_await thread.timer.async_wait(kAwait);
        },
        asio::detached);
    thread.loop.poll();
    EXPECT_FALSE(was_there);
  }
  EXPECT_TRUE(was_there);
}

TEST(Loop, RunsNothingAfterwards) {
  Loop loop{1};
  bool ran = false;
  loop.destroy_handlers();
  asio::post(loop, [&] { ran = true; });
  loop.poll();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace baton::net
