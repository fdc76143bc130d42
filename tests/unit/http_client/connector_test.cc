// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/connector.h"

#include "support/fake_engine.h"
#include "support/io_fixture.h"
#include "support/temporary_directory.h"
#include "support/tls_server.h"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace baton::http_client {
namespace {

using std::chrono::milliseconds;
using test::FakeEngine;
using test::FakePeer;
using testing::HasSubstr;

struct ConnectorTest : test::IoFixture {
  std::unique_ptr<Upstream> connect(const model::Endpoint& endpoint, TlsClient* tls = nullptr,
                                    Cancellation* cancellation = nullptr) {
    Connector connector(io, deadlines, options, [] { return false; });
    std::unique_ptr<Upstream> made;
    problem.reset();
    run([&]() -> awaitable<void> {
      auto connected = co_await connector.connect({{1}, endpoint, tls}, cancellation, &failure);
      if (connected) {
        made = std::move(*connected);
      } else {
        problem = connected.error();
      }
    });
    return made;
  }
  std::string words() const { return problem ? problem->message() : "none"; }

  PoolOptions options{
      .connect_timeout = std::chrono::seconds(5), .idle_per_worker = 0, .header_bytes = 1024};
  ExchangeFailure failure;
  std::optional<Error> problem;
  FakeEngine quiet{[](FakePeer& peer) { peer.wait_for_drop(); }};
};

TEST_F(ConnectorTest, TellsWhichStepFailed) {
  EXPECT_EQ(connect({"no-such-host.invalid", 80}), nullptr);
  EXPECT_EQ(failure.phase, Phase::Resolve);
  EXPECT_EQ(failure.status, net::IoStatus::Failed);

  EXPECT_EQ(connect(test::closed_endpoint()), nullptr);
  EXPECT_EQ(failure.phase, Phase::Connect);
  EXPECT_EQ(failure.status, net::IoStatus::Failed);
  EXPECT_EQ(failure.why, "Connection refused");
  EXPECT_EQ(problem->cause(), std::errc::connection_refused);
}

TEST_F(ConnectorTest, TriesEachAddress) {
  options.lookup = [](const std::string&, const Resolver::Done& done) {
    done({.error = {},
          .addresses = {boost::asio::ip::make_address("127.0.0.2"),
                        boost::asio::ip::make_address("127.0.0.1")}});
  };
  // The engine listens at 127.0.0.1 only.
  EXPECT_NE(connect({"worker", quiet.endpoint().port}), nullptr) << words();
}

TEST_F(ConnectorTest, CannotFindAHostWithoutAddresses) {
  options.lookup = [](const std::string&, const Resolver::Done& done) { done({}); };
  EXPECT_EQ(connect({"worker", 1}), nullptr);
  EXPECT_EQ(failure.phase, Phase::Resolve);
  EXPECT_THAT(failure.why, HasSubstr("not found"));
}

TEST_F(ConnectorTest, TellsATimeoutFromACancellation) {
  options.connect_timeout = milliseconds(20);
  options.lookup = [](const std::string&, const Resolver::Done&) {};
  EXPECT_EQ(connect({"worker", 1}), nullptr);
  EXPECT_EQ(failure.phase, Phase::Resolve);
  EXPECT_EQ(failure.status, net::IoStatus::Timeout);
  EXPECT_THAT(words(), HasSubstr("no connection within 20 ms"));

  Cancellation over;
  options.connect_timeout = std::chrono::hours(1);
  options.lookup = [this, &over](const std::string&, const Resolver::Done&) {
    boost::asio::post(io, [&over] { over.request(Error(Errc::ClientGone, "gone")); });
  };
  EXPECT_EQ(connect({"worker", 1}, nullptr, &over), nullptr);
  EXPECT_EQ(failure.status, net::IoStatus::Aborted);
  EXPECT_EQ(problem->code(), Errc::ClientGone);
}

TEST_F(ConnectorTest, RefusesAfterItWasShutDown) {
  Connector connector(io, deadlines, options, [] { return false; });
  connector.shut_down();
  const model::Endpoint endpoint = quiet.endpoint();
  run([&]() -> awaitable<void> {
    const auto connected = co_await connector.connect({{1}, endpoint}, nullptr);
    EXPECT_FALSE(connected);
    if (!connected) EXPECT_EQ(connected.error().code(), Errc::ShuttingDown);
  });
}

// ---- TLS ----

struct TlsConnectorTest : ConnectorTest {
  // Connects to the server, which a client without other options trusts.
  std::unique_ptr<Upstream> connect_to(test::TlsServer& at, const std::string& host,
                                       TlsOptions tls = {}) {
    if (tls.ca_file.empty()) tls.ca_file = directory.write("ca.pem", at.own.certificate);
    const auto client = make_tls_client(tls);
    EXPECT_TRUE(client) << client.error().message();
    start([&at] { return at.serve(); });
    return connect(at.endpoint(host), client->get());
  }

  test::TemporaryDirectory directory;
  test::TlsServer server{io};
};

TEST_F(TlsConnectorTest, TrustsACertificateForItsHost) {
  for (const std::string host : {"127.0.0.1", "localhost"})
    EXPECT_NE(connect_to(server, host), nullptr) << host << ": " << words();
  run_until([this] { return server.asked_for == "localhost"; });
}

TEST_F(TlsConnectorTest, RefusesACertificateForAnotherHost) {
  test::TlsServer other(io, "DNS:elsewhere,IP:192.0.2.1");
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    EXPECT_EQ(connect_to(other, host), nullptr);
    EXPECT_EQ(failure.phase, Phase::Tls);
    EXPECT_THAT(failure.why, HasSubstr("its certificate is not accepted")) << host;
    EXPECT_THAT(words(), HasSubstr("mismatch")) << host;
    EXPECT_EQ(problem->code(), Errc::EngineUnreachable);
  }
}

TEST_F(TlsConnectorTest, ChecksTheNameThatTheOptionsGive) {
  test::TlsServer other(io, "DNS:elsewhere");
  EXPECT_NE(connect_to(other, "127.0.0.1", {.server_name = "elsewhere"}), nullptr) << words();
  run_until([&other] { return other.asked_for == "elsewhere"; });
  EXPECT_EQ(connect_to(server, "127.0.0.1", {.server_name = "elsewhere"}), nullptr);
  EXPECT_THAT(words(), HasSubstr("mismatch"));
}

TEST_F(TlsConnectorTest, RefusesACertificateOfAnUnknownAuthority) {
  const std::string ca = directory.write("other.pem", test::Certificate("other").certificate);
  EXPECT_EQ(connect_to(server, "127.0.0.1", {.ca_file = ca}), nullptr);
  EXPECT_THAT(failure.why, HasSubstr("its certificate is not accepted"));
}

TEST_F(TlsConnectorTest, ShowsItsOwnCertificate) {
  const test::Certificate client("client");
  server.tls.set_verify_mode(boost::asio::ssl::verify_peer |
                             boost::asio::ssl::verify_fail_if_no_peer_cert);
  server.tls.add_certificate_authority(boost::asio::buffer(client.certificate));
  const auto connected =
      connect_to(server, "127.0.0.1",
                 {.certificate_file = directory.write("client.pem", client.certificate),
                  .key_file = directory.write("client.key", client.key)});
  EXPECT_NE(connected, nullptr) << words();
  run_until([this] { return server.has_client_certificate; });
}

TEST_F(TlsConnectorTest, DoesNotWaitForAServerThatDoesNotShakeHands) {
  options.connect_timeout = milliseconds(100);
  const auto client = make_tls_client({});
  ASSERT_TRUE(client);
  EXPECT_EQ(connect(quiet.endpoint(), client->get()), nullptr);
  EXPECT_EQ(failure.phase, Phase::Tls);
  EXPECT_EQ(failure.status, net::IoStatus::Timeout);
  EXPECT_THAT(words(), HasSubstr("no connection within 100 ms"));
  EXPECT_TRUE(quiet.wait_for_drops(1));
}

TEST_F(TlsConnectorTest, SaysThatAServerSpeaksNoTls) {
  FakeEngine plain([](FakePeer& peer) { peer.write("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  const auto client = make_tls_client({});
  ASSERT_TRUE(client);
  EXPECT_EQ(connect(plain.endpoint(), client->get()), nullptr);
  EXPECT_EQ(failure.phase, Phase::Tls);
  EXPECT_THAT(failure.why, HasSubstr("TLS handshake failed"));
}

}  // namespace
}  // namespace baton::http_client
