// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/exchange.h"

#include "support/certificate.h"
#include "support/temporary_directory.h"
#include "support/tls_server.h"
#include "unit/etcd/etcd_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::etcd {
namespace {

using test::response;
using testing::AllOf;
using testing::HasSubstr;

struct ExchangeTest : EtcdFixture {
  http_client::UpstreamPool pool{io, deadlines, pool_options()};

  Reply<std::string> post(const Options& made, Cancellation& over,
                          milliseconds time = milliseconds(5000)) {
    Reply<std::string> reply;
    run([&]() -> awaitable<void> {
      Exchange exchange(pool, made, made.endpoints.front(), over);
      exchange.set_deadline(time);
      const auto sent = co_await exchange.send("/v3/kv/range", "{}", "");
      reply = sent ? co_await exchange.read_all(1000) : fail(sent.error());
    });
    return reply;
  }
  Reply<std::string> post(const Options& made, milliseconds time = milliseconds(5000)) {
    Cancellation never;
    return post(made, never, time);
  }
};

TEST_F(ExchangeTest, ReadsAnAnswerInAnyFraming) {
  for (const std::string& answer :
       {response(200, "body"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n"
                    "0\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\n\r\nbody")}) {
    FakeEngine etcd(answering([&answer](const SeenRequest&) { return answer; }));
    EXPECT_EQ(post(options({etcd.endpoint()})), "body") << answer;
  }
}

TEST_F(ExchangeTest, ResolvesNames) {
  FakeEngine etcd(answering([](const SeenRequest&) { return response(200, "body"); }));
  EXPECT_EQ(post(options({{"localhost", etcd.endpoint().port}})), "body");
}

TEST_F(ExchangeTest, SaysThatANameDoesNotResolve) {
  const auto reply = post(options({{"no such name", 1}}));
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Unreachable);
  EXPECT_THAT(problem(reply), HasSubstr("cannot be resolved"));
}

TEST_F(ExchangeTest, SaysThatNobodyListens) {
  EXPECT_THAT(problem(post(options({test::closed_endpoint()}))), HasSubstr("cannot connect"));
}

TEST_F(ExchangeTest, RefusesMalformedHttp) {
  FakeEngine etcd(answering([](const SeenRequest&) { return "SSH-2.0-OpenSSH\r\n\r\n"; }));
  const auto reply = post(options({etcd.endpoint()}));
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Protocol);
}

TEST_F(ExchangeTest, EndsInTimeWhereAnAnswerStops) {
  FakeEngine etcd([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    peer.wait_for_drop();
  });
  const auto reply = post(options({etcd.endpoint()}), milliseconds(100));
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Unreachable);
  EXPECT_THAT(problem(reply), HasSubstr("took longer than 100 ms"));
}

TEST_F(ExchangeTest, DoesNotBeginWhatIsCancelledAlready) {
  FakeEngine etcd(answering([](const SeenRequest&) { return response(200, "body"); }));
  Cancellation over;
  over.request(Error(Errc::ShuttingDown, "enough"));
  const auto reply = post(options({etcd.endpoint()}), over);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Stopped);
  EXPECT_EQ(etcd.connections(), 0U);
}

// ---- TLS ----

struct TlsExchangeTest : ExchangeTest {
  TlsExchangeTest() { server.request_end = "\r\n\r\n{}"; }
  // What one connection to the server brings.
  Reply<std::string> post_to(const std::string& host, const http_client::TlsOptions& tls) {
    start([this] { return server.serve(); });
    Options made;
    made.endpoints = {{server.endpoint(host), true}};
    made.tls = tls;
    return post(made);
  }

  test::TemporaryDirectory directory;
  test::TlsServer server{io};
};

TEST_F(TlsExchangeTest, TrustsTheAuthorityItWasGiven) {
  const std::string ca = directory.write("ca.pem", server.own.certificate);
  for (const std::string host : {"127.0.0.1", "localhost"})
    EXPECT_EQ(post_to(host, {.ca_file = ca}), "body") << host;
}

TEST_F(TlsExchangeTest, TrustsNobodyElse) {
  const std::string ca = directory.write("ca.pem", test::Certificate("other").certificate);
  const auto reply = post_to("127.0.0.1", {.ca_file = ca});
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Unreachable);
  EXPECT_THAT(problem(reply),
              AllOf(HasSubstr("https://127.0.0.1:"), HasSubstr("its certificate is not accepted")));
}

TEST_F(TlsExchangeTest, ReadsItsFilesForEachConnection) {
  Options made;
  made.endpoints = {{server.endpoint(), true}};
  made.tls.ca_file = directory.path("ca.pem");
  const auto reply = post(made);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Refused);
  EXPECT_THAT(problem(reply), HasSubstr("ca.pem"));
  directory.write("ca.pem", server.own.certificate);
  EXPECT_EQ(post_to("127.0.0.1", made.tls), "body");
}

TEST_F(TlsExchangeTest, DoesNotSpeakPlainlyToAServerThatDoesNotKnowTls) {
  FakeEngine plain(answering([](const SeenRequest&) { return response(200, "body"); }));
  Options made;
  made.endpoints = {{plain.endpoint(), true}};
  made.timeout = milliseconds(300);
  EXPECT_FALSE(post(made, milliseconds(300)).has_value());
  EXPECT_TRUE(plain.requests().empty());
}

}  // namespace
}  // namespace baton::etcd
