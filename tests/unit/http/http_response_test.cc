// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/http_response.h"

#include "net/await.h"
#include "support/io_fixture.h"
#include "unit/http/raw_client.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>

namespace baton::http {
namespace {

using namespace std::chrono_literals;

struct HttpResponseTest : test::IoFixture {
  HttpResponseTest() {
    auto [near, far] = socket_pair();
    connection.emplace(std::move(near), deadlines);
    client.emplace(std::move(far));
  }
  void make(bool http_1_0 = false, bool keep_alive = true, bool head_only = false) {
    response.emplace(*connection, HttpResponse::ResponseOptions{.http_1_0 = http_1_0,
                                                                .keep_alive = keep_alive,
                                                                .head_only = head_only,
                                                                .request_id = "id-1",
                                                                .write_timeout = 200ms});
  }
  Result<void> respond(int status, std::string_view body) {
    wire::Headers headers;
    headers.add("Content-Type", "text/plain");
    Result<void> result;
    run([&]() -> awaitable<void> { result = co_await response->respond(status, headers, body); });
    return result;
  }
  void stream(std::initializer_list<std::string_view> pieces) {
    run([&]() -> awaitable<void> {
      EXPECT_TRUE(co_await response->begin(200, {}));
      for (const std::string_view piece : pieces) EXPECT_TRUE(co_await response->write(piece));
      EXPECT_TRUE(co_await response->end());
    });
  }
  std::optional<net::Connection> connection;
  std::optional<RawClient> client;
  std::optional<HttpResponse> response;
};

TEST_F(HttpResponseTest, WritesAWholeAnswerWithItsLength) {
  make();
  EXPECT_TRUE(respond(404, "nothing here"));
  EXPECT_EQ(client->received(),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nX-Request-Id: id-1\r\n"
            "Content-Length: 12\r\n\r\nnothing here");
  EXPECT_TRUE(response->reusable());
}

TEST_F(HttpResponseTest, SaysWhenTheConnectionEnds) {
  make(false, false);
  EXPECT_TRUE(respond(200, ""));
  EXPECT_EQ(client->received(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Request-Id: id-1\r\n"
            "Content-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(response->reusable());
}

TEST_F(HttpResponseTest, SaysToOldClientsThatTheConnectionStays) {
  make(true, true);
  EXPECT_TRUE(respond(200, "x"));
  EXPECT_EQ(client->received(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Request-Id: id-1\r\n"
            "Content-Length: 1\r\nConnection: keep-alive\r\n\r\nx");
}

TEST_F(HttpResponseTest, AnswersHeadWithEverythingButTheBody) {
  make(false, true, true);
  EXPECT_TRUE(respond(200, "12345"));
  EXPECT_EQ(client->received(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Request-Id: id-1\r\n"
            "Content-Length: 5\r\n\r\n");
}

TEST_F(HttpResponseTest, HasNoLengthWhereThereCanBeNoBody) {
  make();
  EXPECT_TRUE(respond(204, ""));
  EXPECT_EQ(client->received(),
            "HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\nX-Request-Id: id-1\r\n\r\n");
}

TEST_F(HttpResponseTest, StreamsInChunks) {
  make();
  stream({"hello", "", "0123456789abcdef"});
  EXPECT_EQ(client->received(),
            "HTTP/1.1 200 OK\r\nX-Request-Id: id-1\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
  EXPECT_TRUE(response->reusable());
}

TEST_F(HttpResponseTest, WritesWithoutWaitingWhatTheClientTakes) {
  make();
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await response->begin(200, {}));
    EXPECT_TRUE(response->write_now("hello").value());
    EXPECT_TRUE(response->write_now("").value());
    EXPECT_TRUE(response->write_now("0123456789abcdef").value());
    EXPECT_TRUE(co_await response->end());
  });
  EXPECT_EQ(client->received(),
            "HTTP/1.1 200 OK\r\nX-Request-Id: id-1\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
}

TEST_F(HttpResponseTest, WritesTheRestOfWhatTheClientDoesNotTakeAtOnce) {
  make();
  std::string expected =
      "HTTP/1.1 200 OK\r\nX-Request-Id: id-1\r\nTransfer-Encoding: chunked\r\n\r\n";
  bool written = false;
  start([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await response->begin(200, {}));
    std::string piece;
    for (int number = 0;; ++number) {
      piece = fmt::format("{:01000}", number);
      expected += fmt::format("3e8\r\n{}\r\n", piece);
      const auto now = response->write_now(piece);
      if (!now) break;
      EXPECT_TRUE(*now);
    }
    EXPECT_TRUE(co_await response->write_rest(piece));
    EXPECT_TRUE(co_await response->end());
    written = true;
  });
  run_until([&] {
    client->received();
    return written;
  });
  EXPECT_TRUE(client->received() == expected + "0\r\n\r\n");
}

TEST_F(HttpResponseTest, StreamsAnEmptyAnswer) {
  make();
  stream({});
  EXPECT_EQ(client->received(),
            "HTTP/1.1 200 OK\r\nX-Request-Id: id-1\r\nTransfer-Encoding: chunked\r\n\r\n"
            "0\r\n\r\n");
}

TEST_F(HttpResponseTest, StreamsToOldClientsUntilTheConnectionEnds) {
  make(true, true);
  stream({"one", "two"});
  EXPECT_EQ(client->received(),
            "HTTP/1.1 200 OK\r\nX-Request-Id: id-1\r\nConnection: close\r\n\r\nonetwo");
  EXPECT_FALSE(response->reusable());
}

TEST_F(HttpResponseTest, IsNotReusableBeforeItsEnd) {
  make();
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await response->begin(200, {}));
    EXPECT_TRUE(co_await response->write("half"));
  });
  EXPECT_FALSE(response->reusable());
}

TEST_F(HttpResponseTest, CallsAClientGoneThatTakesNothing) {
  make();
  const std::string large(32 * 1024 * 1024, 'x');
  const auto result = respond(200, large);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::ClientGone);
  EXPECT_FALSE(response->reusable());
}

// It takes something long before the timeout each time, and much less than it is waited for.
TEST_F(HttpResponseTest, CallsAClientGoneThatTakesItsAnswerTooSlowly) {
  using boost::asio::ip::tcp;
  tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  tcp::socket far(io, tcp::v4());
  // Before it connects, or the kernels hold more than it takes in seconds.
  far.set_option(boost::asio::socket_base::receive_buffer_size(2048));
  far.connect(acceptor.local_endpoint());
  tcp::socket near = acceptor.accept();
  near.set_option(boost::asio::socket_base::send_buffer_size(4096));
  net::Connection narrow(std::move(near), deadlines);
  HttpResponse slow(narrow, {.request_id = {}, .write_timeout = 1s});
  std::optional<Result<void>> result;
  std::size_t taken = 0;
  const std::string large(4 * 1024 * 1024, 'x');  // minutes, at that speed
  start([&]() -> awaitable<void> { result = co_await slow.respond(200, {}, large); });
  run([&]() -> awaitable<void> {
    boost::asio::steady_timer timer(io);
    std::array<char, 512> buffer;
    while (!result) {
      timer.expires_after(100ms);
      co_await timer.async_wait(net::kAwait);
      boost::system::error_code error;
      if (far.available(error) > 0) taken += far.read_some(boost::asio::buffer(buffer), error);
    }
  });
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Errc::ClientGone);
  EXPECT_EQ(narrow.status(), net::IoStatus::Timeout);
  EXPECT_GT(taken, 512U) << "it has taken more than once";
}

TEST_F(HttpResponseTest, IsTheLastOfAConnectionWhereItsRequestIsGivenUp) {
  make();
  EXPECT_TRUE(response->give_up());
  EXPECT_TRUE(respond(504, "late"));
  EXPECT_THAT(client->received(), testing::HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(client->ended()) << "at once, whatever still runs for it";
  EXPECT_FALSE(response->reusable());
  EXPECT_FALSE(response->give_up()) << "it is complete";
}

TEST_F(HttpResponseTest, EndsTheConnectionOfAStreamThatIsGivenUp) {
  make();
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await response->begin(200, {}));
    EXPECT_TRUE(co_await response->write("a"));
    EXPECT_TRUE(response->give_up());
    EXPECT_TRUE(co_await response->write("b"));
    EXPECT_TRUE(co_await response->end());
  });
  EXPECT_TRUE(client->received().ends_with("1\r\na\r\n1\r\nb\r\n0\r\n\r\n"));
  EXPECT_TRUE(client->ended());
}

TEST_F(HttpResponseTest, WaitsNoLongerForAClientOfARequestThatIsGivenUp) {
  response.emplace(*connection,
                   HttpResponse::ResponseOptions{.request_id = {}, .write_timeout = 1h});
  const std::string large(32 * 1024 * 1024, 'x');
  std::optional<Result<void>> result;
  start([&]() -> awaitable<void> { result = co_await response->respond(200, {}, large); });
  run_for(10ms);
  EXPECT_FALSE(response->give_up()) << "a piece is being written";
  run_until([&] { return result.has_value(); });
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Errc::ClientGone);
}

TEST(ReasonPhrase, IsKnownForEveryErrorOfOurs) {
  for (const ErrorInfo& info : error_table()) {
    EXPECT_NE(reason_phrase(info.http_status), "Unknown") << info.http_status;
  }
  EXPECT_EQ(reason_phrase(299), "Unknown");
}

}  // namespace
}  // namespace baton::http
