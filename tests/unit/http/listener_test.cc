// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/listener.h"

#include "net/await.h"
#include "support/io_fixture.h"
#include "support/no_descriptors.h"
#include "unit/http/raw_client.h"

#include <boost/asio/steady_timer.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::http {
namespace {

using testing::EndsWith;
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
                     *limit, nullptr);
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
                    return respond_json(std::move(call), 200, "hello");
                  }},
                 {"GET", "/slow", Access::Open,
                  [this](Call call) -> awaitable<void> {
                    ++busy;
                    boost::asio::steady_timer until(io, std::chrono::seconds(30));
                    const Cancellation::Listener left(call.cancellation, [&] { until.cancel(); });
                    co_await until.async_wait(net::kAwait);
                  }},
                 {"GET", "/own", Access::Operator,
                  [](Call call) { return respond_json(std::move(call), 200, "own"); }}}};
  std::vector<scheduling::Trusted> trusted;  // what was thought of each request
  int busy = 0;                              // requests that will not be answered
  ApiKeys keys{{}};
  config::Limits limits;
  config::Timeouts timeouts;
  config::Trust trust;
  telemetry::Registry registry;
  HttpMetrics http_metrics{registry};
  std::unique_ptr<ClientLimits> clients;
  std::atomic<std::size_t> open{0};
  std::optional<Listener::ConnectionLimit> limit{{.open = open, .limit = 2}};
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
    scheduling::Trusted expected;
  } cases[] = {
      {{}, scheduling::Trusted::No},
      {{.routing_headers = true, .sources = {}}, scheduling::Trusted::Yes},
      {{.routing_headers = true, .sources = {network("127.0.0.0/8")}}, scheduling::Trusted::Yes},
      {{.routing_headers = true, .sources = {network("10.0.0.0/8")}}, scheduling::Trusted::No},
      {{.routing_headers = false, .sources = {network("127.0.0.0/8")}}, scheduling::Trusted::No},
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

// What a client sees that was closed is nothing but the end.
TEST_F(ListenerTest, LeavesToTheKernelWhoeverIsFarTooMany) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) expect_hello(clients.emplace_back(connect()));
  for (int i = 0; i < 200; ++i) clients.push_back(connect());
  std::size_t most = 0;
  run_until([&] {
    most = std::max(most, open.load());
    return http_metrics.pauses_for_connections.value() > 0;
  });
  EXPECT_GE(most, 64U);
  run_until([&] {
    most = std::max(most, open.load());
    return std::ranges::all_of(clients | std::views::drop(2),
                               [](auto& one) { return one.ended(); });
  });
  EXPECT_LE(most, 2U + 64U + 1U);
  for (auto& one : clients | std::views::drop(2))
    EXPECT_THAT(one.received(), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  clients.clear();
  run_until([this] { return open == 0; });
  RawClient next = connect();
  expect_hello(next);
}

TEST_F(ListenerTest, OutlivesTheEndOfAllDescriptors) {
  RawClient before = connect();
  expect_hello(before);
  RawClient waiting = connect();
  waiting.send(kGet);
  {
    const test::NoDescriptors none;
    run_until([&] { return http_metrics.pauses_for_descriptors.value() > 0; });
    expect_hello(before);
    EXPECT_EQ(open, 1U);
  }
  run_until([&] { return waiting.received().ends_with("hello") || waiting.ended(); });
  EXPECT_THAT(waiting.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

struct ShortListenerTest : ListenerTest {
  // Room for a few: each client takes two of this process, and wants two more.
  ShortListenerTest()
      : budget(static_cast<std::size_t>(net::lowest_free_descriptor(STDERR_FILENO).value_or(0)) +
                   16 + 20,
               [this](std::string_view what) { short_of.emplace_back(what); }) {
    limit.emplace(Listener::ConnectionLimit{.open = open, .limit = 1000, .descriptors = &budget});
  }
  std::vector<std::string> short_of;
  net::DescriptorBudget budget;
};

TEST_F(ShortListenerTest, LeavesClientsToTheKernelBeforeDescriptorsAreGone) {
  std::vector<RawClient> clients;
  while (http_metrics.pauses_for_descriptors.value() == 0 && clients.size() < 20) {
    clients.push_back(connect());
    run_until(
        [&] { return open == clients.size() || http_metrics.pauses_for_descriptors.value() > 0; });
  }
  const std::size_t fit = open;
  EXPECT_GE(fit, 2U);
  EXPECT_LE(fit, 8U);
  EXPECT_EQ(short_of, std::vector<std::string>{"client connections"});
  RawClient waiting = connect();
  waiting.send(kGet);
  run_for(std::chrono::milliseconds(250));
  EXPECT_EQ(waiting.received(), "");
  EXPECT_FALSE(waiting.ended());
  EXPECT_EQ(open, fit);
  clients.clear();
  run_until([&] { return waiting.received().ends_with("hello") || waiting.ended(); });
  EXPECT_THAT(waiting.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

struct ClosingListenerTest : ListenerTest {
  ClosingListenerTest() {
    limit.emplace(
        Listener::ConnectionLimit{.open = open, .limit = 2, .when_full = WhenFull::CloseIdle});
  }
};

TEST_F(ClosingListenerTest, ClosesTheConnectionThatIsIdleLongest) {
  RawClient first = connect();
  run_until([this] { return open == 1; });
  RawClient second = connect();
  run_until([this] { return open == 2; });
  expect_hello(first);  // so the second one has been idle for longer
  RawClient third = connect();
  expect_hello(third);
  run_until([&] { return second.ended(); });
  EXPECT_EQ(second.received(), "");
  EXPECT_FALSE(first.ended());
  RawClient fourth = connect();
  expect_hello(fourth);
  run_until([&] { return first.ended(); });
  EXPECT_FALSE(third.ended());
  run_until([this] { return open == 2; });
}

TEST_F(ClosingListenerTest, ClosesOneThatIsBeingAskedOnlyWhereNoneIsIdle) {
  RawClient half = connect();
  half.send("GET /hello HTTP/1.1\r\nHos");
  run_until([this] { return open == 1; });
  RawClient idle = connect();
  expect_hello(idle);
  RawClient third = connect();
  third.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  run_until([&] { return idle.ended() && busy == 1; });
  EXPECT_FALSE(half.ended());
  RawClient fourth = connect();
  expect_hello(fourth);
  run_until([&] { return half.ended(); });
  EXPECT_FALSE(third.ended());
}

TEST_F(ClosingListenerTest, AnswersWhatEverybodyMayAskWhereAllAreBusy) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(connect());
    clients.back().send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    run_until([&] { return busy == i + 1; });
  }
  RawClient probe = connect();
  expect_hello(probe);
  RawClient other = connect();
  other.send("GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n");
  run_until([&] { return other.received().ends_with("}") || other.ended(); });
  EXPECT_THAT(other.received(), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(other.received(), HasSubstr("too_many_connections"));
  for (auto& one : clients) EXPECT_FALSE(one.ended());
}

TEST_F(ClosingListenerTest, CountsThoseWhoMayAskLittleApart) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(connect());
    clients.back().send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    run_until([&] { return busy == i + 1; });
  }
  std::vector<RawClient> probes;
  for (int i = 0; i < 20; ++i) {  // more than may stay
    probes.push_back(connect());
    expect_hello(probes.back());
  }
  EXPECT_TRUE(probes.front().ended());
  clients.clear();
  run_until([this] { return open <= 16; });
  RawClient own = connect();
  own.send("GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n");
  run_until([&] { return own.received().ends_with("own"); });
  EXPECT_THAT(own.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
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

// As far as its client knows, a connection is good until an answer says otherwise.
TEST_F(ListenerTest, RetireClosesNothingThatIsNotAnswered) {
  RawClient idle = connect();
  expect_hello(idle);
  RawClient fresh = connect();
  run_until([this] { return open == 2; });
  listener->retire();
  run_for(std::chrono::milliseconds(1300));  // longer than finish() would wait
  for (RawClient* client : {&idle, &fresh}) {
    EXPECT_FALSE(client->ended());
    client->send(kGet);
    run_until([&] { return client->ended(); });
    EXPECT_THAT(client->received(), EndsWith("hello"));
    EXPECT_THAT(client->received(), HasSubstr("Connection: close\r\n"));
  }
  run_until([this] { return tasks.running() == 0; });
}

TEST_F(ListenerTest, FinishHurriesWhatWasRetired) {
  RawClient idle = connect();
  expect_hello(idle);
  listener->retire();
  listener->finish();
  run_until([&] { return idle.ended(); });
  run_until([this] { return tasks.running() == 0; });
}

// What another process has as well goes on to have connections, and this one hears of none.
TEST_F(ListenerTest, LeavesASharedSocketToTheOther) {
  auto mine = bind(io, {"127.0.0.1", 0}, Sharing::First);
  ASSERT_TRUE(mine);
  boost::asio::io_context other_io;
  boost::asio::ip::tcp::acceptor other(other_io, boost::asio::ip::tcp::v4(),
                                       ::dup(mine->native_handle()));
  const std::uint16_t shared = mine->local_endpoint().port();
  Listener leaving(std::move(*mine), deadlines, tasks,
                   SessionContext{.routes = routes,
                                  .keys = keys,
                                  .limits = limits,
                                  .timeouts = timeouts,
                                  .trust = trust,
                                  .metrics = http_metrics,
                                  .random = [] { return std::uint64_t{1}; }},
                   *limit, nullptr);
  leaving.start();
  RawClient before = RawClient::connect(io, shared);
  expect_hello(before);
  leaving.retire();
  before.close();
  run_until([this] { return open == 0; });
  RawClient after = RawClient::connect(io, shared);
  run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(open, 0U);
  EXPECT_FALSE(after.ended());
  EXPECT_TRUE(other.accept().is_open());
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
}  // namespace baton::http
