// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/interruptible_sink.h"

#include "net/task_group.h"
#include "support/io_fixture.h"
#include "unit/pipeline/recording_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>

namespace baton::pipeline {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct InterruptibleSinkTest : test::IoFixture {
  ~InterruptibleSinkTest() override {
    run_until([this] { return tasks.running() == 0; });
  }
  void give_up() { cancellation.request(Error(Errc::DeadlineExceeded, "too late")); }
  void settle() {
    run([this]() -> awaitable<void> { co_await sink.settled(); });
  }

  net::TaskGroup tasks{io, [](std::exception_ptr) { ADD_FAILURE() << "an exception escaped"; }};
  Cancellation cancellation;
  RecordingSink client{io};
  InterruptibleSink sink{client, tasks, cancellation};
};

TEST_F(InterruptibleSinkTest, PassesAnAnswerOn) {
  run([this]() -> awaitable<void> {
    EXPECT_TRUE(co_await sink.begin(200, {}));
    EXPECT_TRUE(co_await sink.write("a"));
    EXPECT_TRUE(co_await sink.end());
  });
  EXPECT_EQ(client.body, "a");
  EXPECT_TRUE(client.ended);
  give_up();
  EXPECT_FALSE(sink.interrupted()) << "the answer was complete";
}

TEST_F(InterruptibleSinkTest, TellsAClientThatHasGotNothingYet) {
  give_up();
  ASSERT_TRUE(sink.interrupted());
  settle();
  EXPECT_EQ(sink.status(), 504);
  EXPECT_EQ(client.status, 504);
  EXPECT_TRUE(client.given_up);
  EXPECT_THAT(client.body, HasSubstr("deadline_exceeded"));
  settle();
}

TEST_F(InterruptibleSinkTest, TellsAClientInsideItsStream) {
  run([this]() -> awaitable<void> {
    EXPECT_TRUE(co_await sink.begin(200, {}));
    EXPECT_TRUE(co_await sink.write("data: 1\n\n"));
  });
  give_up();
  settle();
  EXPECT_EQ(sink.status(), 200);
  EXPECT_THAT(client.body, StartsWith("data: 1\n\ndata: {\"error\""));
  EXPECT_TRUE(client.ended);
}

TEST_F(InterruptibleSinkTest, SaysNothingMoreAfterwards) {
  give_up();
  run([this]() -> awaitable<void> {
    // Also before the error is on its way.
    EXPECT_FALSE(co_await sink.begin(200, {}));
    EXPECT_FALSE(co_await sink.write("late"));
    const auto responded = co_await sink.respond(200, {}, "late");
    EXPECT_EQ(responded.error().code(), Errc::DeadlineExceeded);
    EXPECT_FALSE(co_await sink.end());
  });
  settle();
  EXPECT_EQ(client.answers, 1);
  EXPECT_EQ(client.status, 504);
}

TEST_F(InterruptibleSinkTest, LeavesAPieceThatIsBeingWrittenToItsWriter) {
  client.be_slow();
  bool written = false;
  start([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await sink.begin(200, {}));
    EXPECT_TRUE(co_await sink.write("data: 1\n\n"));
    written = true;
  });
  run_until([this] { return client.writes == 1; });
  give_up();
  EXPECT_FALSE(sink.interrupted());
  EXPECT_TRUE(client.given_up) << "it may not take long any more";
  client.take();
  run_until([&] { return written; });
  EXPECT_THAT(client.body, EndsWith("1\n\n"));
}

TEST_F(InterruptibleSinkTest, WritesNowUntilItIsInterrupted) {
  start([&]() -> awaitable<void> { EXPECT_TRUE(co_await sink.begin(200, {})); });
  run_until([this] { return client.answers == 1; });
  EXPECT_TRUE(sink.write_now("data: 1\n\n").value());
  client.be_slow();
  EXPECT_FALSE(sink.write_now("data: 2\n\n"));
  client.take();
  give_up();
  EXPECT_FALSE(sink.write_now("data: 3\n\n").value());
  run_until([this] { return client.ended; });
  EXPECT_THAT(client.body, StartsWith("data: 1\n\ndata: {"));
}

TEST_F(InterruptibleSinkTest, TellsNothingToAClientThatHasLeft) {
  cancellation.request(Error(Errc::ClientGone, ""));
  EXPECT_FALSE(sink.interrupted());
  EXPECT_FALSE(client.given_up);
}

}  // namespace
}  // namespace baton::pipeline
