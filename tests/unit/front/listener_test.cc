// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "front/listener.h"

#include "support/io_fixture.h"
#include "unit/front/raw_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <memory>

namespace baton::front {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGet = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

struct ListenerTest : test::IoFixture {
  void SetUp() override {
    auto acceptor = bind(io, {"127.0.0.1", 0}, Sharing::First);
    ASSERT_TRUE(acceptor) << acceptor.error().message();
    port = acceptor->local_endpoint().port();
    listener.emplace(std::move(*acceptor), deadlines, tasks,
                     SessionContext{.routes = routes,
                                    .keys = keys,
                                    .limits = limits,
                                    .timeouts = timeouts,
                                    .trust = trust,
                                    .metrics = http_metrics,
                                    .random = [] { return std::uint64_t{1}; },
                                    .clients = clients.get()},
                     Listener::Gate{open, 2}, nullptr);
    listener->start();
  }
  void TearDown() override {
    listener->finish();
    listener->stop(Error(Errc::ShuttingDown, "the end"));
    run_until([this] { return tasks.running() == 0; });
    EXPECT_EQ(open, 0U);
    EXPECT_EQ(http_metrics.connections.value(), 0);
  }
  RawClient connect() { return RawClient::connect(io, port); }
  // From another address of this machine.
  RawClient connect_from(const char* address) {
    using boost::asio::ip::tcp;
    tcp::socket socket(io, tcp::v4());
    socket.bind({boost::asio::ip::make_address(address), 0});
    socket.connect({boost::asio::ip::address_v4::loopback(), port});
    return RawClient(std::move(socket));
  }
  void expect_hello(RawClient& client) {
    client.send(kGet);
    run_until([&] { return client.received().ends_with("hello") || client.ended(); });
    EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
  }

  Routes routes{{{"GET", "/hello", Access::Open,
                  [this](Call call) {
                    trusted.push_back(call.trusted);
                    return respond_json(call, 200, "hello");
                  }},
                 {"GET", "/own", Access::Operator,
                  [](Call call) { return respond_json(call, 200, "own"); }}}};
  std::vector<routing::Trusted> trusted;  // what was thought of each request
  ApiKeys keys{{}};
  config::Limits limits;
  config::Timeouts timeouts;
  config::Trust trust;
  telemetry::Registry registry;
  HttpMetrics http_metrics{registry};
  std::unique_ptr<ClientLimits> clients;
  std::atomic<std::size_t> open{0};
  net::TaskGroup tasks{io, [](std::exception_ptr) { ADD_FAILURE() << "a task threw"; }};
  std::uint16_t port = 0;
  std::optional<Listener> listener;
};

TEST_F(ListenerTest, KnowsWhoCallsFromItsOwnMachine) {
  RawClient client = connect();
  client.send("GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n");
  run_until([&] { return client.received().ends_with("own") || client.ended(); });
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(ListenerTest, RunsASessionForEachConnection) {
  RawClient first = connect();
  RawClient second = connect();
  expect_hello(first);
  expect_hello(second);
  EXPECT_EQ(open, 2U);
  EXPECT_EQ(http_metrics.connections.value(), 2);
  first.close();
  run_until([this] { return open == 1; });
}

// The context holds the options by reference: what is said of them here counts from now on.
TEST_F(ListenerTest, TrustsTheSourcesItIsToldTo) {
  const auto network = [](const char* text) { return model::parse_network(text).value(); };
  const struct {
    config::Trust trust;
    routing::Trusted expected;
  } cases[] = {
      {{}, routing::Trusted::No},
      {{.routing_headers = true, .sources = {}}, routing::Trusted::Yes},
      {{.routing_headers = true, .sources = {network("127.0.0.0/8")}}, routing::Trusted::Yes},
      {{.routing_headers = true, .sources = {network("10.0.0.0/8")}}, routing::Trusted::No},
      {{.routing_headers = false, .sources = {network("127.0.0.0/8")}}, routing::Trusted::No},
  };
  for (const auto& c : cases) {
    trust = c.trust;
    RawClient client = connect();
    expect_hello(client);
    EXPECT_EQ(trusted.back(), c.expected);
    client.close();
    run_until([this] { return open == 0; });
  }
}

TEST_F(ListenerTest, TurnsAwayWhoeverIsTooMany) {
  RawClient first = connect();
  RawClient second = connect();
  expect_hello(first);
  expect_hello(second);
  RawClient third = connect();
  third.send(kGet);
  run_until([&] { return third.ended(); });
  EXPECT_THAT(third.received(), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(third.received(), HasSubstr("too_many_connections"));
  EXPECT_THAT(third.received(), HasSubstr("\r\nRetry-After: 1\r\n"));
  run_until([this] { return open == 2; });
  first.close();
  run_until([this] { return open == 1; });
  RawClient fourth = connect();
  expect_hello(fourth);
}

struct LimitedListenerTest : ListenerTest {
  LimitedListenerTest() {
    clients = std::make_unique<ClientLimits>(config::ClientLimits{.connections = 1}, 7);
  }
};

TEST_F(LimitedListenerTest, TurnsAwayAnAddressThatHasItsConnections) {
  RawClient first = connect();
  expect_hello(first);
  RawClient second = connect();
  second.send(kGet);
  run_until([&] { return second.ended(); });
  EXPECT_THAT(second.received(), StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_THAT(second.received(), HasSubstr(R"("limit_kind":"client_connections")"));
  EXPECT_THAT(second.received(), HasSubstr("\r\nRetry-After: 1\r\n"));
  run_until([this] { return open == 1; });
  RawClient other = connect_from("127.0.0.2");
  expect_hello(other);
  first.close();
  run_until([this] { return open == 1; });
  RawClient again = connect();
  expect_hello(again);
  EXPECT_THAT(registry.render(),
              HasSubstr("baton_limit_refusals_total{limit=\"client_connections\"} 1\n"));
}

// The kernel has told them that they are connected.
TEST_F(ListenerTest, FinishServesThoseWhoWaitToBeAccepted) {
  RawClient first = connect();
  RawClient second = connect();
  first.send(kGet);
  listener->finish();  // before anything was accepted
  run_until([&] { return first.ended(); });
  EXPECT_THAT(first.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(first.received(), HasSubstr("Connection: close\r\n"));
  second.send(kGet);
  run_until([&] { return second.ended(); });
  EXPECT_THAT(second.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
  run_until([this] { return tasks.running() == 0; });
}

TEST_F(ListenerTest, FinishTakesNobodyNewAndEndsTheIdle) {
  RawClient client = connect();
  expect_hello(client);
  listener->finish();
  run_until([&] { return client.ended(); });
  run_until([this] { return tasks.running() == 0; });
  boost::asio::ip::tcp::socket late(io);
  boost::system::error_code error;
  late.connect({boost::asio::ip::address_v4::loopback(), port}, error);
  EXPECT_EQ(error, boost::asio::error::connection_refused);
}

TEST_F(ListenerTest, AbortEndsConnectionsInWhateverState) {
  RawClient idle = connect();
  expect_hello(idle);
  RawClient half = connect();
  half.send("GET /hello HTTP/1.1\r\nHos");
  run_until([this] { return open == 2; });
  listener->finish();
  listener->abort();
  run_until([&] { return idle.ended() && half.ended(); });
  run_until([this] { return tasks.running() == 0; });
  EXPECT_EQ(open, 0U);
}

TEST(Bind, SharesAnAddressBetweenThreads) {
  boost::asio::io_context io;
  auto first = bind(io, {"127.0.0.1", 0}, Sharing::First);
  ASSERT_TRUE(first);
  EXPECT_TRUE(bind(io, {"127.0.0.1", first->local_endpoint().port()}, Sharing::Further));
}

TEST(Bind, SaysWhyAnAddressCannotBeHad) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor taken(io, {boost::asio::ip::address_v4::loopback(), 0});
  const auto in_use = bind(io, {"127.0.0.1", taken.local_endpoint().port()}, Sharing::First);
  ASSERT_FALSE(in_use);
  EXPECT_THAT(in_use.error().message(), HasSubstr("another process"));
  const auto unknown = bind(io, {"no-such-host.invalid", 1}, Sharing::First);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message(), HasSubstr("no-such-host.invalid:1"));
}

}  // namespace
}  // namespace baton::front
