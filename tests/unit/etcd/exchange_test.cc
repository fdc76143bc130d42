// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/exchange.h"

#include "net/await.h"
#include "support/temporary_directory.h"
#include "unit/etcd/etcd_fixture.h"

#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <sys/stat.h>

namespace baton::etcd {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using test::response;
using testing::AllOf;
using testing::HasSubstr;

// What `write` puts into a file of OpenSSL, as text.
template <class Write>
std::string pem(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
  write(memory.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

// A certificate that is its own authority, for `names` as OpenSSL writes them.
struct Certificate {
  explicit Certificate(const std::string& names) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(EVP_EC_gen("P-256"),
                                                                   EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), pair.get());
    X509_NAME* const name = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("etcd"), -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    X509_EXTENSION* const extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
    X509_add_ext(made.get(), extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(made.get(), pair.get(), EVP_sha256());
    certificate = pem([&](BIO* out) { PEM_write_bio_X509(out, made.get()); });
    key = pem([&](BIO* out) {
      PEM_write_bio_PrivateKey(out, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  std::string certificate;
  std::string key;
};

struct ExchangeTest : EtcdFixture {
  Reply<std::string> post(const Options& made, Cancellation& over,
                          milliseconds time = milliseconds(5000)) {
    Reply<std::string> reply;
    run([&]() -> awaitable<void> {
      Exchange exchange(io, deadlines, made, made.endpoints.front(), over);
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

// A server with a certificate, for one connection.
struct TlsExchangeTest : ExchangeTest {
  void serve(const Certificate& own) {
    tls.use_certificate(asio::buffer(own.certificate), asio::ssl::context::pem);
    tls.use_private_key(asio::buffer(own.key), asio::ssl::context::pem);
    start([this]() -> awaitable<void> {
      auto [failed, socket] = co_await acceptor.async_accept(net::kAwait);
      if (failed) co_return;
      asio::ssl::stream<tcp::socket> stream(std::move(socket), tls);
      const auto [refused] =
          co_await stream.async_handshake(asio::ssl::stream_base::server, net::kAwait);
      if (refused) co_return;
      X509* const shown = SSL_get0_peer_certificate(stream.native_handle());
      has_client_certificate = shown != nullptr;
      std::string request;
      co_await asio::async_read_until(stream, asio::dynamic_buffer(request), "\r\n\r\n{}",
                                      net::kAwait);
      co_await asio::async_write(stream, asio::buffer(answer), net::kAwait);
    });
  }
  Options for_server(const std::string& host) const {
    Options made;
    made.endpoints = {{{host, acceptor.local_endpoint().port()}, true}};
    return made;
  }

  test::TemporaryDirectory directory;
  std::string answer = response(200, "body");
  bool has_client_certificate = false;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
};

TEST_F(TlsExchangeTest, TrustsTheAuthorityItWasGiven) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const Certificate own("DNS:localhost,IP:127.0.0.1");
    serve(own);
    Options made = for_server(host);
    made.ca_file = directory.write("ca.pem", own.certificate);
    EXPECT_EQ(post(made), "body") << host;
  }
}

TEST_F(TlsExchangeTest, TrustsNobodyElse) {
  const Certificate own("DNS:localhost,IP:127.0.0.1");
  serve(own);
  Options made = for_server("127.0.0.1");
  made.ca_file = directory.write("ca.pem", Certificate("DNS:other").certificate);
  EXPECT_THAT(problem(post(made)),
              AllOf(HasSubstr("https://127.0.0.1:"), HasSubstr("its certificate is not accepted")));
}

TEST_F(TlsExchangeTest, RefusesACertificateForAnotherHost) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const Certificate own("DNS:elsewhere,IP:192.0.2.1");
    serve(own);
    Options made = for_server(host);
    made.ca_file = directory.write("ca.pem", own.certificate);
    EXPECT_THAT(problem(post(made)), HasSubstr("mismatch")) << host;
  }
}

TEST_F(TlsExchangeTest, ShowsItsOwnCertificate) {
  const Certificate own("IP:127.0.0.1");
  const Certificate client("DNS:client");
  tls.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  tls.add_certificate_authority(asio::buffer(client.certificate));
  serve(own);
  Options made = for_server("127.0.0.1");
  made.ca_file = directory.write("ca.pem", own.certificate);
  made.certificate_file = directory.write("client.pem", client.certificate);
  made.key_file = directory.write("client.key", client.key);
  EXPECT_EQ(post(made), "body");
  EXPECT_TRUE(has_client_certificate);
}

TEST_F(TlsExchangeTest, NamesAFileItCannotUse) {
  const Certificate own("IP:127.0.0.1");
  serve(own);
  Options made = for_server("127.0.0.1");
  made.ca_file = directory.path("nowhere.pem");
  EXPECT_THAT(problem(post(made)), HasSubstr("nowhere.pem"));
}

TEST_F(TlsExchangeTest, DoesNotWaitForAPipeThatIsNamedAsAFile) {
  const Certificate own("IP:127.0.0.1");
  serve(own);
  Options made = for_server("127.0.0.1");
  made.ca_file = directory.path("pipe.pem");
  ASSERT_EQ(::mkfifo(made.ca_file.c_str(), 0600), 0);
  EXPECT_THAT(problem(post(made)), AllOf(HasSubstr("pipe.pem"), HasSubstr("it is a pipe")));
  serve(own);
  made = for_server("127.0.0.1");
  made.ca_file = directory.write("empty.pem", "nothing of use\n");
  EXPECT_THAT(problem(post(made)), AllOf(HasSubstr("empty.pem"), HasSubstr("no PEM")));
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
