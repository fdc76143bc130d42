// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/http_session.h"

#include "net/await.h"
#include "support/io_fixture.h"
#include "unit/http/raw_client.h"

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace baton::http {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t kMemory = std::size_t{64} << 20U;

// One session over loopback, with a few routes of its own.
struct HttpSessionTest : test::IoFixture {
  void begin(std::vector<std::string> keys = {}) {
    auto [near, far] = socket_pair();
    api_keys = std::make_unique<ApiKeys>(keys);
    context.emplace(SessionContext{.routes = routes,
                                   .keys = *api_keys,
                                   .limits = limits,
                                   .timeouts = timeouts,
                                   .trust = trust,
                                   .metrics = http_metrics,
                                   .random = [this] { return ++draws; },
                                   .memory = &memory});
    connection.emplace(std::move(near), deadlines);
    client.emplace(std::move(far));
    session.emplace(*connection, *context, Peer{trusted, loopback});
    ended = false;
    start([this]() -> awaitable<void> {
      co_await session->run();
      ended = true;
    });
  }
  void TearDown() override {
    if (client) client->close();
    if (session) session->stop(Error(Errc::ShuttingDown, "the end"));
    run_until([this] { return ended; });
  }

  awaitable<void> echo(Call call) {
    bodies.push_back(call.body);
    ids.push_back(call.request_id);
    last_trusted = call.trusted;
    clients.push_back(call.client);
    co_await call.response.respond(200, {}, call.body);
  }
  awaitable<void> hang(Call call) {
    hanging = true;
    boost::asio::steady_timer forever(io, 30s);
    const Cancellation::Listener listener(call.cancellation, [&] { forever.cancel(); });
    co_await forever.async_wait(net::kAwait);
    hanging = false;
    if (!call.cancellation.requested()) co_return;
    reason = call.cancellation.reason().code();
    Error why = call.cancellation.reason();
    co_await respond_error(std::move(call), std::move(why));
  }

  // What came, once that much of it has come.
  std::string receive(std::size_t answers) {
    run_until([&] { return client->ended() || count(client->received()) >= answers; });
    return client->received();
  }
  // What was sent over the loopback can be read at once.
  void read_what_came() {
    while (io.poll() > 0) {
    }
  }
  std::string receive_until_end() {
    run_until([&] { return client->ended(); });
    return client->received();
  }
  static std::size_t count(std::string_view text) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find("HTTP/1.1 ", at)) != std::string_view::npos; ++at) {
      ++found;
    }
    return found;
  }
  std::uint64_t refused(Errc code) {
    return http_metrics.refused[static_cast<std::size_t>(code)]->value();
  }

  Routes routes{
      {{"POST", "/echo", Access::Key, [this](Call call) { return echo(std::move(call)); }},
       {"GET", "/open", Access::Open, [this](Call call) { return echo(std::move(call)); }},
       {"GET", "/own", Access::Operator, [this](Call call) { return echo(std::move(call)); }},
       {"POST", "/hang", Access::Open, [this](Call call) { return hang(std::move(call)); }}}};
  config::Limits limits;
  config::Timeouts timeouts;
  config::Trust trust;
  telemetry::Registry registry;
  HttpMetrics http_metrics{registry};
  MemoryBudget memory{kMemory};
  std::unique_ptr<ApiKeys> api_keys;
  std::optional<SessionContext> context;
  std::optional<net::Connection> connection;
  std::optional<RawClient> client;
  std::optional<HttpSession> session;
  bool ended = true;

  std::uint64_t draws = 0;
  std::vector<std::string> bodies;
  std::vector<std::string> ids;
  std::vector<std::string> clients;
  scheduling::Trusted trusted = scheduling::Trusted::No;
  bool loopback = false;
  std::optional<scheduling::Trusted> last_trusted;
  bool hanging = false;
  std::optional<Errc> reason;
};

constexpr const char* kEcho = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";

TEST_F(HttpSessionTest, AnswersOneRequestAfterTheOther) {
  begin();
  client->send(kEcho);
  EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(client->received(), EndsWith("\r\n\r\nhi"));
  client->send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\n\r\n");
  EXPECT_THAT(receive(2), EndsWith("\r\n\r\nabc"));
  EXPECT_FALSE(ended);
}

TEST_F(HttpSessionTest, TellsHandlersWhetherTheSourceIsTrusted) {
  for (const scheduling::Trusted source : {scheduling::Trusted::No, scheduling::Trusted::Yes}) {
    trusted = source;
    begin();
    client->send(
        "POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    receive_until_end();
    run_until([this] { return ended; });
    EXPECT_EQ(last_trusted, source);
  }
}

TEST_F(HttpSessionTest, TellsHandlersByWhichKeyAndNotTheKey) {
  const auto post = [this](const std::string& key) {
    client->send("POST /echo HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + key +
                 "\r\nContent-Length: 0\r\n\r\n");
    receive(clients.size() + 1);
  };
  begin({"k-one", "k-two"});
  for (const char* key : {"k-one", "k-two", "k-one"}) post(key);
  ASSERT_EQ(clients.size(), 3U);
  EXPECT_EQ(clients[0], clients[2]);
  EXPECT_NE(clients[0], clients[1]);
  for (const std::string& one : clients) {
    EXPECT_FALSE(one.empty());
    EXPECT_THAT(one, Not(HasSubstr("k-")));
  }
}

TEST_F(HttpSessionTest, AnswersRequestsSentAheadInTheirOrder) {
  begin();
  client->send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n1"
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n2"
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n3");
  receive(3);
  EXPECT_EQ(bodies, (std::vector<std::string>{"1", "2", "3"}));
}

TEST_F(HttpSessionTest, EndsWhereTheClientWantsIt) {
  for (const char* request : {"POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                              "Content-Length: 0\r\n\r\n",
                              "POST /echo HTTP/1.0\r\nContent-Length: 0\r\n\r\n"}) {
    begin();
    client->send(request);
    EXPECT_THAT(receive_until_end(), HasSubstr("Connection: close\r\n"));
    run_until([this] { return ended; });
  }
}

TEST_F(HttpSessionTest, ReadsARequestThatComesByteByByte) {
  begin();
  for (const char* byte = kEcho; *byte != '\0'; ++byte) {
    client->send(std::string_view(byte, 1));
    read_what_came();
  }
  EXPECT_THAT(receive(1), EndsWith("\r\n\r\nhi"));
}

TEST_F(HttpSessionTest, TakesOverASafeRequestIdAndDrawsOneOtherwise) {
  begin();
  const std::string long_id(129, 'x');
  for (const std::string& id :
       {std::string("abc-1"), std::string("has space"), std::string("q\"q"), long_id}) {
    client->send("GET /open HTTP/1.1\r\nHost: h\r\nX-Request-Id: " + id + "\r\n\r\n");
    receive(ids.size() + 1);
  }
  ASSERT_EQ(ids.size(), 4U);
  EXPECT_EQ(ids[0], "abc-1");
  EXPECT_THAT(client->received(), HasSubstr("X-Request-Id: abc-1\r\n"));
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(ids[i].size(), 32U) << ids[i];
    EXPECT_THAT(client->received(), HasSubstr("X-Request-Id: " + ids[i] + "\r\n"));
  }
}

TEST_F(HttpSessionTest, RefusesAHeadThatDoesNotArriveInTime) {
  timeouts.client_header = 50ms;
  begin();
  client->send("POST /echo HT");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_EQ(refused(Errc::RequestTimeout), 1U);
}

TEST_F(HttpSessionTest, RefusesABodyThatDoesNotArriveInTime) {
  timeouts.client_body = 50ms;
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_TRUE(bodies.empty());
}

TEST_F(HttpSessionTest, EndsAConnectionNobodyUsesWithoutAWord) {
  timeouts.client_idle = 50ms;
  begin();
  EXPECT_EQ(receive_until_end(), "");
}

TEST_F(HttpSessionTest, RefusesWhatIsTooLarge) {
  limits.body_bytes = 10;
  limits.header_bytes = 1000;
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("Connection: close\r\n"));
  client->close();
  run_until([this] { return ended; });

  begin();
  client->send("GET /open HTTP/1.1\r\nHost: h\r\nX-Large: " + std::string(2000, 'x') + "\r\n\r\n");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
}

TEST_F(HttpSessionTest, RefusesABodyThatHasNoRoomInMemoryByItsHead) {
  MemoryShare others(&memory);
  ASSERT_TRUE(others.cover(kMemory - 100'000));
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("\"code\":\"memory_exhausted\""));
  EXPECT_EQ(refused(Errc::MemoryExhausted), 1U);
  EXPECT_EQ(memory.used(), others.held());
}

TEST_F(HttpSessionTest, RefusesABodyThatOutgrowsMemoryAndLetsGoOfIt) {
  MemoryShare others(&memory);
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n" +
               std::string(100'000, 'x'));
  run_until([&] { return memory.used() >= 100'000; });
  ASSERT_TRUE(others.cover(kMemory - memory.used()));
  client->send(std::string(90'000, 'x'));
  run_until([&] { return count(client->received()) == 1; });
  EXPECT_EQ(memory.used(), others.held()) << "before the client has closed";
  EXPECT_THAT(receive_until_end(), HasSubstr("memory_exhausted"));
}

TEST_F(HttpSessionTest, AnswersShortRequestsWhereMemoryIsFull) {
  MemoryShare others(&memory);
  ASSERT_TRUE(others.cover(kMemory));
  begin();
  client->send(kEcho);
  EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string body(MemoryBudget::kUncounted, 'x');
  client->send(fmt::format("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}",
                           body.size(), body));
  receive(2);
  run_until([&] { return client->received().ends_with(body); });
}

TEST_F(HttpSessionTest, ABodyHasMemoryUntilItsRequestEnds) {
  begin();
  client->send("POST /hang HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" +
               std::string(100'000, 'x'));
  run_until([&] { return memory.used() >= 100'000; });
  client->send(std::string(100'000, 'x'));
  run_until([&] { return hanging; });
  EXPECT_GE(memory.used(), 190'000U);
  session->stop(Error(Errc::ShuttingDown, "enough"));
  run_until([&] { return ended; });
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(HttpSessionTest, ABodyThatIsGivenUpHalfWayGivesItsMemoryBack) {
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" +
               std::string(100'000, 'x'));
  run_until([&] { return memory.used() >= 100'000; });
  client->close();
  run_until([&] { return ended; });
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(HttpSessionTest, ABodyThatCouldNeverBeReadIsTooLarge) {
  begin();
  client->send(fmt::format("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
                           memory.largest_body() + 1));
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
}

TEST_F(HttpSessionTest, RefusesWhatIsNoHttp) {
  begin();
  client->send("\x16\x03\x01 hello\r\n\r\n");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("\"code\":\"invalid_request\""));
}

TEST_F(HttpSessionTest, AClientStillSendingGetsToReadItsRefusal) {
  limits.body_bytes = 10;
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" +
               std::string(100'000, 'x'));
  run_until([&] { return count(client->received()) == 1; });
  client->send(std::string(100'000, 'x'));
  client->send(std::string(100'000, 'x'));
  EXPECT_THAT(receive_until_end(), HasSubstr("payload_too_large"));
}

TEST_F(HttpSessionTest, AsksForABodyThatWaitsToBeAskedFor) {
  begin();
  client->send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  run_until([&] { return client->received() == "HTTP/1.1 100 Continue\r\n\r\n"; });
  client->send("ok");
  EXPECT_THAT(receive(2), EndsWith("\r\n\r\nok"));
}

TEST_F(HttpSessionTest, RefusesAnyOtherExpectation) {
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nExpect: miracles\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 417 Expectation Failed\r\n"));
}

TEST_F(HttpSessionTest, DoesNotAskForTheBodyOfARequestItRefuses) {
  begin({"key"});
  client->send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
}

TEST_F(HttpSessionTest, AnswersHeadLikeGetWithoutTheBody) {
  begin();
  client->send("HEAD /open HTTP/1.1\r\nHost: h\r\n\r\nGET /open HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(receive(2), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpSessionTest, TellsWhichMethodsThereAre) {
  begin();
  client->send("OPTIONS /echo HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 204 No Content\r\nAllow: POST, OPTIONS\r\n"));
  client->send("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(receive(2), HasSubstr("Allow: GET, HEAD, POST, OPTIONS\r\n"));
  client->send("GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(receive(3), HasSubstr("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("\r\nAllow: POST, OPTIONS\r\n"));
}

TEST_F(HttpSessionTest, TellsWhereThereIsNothing) {
  begin();
  client->send("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_THAT(receive(2), HasSubstr("HTTP/1.1 200 OK\r\n")) << "the connection goes on";
  EXPECT_EQ(refused(Errc::NotFound), 1U);
}

TEST_F(HttpSessionTest, RefusesAStrangerBeforeTheBodyIsRead) {
  begin({"key"});
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"));
  EXPECT_EQ(refused(Errc::Unauthorized), 1U);
}

TEST_F(HttpSessionTest, LetsKeysAndOpenRoutesIn) {
  begin({"key"});
  client->send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer key\r\n"
      "Content-Length: 2\r\n\r\nhi");
  EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 200 OK\r\n"));
  client->send("GET /open HTTP/1.1\r\nHost: h\r\n\r\n");
  receive(2);
  EXPECT_EQ(bodies.size(), 2U);
  client->send("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(receive(3), HasSubstr("HTTP/1.1 401 Unauthorized\r\n"))
      << "a stranger learns nothing of what there is";
}

TEST_F(HttpSessionTest, WithoutKeysOperatorsAreThoseOnThisMachine) {
  begin();
  client->send("GET /own HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_THAT(client->received(), HasSubstr("admin_keys_file"));
  EXPECT_EQ(refused(Errc::Forbidden), 1U);
  client->close();
  run_until([this] { return ended; });

  loopback = true;
  begin();
  client->send("GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 200 OK\r\n"));
  client->send("GET /own HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n");
  EXPECT_THAT(receive(2), HasSubstr("HTTP/1.1 403 Forbidden\r\n")) << "a page is not an operator";
}

// A page can have its own name point here, and is then no stranger to the browser.
TEST_F(HttpSessionTest, WithoutKeysOperatorsCallByAnAddressOrAsLocalhost) {
  loopback = true;
  const std::pair<const char*, const char*> cases[] = {{"localhost", "200"},
                                                       {"LOCALHOST:8081", "200"},
                                                       {"127.0.0.1:8081", "200"},
                                                       {"10.0.0.7", "200"},
                                                       {"[::1]", "200"},
                                                       {"[::1]:8081", "200"},
                                                       {"evil.example", "403"},
                                                       {"evil.example:8081", "403"},
                                                       {"localhost.evil.example", "403"},
                                                       {"1.2.3.4.evil.example", "403"}};
  for (const auto& [host, status] : cases) {
    begin();
    client->send(fmt::format("GET /own HTTP/1.1\r\nHost: {}\r\n\r\n", host));
    EXPECT_THAT(receive(1), StartsWith(fmt::format("HTTP/1.1 {} ", status))) << host;
    client->close();
    run_until([this] { return ended; });
  }
}

TEST_F(HttpSessionTest, WithKeysOperatorsAreThoseWhoHaveOne) {
  for (const bool here : {false, true}) {
    loopback = here;
    begin({"key"});
    client->send("GET /own HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(receive(1), StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
    client->send("GET /own HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer key\r\n\r\n");
    EXPECT_THAT(receive(2), HasSubstr("HTTP/1.1 200 OK\r\n"));
    client->close();
    run_until([this] { return ended; });
  }
}

constexpr const char* kHang = "POST /hang HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";

TEST_F(HttpSessionTest, CancelsTheRequestOfAClientThatLeaves) {
  begin();
  client->send(kHang);
  run_until([this] { return hanging; });
  client->close();
  run_until([this] { return ended; });
  EXPECT_EQ(reason, Errc::ClientGone);
}

TEST_F(HttpSessionTest, FinishEndsAnIdleConnectionAtOnce) {
  begin();
  client->send(kEcho);
  receive(1);
  session->finish();
  run_until([this] { return ended; });
  EXPECT_EQ(count(receive_until_end()), 1U);
}

TEST_F(HttpSessionTest, FinishLetsTheCurrentRequestEndAndTakesNoOther) {
  begin();
  client->send(std::string("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nh"));
  read_what_came();
  session->finish();
  read_what_came();
  EXPECT_FALSE(ended);
  client->send(std::string("i") + kEcho);
  EXPECT_THAT(receive_until_end(), HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(bodies.size(), 1U);
  run_until([this] { return ended; });
}

// Regression: a head that came in two more pieces was given up after the first of them.
TEST_F(HttpSessionTest, FinishLetsARequestWhoseHeadHasBegunEnd) {
  begin();
  client->send("POST /ec");
  read_what_came();
  session->finish();
  client->send("ho HTTP/1.1\r\n");
  read_what_came();
  client->send("Host: h\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpSessionTest, StopEndsTheCurrentRequestAsAnError) {
  begin();
  client->send(kHang);
  run_until([this] { return hanging; });
  session->stop(Error(Errc::ShuttingDown, "the end"));
  EXPECT_THAT(receive_until_end(), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_EQ(reason, Errc::ShuttingDown);
}

TEST_F(HttpSessionTest, StopEndsAConnectionThatIsBeingRead) {
  begin();
  client->send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\nhalf");
  run_for(20ms);
  session->stop(Error(Errc::ShuttingDown, "the end"));
  run_until([this] { return ended; });
  EXPECT_TRUE(bodies.empty());
}

}  // namespace
}  // namespace baton::http
