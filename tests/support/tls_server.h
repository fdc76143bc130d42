// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "net/await.h"
#include "support/certificate.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <openssl/ssl.h>

#include <string>
#include <utility>
#include <vector>

namespace baton::test {

// Role. A server with a certificate, for 127.0.0.1 and localhost unless told otherwise. It answers
//   every request with the same bytes.
// Confinement. The test's own loop.
struct TlsServer {
  using tcp = boost::asio::ip::tcp;

  explicit TlsServer(boost::asio::io_context& io,
                     const std::string& names = "DNS:localhost,IP:127.0.0.1")
      : own("server", names), acceptor(io, {boost::asio::ip::address_v4::loopback(), 0}) {
    tls.use_certificate(boost::asio::buffer(own.certificate), boost::asio::ssl::context::pem);
    tls.use_private_key(boost::asio::buffer(own.key), boost::asio::ssl::context::pem);
  }

  model::Endpoint endpoint(const std::string& host = "127.0.0.1") const {
    return {host, acceptor.local_endpoint().port()};
  }

  // Takes one connection, to its end.
  boost::asio::awaitable<void> serve() {
    auto [failed, socket] = co_await acceptor.async_accept(net::kAwait);
    if (failed) co_return;
    boost::asio::ssl::stream<tcp::socket> stream(std::move(socket), tls);
    const auto [refused] =
        co_await stream.async_handshake(boost::asio::ssl::stream_base::server, net::kAwait);
    if (refused) co_return;
    SSL* const ssl = stream.native_handle();
    has_client_certificate = SSL_get0_peer_certificate(ssl) != nullptr;
    const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    asked_for = name == nullptr ? "" : name;
    for (std::string unread;;) {
      const auto [broken, size] = co_await boost::asio::async_read_until(
          stream, boost::asio::dynamic_buffer(unread), request_end, net::kAwait);
      if (broken) co_return;
      requests.push_back(unread.substr(0, size));
      unread.erase(0, size);
      co_await boost::asio::async_write(stream, boost::asio::buffer(answer), net::kAwait);
    }
  }

  Certificate own;
  boost::asio::ssl::context tls{boost::asio::ssl::context::tls_server};
  tcp::acceptor acceptor;
  std::string request_end = "\r\n\r\n";
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
  std::vector<std::string> requests;
  std::string asked_for;  // the name in the handshake
  bool has_client_certificate = false;
};

}  // namespace baton::test
