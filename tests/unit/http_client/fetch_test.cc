// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/fetch.h"

#include "unit/http_client/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace baton::http_client {
namespace {

using test::FakeEngine;
using test::response;
using testing::HasSubstr;
using testing::StartsWith;

struct FetchTest : ExchangeFixture {
  Result<Answer> ask(const model::Endpoint& endpoint, Question question) {
    Result<Answer> answer;
    run([&]() -> awaitable<void> {
      answer = co_await fetch(pool, {{1}, endpoint}, question, timeouts);
    });
    return answer;
  }
};

TEST_F(FetchTest, GivesStatusAndBodyWhateverTheStatus) {
  const FakeEngine engine(test::always(response(503, "later", "Retry-After: 7\r\n")));
  const auto answer = ask(engine.endpoint(), {.path = "/a"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "later");
  EXPECT_EQ(answer->retry_after, "7");
  ASSERT_EQ(engine.requests().size(), 1U);
  EXPECT_THAT(engine.requests()[0].head, StartsWith("GET /a HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_EQ(pool.idle_count(), 1U);
}

TEST_F(FetchTest, ALongAnswerNeedsRoomInMemoryForAsLongAsItIsThere) {
  const std::string text(200'000, 'x');
  const FakeEngine engine(test::always(response(200, text)));
  {
    MemoryShare others(&memory);
    ASSERT_TRUE(others.cover(memory.limit()));
    const auto refused = ask(engine.endpoint(), {.path = "/a"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::MemoryExhausted);
  }
  {
    const auto answer = ask(engine.endpoint(), {.path = "/a"});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, text);
    EXPECT_GE(memory.used(), text.size());
  }
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(FetchTest, ACancellationEndsItWhereverItIs) {
  constexpr ExchangeTimeouts kPatient{.first_byte = std::chrono::hours(1),
                                      .idle = std::chrono::hours(1)};
  const std::string half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
  for (const std::string_view told : {std::string_view(), std::string_view(half)}) {
    const FakeEngine engine([told](test::FakePeer& peer) {
      peer.read_request();
      peer.write(told);
      peer.wait_for_drop();
    });
    Cancellation cancellation;
    std::optional<Result<Answer>> answer;
    start([&]() -> awaitable<void> {
      answer =
          co_await fetch(pool, {{1}, engine.endpoint()}, {.path = "/"}, kPatient, &cancellation);
    });
    run_until([&] { return engine.requests().size() == 1; });
    cancellation.request(Error(Errc::ClientGone, "gone"));
    run_until([&] { return answer.has_value(); });
    EXPECT_EQ(answer->error().code(), Errc::ClientGone);
    EXPECT_TRUE(engine.wait_for_drops(1));
    EXPECT_EQ(pool.idle_count(), 0U);
  }
}

TEST_F(FetchTest, SendsHeadersAndABody) {
  const FakeEngine engine(test::always(response(200, "{}")));
  const auto answer = ask(
      engine.endpoint(),
      {.method = "POST", .path = "/b", .own_headers = "X-One: 1\r\nX-Two: 2\r\n", .body = "hello"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->retry_after, std::nullopt);
  const auto seen = engine.requests().at(0);
  EXPECT_THAT(seen.head, StartsWith("POST /b HTTP/1.1\r\n"));
  EXPECT_THAT(
      seen.head,
      HasSubstr(
          "\r\nX-One: 1\r\nX-Two: 2\r\nContent-Type: application/json\r\nContent-Length: 5\r\n"));
  EXPECT_EQ(seen.body, "hello");
}

TEST_F(FetchTest, TakesAnAnswerOfJustTheSizeItMayHave) {
  const FakeEngine engine(test::always(response(200, "12345")));
  EXPECT_TRUE(ask(engine.endpoint(), {.path = "/", .largest_answer = 5}));
  const auto larger = ask(engine.endpoint(), {.path = "/a", .largest_answer = 4});
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code(), Errc::EngineProtocol);
  EXPECT_THAT(larger.error().message(), HasSubstr("GET /a has more than 4 bytes"));
}

TEST_F(FetchTest, GivesUpOnAWorkerThatIsSilent) {
  timeouts.first_byte = std::chrono::milliseconds(50);
  const FakeEngine engine([](test::FakePeer& peer) { peer.wait_for_drop(); });
  const auto answer = ask(engine.endpoint(), {.path = "/a"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Errc::EngineTimeout);
  EXPECT_TRUE(engine.wait_for_drops(1));
}

// A few bytes now and then are no reason to wait for ever.
TEST_F(FetchTest, GivesUpOnAWorkerThatDribbles) {
  struct Case {
    std::chrono::milliseconds first_byte;
    const char* beginning;
    const char* drop;
  };
  timeouts.idle = std::chrono::milliseconds(200);
  for (const Case& slow :
       {Case{std::chrono::milliseconds(200), "HTTP/1.1 200 OK\r\n", "X-Drop: 1\r\n"},
        Case{std::chrono::seconds(5), "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "x"}}) {
    timeouts.first_byte = slow.first_byte;
    const FakeEngine engine([&slow](test::FakePeer& peer) {
      peer.read_request();
      peer.write(slow.beginning);
      for (int i = 0; i < 60; ++i) {
        peer.write(slow.drop);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    const auto answer = ask(engine.endpoint(), {.path = "/a"});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), Errc::EngineTimeout) << answer.error().message();
    EXPECT_THAT(answer.error().message(), HasSubstr("GET /a"));
  }
}

TEST_F(FetchTest, SaysThatNobodyIsThere) {
  const auto answer = ask(test::closed_endpoint(), {.path = "/a"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Errc::EngineUnreachable);
  EXPECT_EQ(answer.error().cause(), std::errc::connection_refused);
}

}  // namespace
}  // namespace baton::http_client
