// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/server_tls.h"

#include "net/await.h"
#include "support/certificate.h"
#include "support/io_fixture.h"
#include "support/temporary_directory.h"

#include <boost/asio/ssl/stream.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace baton::app {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using test::awaitable;
using test::Certificate;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct ServerTlsTest : test::IoFixture {
  using Stream = asio::ssl::stream<tcp::socket>;

  void write(const Certificate& one) const {
    directory.write("certificate.pem", one.certificate);
    directory.write("key.pem", one.key);
  }
  Result<std::unique_ptr<ServerTls>> load() { return ServerTls::load(io, files, log); }
  std::unique_ptr<ServerTls> loaded() {
    auto tls = load();
    EXPECT_TRUE(tls) << tls.error().message();
    return tls ? *std::move(tls) : nullptr;
  }
  std::string refusal() {
    const auto tls = load();
    return tls ? "loaded" : tls.error().message();
  }

  // The name in the certificate that a new connection is shown; empty where there is none.
  // `settings`: of the client.
  std::string shown_by(ServerTls& tls, const std::function<void(SSL_CTX*)>& settings = {}) {
    asio::ssl::context trust(asio::ssl::context::tls_client);
    if (settings) settings(trust.native_handle());
    auto [near, far] = socket_pair();
    Stream client(std::move(near), trust);
    Stream server(std::move(far), tls.context());
    bool served = false;
    bool connected = false;
    bool asked = false;
    start([&]() -> awaitable<void> {
      const auto [error] =
          co_await server.async_handshake(asio::ssl::stream_base::server, net::kAwait);
      served = !error;
      asked = true;
      if (error) server.lowest_layer().close();
    });
    run([&]() -> awaitable<void> {
      const auto [error] =
          co_await client.async_handshake(asio::ssl::stream_base::client, net::kAwait);
      connected = !error;
      if (error) client.lowest_layer().close();
    });
    run_until([&] { return asked; });
    if (!served || !connected) return {};
    return name_of(SSL_get0_peer_certificate(client.native_handle()));
  }

  static std::string name_of(X509* certificate) {
    std::array<char, 64> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                              static_cast<int>(name.size()));
    return name.data();
  }

  test::TemporaryDirectory directory;
  config::Tls files{directory.path("certificate.pem"), directory.path("key.pem")};
  std::string logged;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, logged};
  const Certificate first{"first"};
  const Certificate second{"second"};
};

TEST_F(ServerTlsTest, ShowsItsCertificate) {
  write(first);
  const auto tls = loaded();
  EXPECT_EQ(shown_by(*tls), "first");
  EXPECT_EQ(shown_by(*tls), "first");
}

TEST_F(ServerTlsTest, ShowsTheNewOneOnceItWasReloaded) {
  write(first);
  const auto tls = loaded();
  write(second);
  EXPECT_EQ(shown_by(*tls), "first");
  tls->reload();
  EXPECT_EQ(shown_by(*tls), "second");
  EXPECT_THAT(logged, HasSubstr("\"event\":\"certificate_replaced\""));
}

TEST_F(ServerTlsTest, TheSameCertificateIsNoReplacement) {
  write(first);
  const auto tls = loaded();
  tls->reload();
  EXPECT_EQ(logged, "");
  EXPECT_EQ(shown_by(*tls), "first");
}

TEST_F(ServerTlsTest, FollowsItsFiles) {
  write(first);
  const auto tls = loaded();
  tls->follow();
  // Another certificate by itself does not fit the key that is there; both together do.
  write(second);
  run_until([&] { return logged.contains("certificate_replaced"); });
  EXPECT_EQ(shown_by(*tls), "second");
  tls->stop();
}

TEST_F(ServerTlsTest, WhatWasReplacedBeforeItFollowedIsNotMissed) {
  write(first);
  const auto tls = loaded();
  write(second);
  tls->follow();
  EXPECT_EQ(shown_by(*tls), "second");
  tls->stop();
}

TEST_F(ServerTlsTest, AnUnusableReplacementReplacesNothing) {
  write(first);
  const auto tls = loaded();
  const std::string path = directory.path("certificate.pem");
  const auto expect_kept = [&](const std::string& reason) {
    logged.clear();
    tls->reload();
    EXPECT_THAT(logged, HasSubstr("\"event\":\"certificate_not_replaced\""));
    EXPECT_THAT(logged, HasSubstr(reason));
    EXPECT_EQ(shown_by(*tls), "first");
  };
  directory.write("certificate.pem", second.certificate);
  expect_kept("is not the PEM key of that certificate");
  directory.write("certificate.pem", "");
  expect_kept("cannot read a PEM certificate chain from");
  directory.write("certificate.pem", second.certificate.substr(0, 200));
  expect_kept("cannot read a PEM certificate chain from");
  directory.remove("certificate.pem");
  expect_kept("there is no such file");
  directory.write("certificate.pem", first.certificate);
  directory.write("key.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  expect_kept("is not the PEM key of that certificate");
  // And a good one is taken after all.
  write(second);
  tls->reload();
  EXPECT_EQ(shown_by(*tls), "second");
}

TEST_F(ServerTlsTest, SaysWhichFileIsWrongAndWhy) {
  EXPECT_EQ(refusal(),
            "tls.certificate: cannot read " + files.certificate + ": there is no such file");
  directory.write("certificate.pem", "nothing");
  EXPECT_THAT(refusal(), StartsWith("tls.certificate: cannot read a PEM certificate chain from " +
                                    files.certificate + ": "));
  directory.write("certificate.pem", first.certificate);
  EXPECT_EQ(refusal(), "tls.key: cannot read " + files.key + ": there is no such file");
  directory.write("key.pem", second.key);
  EXPECT_THAT(refusal(),
              StartsWith("tls.key: " + files.key + " is not the PEM key of that certificate: "));
  directory.write("key.pem", first.key);
  EXPECT_EQ(refusal(), "loaded");
}

TEST_F(ServerTlsTest, FilesAreRegularAndOfSomeSize) {
  directory.write("certificate.pem", std::string(1024 * 1024 + 1, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("larger than 1 MiB"));
  files.certificate = directory.path().string();
  EXPECT_THAT(refusal(), StartsWith("tls.certificate: cannot read " + files.certificate));
}

TEST_F(ServerTlsTest, CiphersAreThoseThatOpenSslKnows) {
  write(first);
  files.ciphers = "NO-SUCH-CIPHER";
  EXPECT_EQ(refusal(), "tls.ciphers: OpenSSL knows none of \"NO-SUCH-CIPHER\"");
}

TEST_F(ServerTlsTest, SpeaksNoTlsBeforeTheSecondVersion) {
  write(first);
  const auto tls = loaded();
  const auto only = [](int version) {
    return [version](SSL_CTX* context) {
      SSL_CTX_set_security_level(context, 0);
      SSL_CTX_set_min_proto_version(context, version);
      SSL_CTX_set_max_proto_version(context, version);
    };
  };
  EXPECT_EQ(shown_by(*tls, only(TLS1_VERSION)), "");
  EXPECT_EQ(shown_by(*tls, only(TLS1_1_VERSION)), "");
  EXPECT_EQ(shown_by(*tls, only(TLS1_2_VERSION)), "first");
  EXPECT_EQ(shown_by(*tls, only(TLS1_3_VERSION)), "first");
}

TEST_F(ServerTlsTest, AClientWithOtherCiphersIsRefused) {
  write(first);
  const auto tls = loaded();
  const auto cipher = [](const char* name) {
    return [name](SSL_CTX* context) {
      SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
      SSL_CTX_set_cipher_list(context, name);
    };
  };
  EXPECT_EQ(shown_by(*tls, cipher("ECDHE-ECDSA-AES128-GCM-SHA256")), "first");
  EXPECT_EQ(shown_by(*tls, cipher("ECDHE-ECDSA-AES128-SHA")), "");  // no authenticated encryption
}

TEST_F(ServerTlsTest, AnOpenConnectionKeepsItsCertificate) {
  write(first);
  const auto tls = loaded();
  asio::ssl::context trust(asio::ssl::context::tls_client);
  auto [near, far] = socket_pair();
  Stream client(std::move(near), trust);
  Stream server(std::move(far), tls->context());
  start([&]() -> awaitable<void> {
    const auto [error] =
        co_await server.async_handshake(asio::ssl::stream_base::server, net::kAwait);
    EXPECT_FALSE(error);
  });
  run([&]() -> awaitable<void> {
    const auto [error] =
        co_await client.async_handshake(asio::ssl::stream_base::client, net::kAwait);
    EXPECT_FALSE(error);
  });
  write(second);
  tls->reload();
  EXPECT_EQ(shown_by(*tls), "second");
  EXPECT_EQ(name_of(SSL_get0_peer_certificate(client.native_handle())), "first");
  std::array<char, 4> heard{};
  start([&]() -> awaitable<void> {
    const auto [error, sent] =
        co_await server.async_write_some(asio::buffer("ping", 4), net::kAwait);
    EXPECT_FALSE(error);
    EXPECT_EQ(sent, 4U);
  });
  run([&]() -> awaitable<void> {
    const auto [error, read] = co_await client.async_read_some(asio::buffer(heard), net::kAwait);
    EXPECT_FALSE(error);
    EXPECT_EQ(std::string(heard.data(), read), "ping");
  });
}

}  // namespace
}  // namespace baton::app
