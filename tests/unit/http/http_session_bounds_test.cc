// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// What bounds a session's requests: the limits of its client, and the end of the process.
#include "http/http_session.h"
#include "net/await.h"
#include "support/io_fixture.h"
#include "unit/http/raw_client.h"

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::http {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Two sessions of one listener, over loopback.
struct HttpSessionBounds : test::IoFixture {
  struct Line {
    Line(HttpSessionBounds& host, ClientId id)
        : sockets(host.socket_pair()),
          connection(std::move(sockets.first), host.deadlines),
          client(std::move(sockets.second)),
          session(connection, host.context(), {.client = id}) {
      host.start([this]() -> awaitable<void> {
        co_await session.run();
        ended = true;
      });
    }
    std::pair<Socket, Socket> sockets;
    net::Connection connection;
    RawClient client;
    HttpSession session;
    bool ended = false;
  };

  Line& open(ClientId client = {.high = 1, .low = 0}) {
    return *lines.emplace_back(std::make_unique<Line>(*this, client));
  }
  SessionContext& context() {
    if (!shared) {
      api_keys = std::make_unique<ApiKeys>(keys);
      if (limits.any()) clients = std::make_unique<ClientLimits>(limits, 7);
      shared.emplace(SessionContext{.routes = routes,
                                    .keys = *api_keys,
                                    .limits = sizes,
                                    .timeouts = timeouts,
                                    .trust = trust,
                                    .metrics = metrics,
                                    .random = [] { return std::uint64_t{1}; },
                                    .clients = clients.get()});
    }
    return *shared;
  }
  void TearDown() override {
    for (const auto& line : lines) {
      line->client.close();
      line->session.stop(Error(Errc::ShuttingDown, "the end"));
      run_until([&] { return line->ended; });
    }
  }

  awaitable<void> hold(Call call) {
    ++held;
    boost::asio::steady_timer released(io, 30s);
    const Cancellation::Listener listener(call.cancellation, [&] { released.cancel(); });
    release = [&released] { released.cancel(); };
    co_await released.async_wait(net::kAwait);
    --held;
    release = nullptr;
    co_await respond_json(std::move(call), 200, "held");
  }

  static std::size_t count(std::string_view text) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find("HTTP/1.1 ", at)) != std::string_view::npos; ++at) {
      ++found;
    }
    return found;
  }
  // The last of so many answers.
  std::string answer(Line& line, std::size_t number = 1) {
    run_until([&] { return count(line.client.received()) >= number || line.client.ended(); });
    const std::string& all = line.client.received();
    return all.substr(std::min(all.size(), all.rfind("HTTP/1.1 ")));
  }
  std::string read_to_end(Line& line) {
    run_until([&] { return line.client.ended(); });
    return line.client.received();
  }
  // What was sent over the loopback can be read at once.
  void read_what_came() {
    while (io.poll() > 0) {
    }
  }
  testing::AssertionResult counted(Limit limit, int times) {
    const std::string line =
        fmt::format("baton_limit_refusals_total{{limit=\"{}\"}} {}\n", to_string(limit), times);
    return registry.render().contains(line) ? testing::AssertionSuccess()
                                            : testing::AssertionFailure() << registry.render();
  }

  Routes routes{
      {{"POST", "/echo", Access::Key,
        [](Call call) {
          std::string body = call.body;
          return respond_json(std::move(call), 200, std::move(body));
        }},
       {"GET", "/much", Access::Key,
        [](Call call) {
          return respond_json(std::move(call), 200, std::string(32 * 1024 * 1024, 'x'));
        }},
       {"GET", "/open", Access::Open,
        [](Call call) { return respond_json(std::move(call), 200, "open"); }},
       {"POST", "/hold", Access::Key, [this](Call call) { return hold(std::move(call)); }}}};
  std::vector<std::string> keys;
  config::ClientLimits limits;
  config::Limits sizes;
  config::Timeouts timeouts;
  config::Trust trust;
  telemetry::Registry registry;
  HttpMetrics metrics{registry};
  std::unique_ptr<ApiKeys> api_keys;
  std::unique_ptr<ClientLimits> clients;
  std::optional<SessionContext> shared;
  std::vector<std::unique_ptr<Line>> lines;
  int held = 0;
  std::function<void()> release;
};

constexpr const char* kEchoHi = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
constexpr const char* kHold = "POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kOpen = "GET /open HTTP/1.1\r\nHost: h\r\n\r\n";

std::string with_key(const char* key) {
  return fmt::format(
      "POST /echo HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {}\r\n"
      "Content-Length: 2\r\n\r\nhi",
      key);
}

TEST_F(HttpSessionBounds, ARequestBeyondTheRateIsToldWhenToComeAgain) {
  limits = {.rate = 0.01};
  Line& line = open();
  line.client.send(kEchoHi);
  EXPECT_THAT(answer(line), StartsWith("HTTP/1.1 200 OK\r\n"));
  line.client.send(kEchoHi);
  const std::string refusal = answer(line, 2);
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_THAT(refusal, HasSubstr("\r\nRetry-After: "));
  EXPECT_THAT(refusal, HasSubstr(R"("type":"rate_limit_error")"));
  EXPECT_THAT(refusal, HasSubstr(R"("code":"rate_limited","details":{"limit_kind":"client_rate")"));
  line.client.send(kOpen);
  EXPECT_THAT(answer(line, 3), EndsWith("open")) << "it is not limited, and the connection stays";
  EXPECT_TRUE(counted(Limit::ClientRate, 1));
}

TEST_F(HttpSessionBounds, ARefusalComesBeforeTheBody) {
  limits = {.rate = 0.01};
  open().client.send(kEchoHi);
  EXPECT_THAT(answer(*lines[0]), StartsWith("HTTP/1.1 200 OK\r\n"));
  for (const char* expect : {"", "Expect: 100-continue\r\n"}) {
    Line& line = open();
    line.client.send(
        fmt::format("POST /echo HTTP/1.1\r\nHost: h\r\n{}Content-Length: 1000000\r\n\r\n", expect));
    EXPECT_THAT(read_to_end(line), StartsWith("HTTP/1.1 429 "));
    EXPECT_THAT(line.client.received(), HasSubstr("Connection: close\r\n"));
  }
}

TEST_F(HttpSessionBounds, ARequestCountsUntilItsAnswerEnds) {
  limits = {.requests = 1};
  Line& first = open();
  first.client.send(kHold);
  run_until([this] { return held == 1; });
  Line& second = open();
  second.client.send(kEchoHi);
  EXPECT_THAT(answer(second), HasSubstr(R"("limit_kind":"client_requests")"));
  release();
  EXPECT_THAT(answer(first), EndsWith("held"));
  second.client.send(kEchoHi);
  EXPECT_THAT(answer(second, 2), StartsWith("HTTP/1.1 200 OK\r\n"));
  first.client.send(std::string(kEchoHi) + kEchoHi);
  EXPECT_THAT(answer(first, 3), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(counted(Limit::ClientRequests, 1));
}

TEST_F(HttpSessionBounds, ARequestThatIsRefusedOrLeftCountsNoLonger) {
  limits = {.requests = 1};
  timeouts.client_body = 50ms;
  open().client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_THAT(answer(*lines[0]), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(counted(Limit::ClientBody, 1));
  Line& leaves = open();
  lines[0]->client.close();
  run_until([this] { return lines[0]->ended; });
  leaves.client.send(kHold);
  run_until([this] { return held == 1; });
  leaves.client.close();
  run_until([&] { return leaves.ended; });
  open().client.send(kEchoHi);
  EXPECT_THAT(answer(*lines[2]), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpSessionBounds, KeysAreToldApartAndAddressesWhereThereAreNone) {
  limits = {.rate = 0.01};
  keys = {"k-one", "k-two"};
  Line& line = open();
  line.client.send(with_key("k-one"));
  EXPECT_THAT(answer(line), StartsWith("HTTP/1.1 200 "));
  line.client.send(with_key("k-two"));
  EXPECT_THAT(answer(line, 2), StartsWith("HTTP/1.1 200 ")) << "from the same address";
  Line& elsewhere = open({.high = 2, .low = 0});
  elsewhere.client.send(with_key("k-one"));
  EXPECT_THAT(answer(elsewhere), StartsWith("HTTP/1.1 429 ")) << "from another address";
  elsewhere.client.send(with_key("wrong"));
  EXPECT_THAT(answer(elsewhere, 2), StartsWith("HTTP/1.1 401 "));
}

TEST_F(HttpSessionBounds, AddressesAreToldApartWhereThereAreNoKeys) {
  limits = {.rate = 0.01};
  Line& one = open({.high = 1, .low = 0});
  Line& two = open({.high = 2, .low = 0});
  for (Line* line : {&one, &two}) {
    line->client.send(kEchoHi);
    EXPECT_THAT(answer(*line), StartsWith("HTTP/1.1 200 "));
    line->client.send(with_key("any"));
    EXPECT_THAT(answer(*line, 2), StartsWith("HTTP/1.1 429 ")) << "nobody has checked the key";
  }
}

TEST_F(HttpSessionBounds, CountsAHeadThatDoesNotArriveAndAnAnswerThatIsNotTaken) {
  timeouts.client_header = 50ms;
  timeouts.client_write = 50ms;
  Line& slow = open();
  slow.client.send("POST /echo HT");
  EXPECT_THAT(answer(slow), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(counted(Limit::ClientHeader, 1));
  Line& deaf = open();
  deaf.client.send("GET /much HTTP/1.1\r\nHost: h\r\n\r\n");
  run_until([&] { return deaf.ended; });
  EXPECT_TRUE(counted(Limit::ClientWrite, 1));
}

TEST_F(HttpSessionBounds, AtTheEndAHalfSentHeadIsToldSoAfterAMoment) {
  Line& line = open();
  line.client.send("POST /ec");
  read_what_came();
  line.session.finish();
  EXPECT_THAT(read_to_end(line), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(line.client.received(), HasSubstr(R"("code":"shutting_down")"));
  EXPECT_THAT(line.client.received(), HasSubstr("\r\nRetry-After: 1\r\n"));
  line.client.close();
  run_until([&] { return line.ended; });
}

TEST_F(HttpSessionBounds, AtTheEndAHalfSentBodyIsToldSoAfterAMoment) {
  Line& line = open();
  line.client.send(kEchoHi);
  answer(line);
  line.client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
  read_what_came();
  line.session.finish();
  EXPECT_THAT(read_to_end(line), HasSubstr("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(line.client.received(), HasSubstr("shutting_down"));
}

TEST_F(HttpSessionBounds, AtTheEndARequestThatTheKernelHasIsAnswered) {
  Line& line = open();
  line.client.send(kEchoHi);
  answer(line);
  line.client.send(kEchoHi);
  line.session.finish();  // before anything could be read
  EXPECT_EQ(count(read_to_end(line)), 2U);
  EXPECT_THAT(line.client.received(), EndsWith("\r\n\r\nhi"));
  EXPECT_THAT(line.client.received(), HasSubstr("Connection: close\r\n"));
}

TEST_F(HttpSessionBounds, AtTheEndANewConnectionMaySendItsFirstRequest) {
  Line& line = open();
  read_what_came();
  line.session.finish();
  read_what_came();
  EXPECT_FALSE(line.ended);
  line.client.send(kEchoHi);
  EXPECT_THAT(read_to_end(line), StartsWith("HTTP/1.1 200 OK\r\n"));

  Line& silent = open();
  silent.session.finish();  // before it has begun
  EXPECT_EQ(read_to_end(silent), "") << "one that sends nothing is ended all the same";
}

TEST_F(HttpSessionBounds, AtTheEndAnAnswerUnderWayIsNotHastened) {
  Line& line = open();
  line.client.send(kHold);
  run_until([this] { return held == 1; });
  line.session.finish();
  run_for(1500ms);
  EXPECT_EQ(held, 1);
  release();
  EXPECT_THAT(read_to_end(line), EndsWith("held"));
  EXPECT_THAT(line.client.received(), Not(HasSubstr("shutting_down")));
}

}  // namespace
}  // namespace baton::http
