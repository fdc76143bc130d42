// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/client.h"

#include "support/fake_engine.h"
#include "support/io_fixture.h"
#include "support/temporary_directory.h"
#include "support/tls_server.h"

#include <boost/asio/ip/address.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace baton::loadgen {
namespace {

using namespace std::chrono_literals;
using test::FakeEngine;
using test::FakePeer;
using testing::HasSubstr;

Server server_at(const model::Endpoint& endpoint) {
  auto server = find_server("http://" + endpoint.to_string(), "", "", {});
  EXPECT_TRUE(server) << server.error().message();
  return *std::move(server);
}

struct ClientTest : test::IoFixture {
  // Sends one request on a client that is kept; what came back, or the kind of failure.
  std::string ask(std::string_view body = "{}", std::chrono::milliseconds timeout = 5s) {
    std::string answer;
    run([&]() -> awaitable<void> {
      const Listener listener{
          .on_head =
              [&](const wire::ResponseHead& head) { answer += std::to_string(head.status) + " "; },
          .on_body = [&](std::string_view bytes) { answer += bytes; }};
      const auto sent = co_await client->send({.method = "POST",
                                               .path = "/x",
                                               .body = body,
                                               .headers = "X-More: 1\r\n",
                                               .timeout = timeout},
                                              listener);
      if (!sent) answer += sent.error().message();
    });
    return answer;
  }
  void connect_to(const model::Endpoint& endpoint) {
    server = server_at(endpoint);
    client.emplace(io, deadlines, *server, stop);
  }

  std::optional<Server> server;
  Cancellation stop;
  std::optional<Client> client;
};

TEST_F(ClientTest, KeepsItsConnection) {
  FakeEngine engine(test::always(test::response(200, "hello")));
  connect_to(engine.endpoint());
  EXPECT_EQ(ask(R"({"a":1})"), "200 hello");
  EXPECT_EQ(ask(), "200 hello");
  EXPECT_EQ(engine.connections(), 1U);
  const auto seen = engine.requests();
  EXPECT_EQ(seen[0].body, R"({"a":1})");
  EXPECT_THAT(seen[0].head, HasSubstr("POST /x HTTP/1.1\r\n"));
  EXPECT_THAT(seen[0].head, HasSubstr("Host: " + engine.endpoint().to_string()));
  EXPECT_THAT(seen[0].head, HasSubstr("X-More: 1\r\n"));
}

TEST_F(ClientTest, ReplacesAKeptConnectionThatProvesDead) {
  // Each connection answers one request, and closes when it has read the next.
  FakeEngine engine([](FakePeer& peer) {
    if (!peer.read_request()) return;
    peer.write(test::response(200, "once"));
    peer.read_request();
  });
  connect_to(engine.endpoint());
  EXPECT_EQ(ask(), "200 once");
  EXPECT_EQ(ask(), "200 once");
  EXPECT_EQ(engine.connections(), 2U);
}

TEST_F(ClientTest, TellsAnAnswerThatWasCutOff) {
  FakeEngine engine([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  });
  connect_to(engine.endpoint());
  EXPECT_EQ(ask(), "200 halfbroken");
}

TEST_F(ClientTest, TellsWhatIsNoHttp) {
  FakeEngine engine([](FakePeer& peer) {
    peer.read_request();
    peer.write("SSH-2.0-OpenSSH\r\n\r\n");
  });
  connect_to(engine.endpoint());
  EXPECT_EQ(ask(), "protocol");
}

TEST_F(ClientTest, TakesAnAnswerThatEndsWithTheConnection) {
  FakeEngine engine([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall");
  });
  connect_to(engine.endpoint());
  EXPECT_EQ(ask(), "200 all");
}

TEST_F(ClientTest, GivesUpAfterItsTimeout) {
  FakeEngine engine([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  connect_to(engine.endpoint());
  EXPECT_EQ(ask("{}", 100ms), "timeout");
  EXPECT_TRUE(engine.wait_for_drops(1));
}

TEST_F(ClientTest, SaysThatNobodyListens) {
  connect_to(test::closed_endpoint());
  EXPECT_EQ(ask(), "connect");
}

TEST_F(ClientTest, TellsATimeoutOfConnectingFromOneOfTheAnswer) {
  // The engine takes the connection and never shakes hands.
  FakeEngine engine([](FakePeer& peer) { peer.wait_for_drop(); });
  const auto secured = find_server("https://" + engine.endpoint().to_string(), "", "", {});
  ASSERT_TRUE(secured) << secured.error().message();
  server = *secured;
  client.emplace(io, deadlines, *server, stop);
  EXPECT_EQ(ask("{}", 100ms), "tls");
}

TEST_F(ClientTest, BeginsWithTheNextAddressAfterOneThatFailed) {
  FakeEngine engine(test::always(test::response(200, "hello")));
  server = server_at(engine.endpoint());
  server->endpoint.host = "engine";
  // The engine listens at 127.0.0.1 only.
  server->addresses = {boost::asio::ip::make_address("127.0.0.2"),
                       boost::asio::ip::make_address("127.0.0.1")};
  client.emplace(io, deadlines, *server, stop);
  EXPECT_EQ(ask(), "200 hello");
}

TEST_F(ClientTest, SpeaksTls) {
  const test::TemporaryDirectory directory;
  test::TlsServer tls(io);
  tls.request_end = "\r\n\r\n{}";
  const std::string url = "https://" + tls.endpoint().to_string();
  const auto trusting = find_server(url, "", directory.write("ca.pem", tls.own.certificate), {});
  ASSERT_TRUE(trusting) << trusting.error().message();
  start([&tls] { return tls.serve(); });
  client.emplace(io, deadlines, *trusting, stop);
  EXPECT_EQ(ask(), "200 body");
  EXPECT_EQ(ask(), "200 body");
  EXPECT_EQ(tls.requests.size(), 2U) << "the connection was kept";

  const auto strict = find_server(url, "", "", {});
  ASSERT_TRUE(strict) << strict.error().message();
  start([&tls] { return tls.serve(); });
  client.emplace(io, deadlines, *strict, stop);
  EXPECT_EQ(ask(), "tls");
}

TEST_F(ClientTest, EndsACallAtOnceWhenItIsToldTo) {
  FakeEngine engine([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  connect_to(engine.endpoint());
  std::optional<std::string> end;
  start([&]() -> awaitable<void> {
    const Listener deaf{.on_head = [](const auto&) {}, .on_body = [](std::string_view) {}};
    const auto sent = co_await client->send(
        {.method = "POST", .path = "/", .body = "{}", .headers = "", .timeout = 60s}, deaf);
    end = sent ? "ok" : sent.error().message();
  });
  run_until([&] { return !engine.requests().empty(); });
  stop.request({Errc::ShuttingDown, "over"});
  run_until([&] { return end.has_value(); });
  EXPECT_EQ(end, "cut");
  EXPECT_EQ(ask(), "cut");
}

TEST_F(ClientTest, GetsAWholePage) {
  FakeEngine engine(test::by_path({{"/page", test::response(200, "text")}}));
  connect_to(engine.endpoint());
  Result<std::string> page;
  Result<std::string> none;
  run([&]() -> awaitable<void> {
    page = co_await client->get("/page", 5s);
    none = co_await client->get("/other", 5s);
  });
  EXPECT_EQ(page.value_or(""), "text");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message(), "status 404");
}

TEST(Server, HasTheKeyAndTheHeadersThatGoWithEveryRequest) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("key", "# the key\n\n  \nsecret \n");
  const auto server = find_server("http://127.0.0.1:9", path, "", {"X-Tenant-Id: a"});
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_THAT(server->headers, HasSubstr("Authorization: Bearer secret\r\n"));
  EXPECT_THAT(server->headers, HasSubstr("X-Tenant-Id: a\r\n"));
  EXPECT_FALSE(server->tls);
}

TEST(Server, SaysWhatCannotBeUsed) {
  EXPECT_THAT(find_server("http://127.0.0.1:9", "/nowhere/key", "", {}).error().message(),
              HasSubstr("--api-key-file"));
  EXPECT_THAT(find_server("https://127.0.0.1:9", "", "/nowhere/ca.pem", {}).error().message(),
              HasSubstr("--ca-file"));
  EXPECT_TRUE(find_server("https://127.0.0.1:9", "", "", {})->tls);
}

}  // namespace
}  // namespace baton::loadgen
