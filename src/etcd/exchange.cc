// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/exchange.h"

#include "core/regular_file.h"
#include "net/await.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace baton::etcd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kHeaderBytes = 64 * 1024;
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kMostOfCertificates = 4 * 1024 * 1024;  // a system's whole list is a tenth

// A watch may be silent for long; these find out that its connection leads nowhere any more, which
// a probe over another connection cannot see.
void keep_alive(asio::ip::tcp::socket& socket) {
  const auto set = [&socket](int level, int option, int value) {
    ::setsockopt(socket.native_handle(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);  // seconds
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

bool is_address(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

}  // namespace

std::string Server::url() const {
  return fmt::format("{}://{}", tls ? "https" : "http", endpoint.to_string());
}

Exchange::Exchange(asio::io_context& io, net::Deadlines& deadlines, const Options& options,
                   const Server& server, Cancellation& scope)
    : options_(options),
      server_(server),
      socket_(io),
      resolver_(io),
      lookup_(io),
      parser_(kHeaderBytes),
      deadline_(deadlines,
                [this] {
                  give_up(failure(Reason::Unreachable,
                                  fmt::format("took longer than {} ms", time_.count())));
                }),
      listener_(scope,
                [this, &scope] { give_up(failure(Reason::Stopped, scope.reason().message())); }) {}

Failure Exchange::failure(Reason reason, std::string_view what) const {
  return {.reason = reason, .message = fmt::format("etcd {}: {}", server_.url(), what)};
}

Failure Exchange::protocol_failure() const {
  return failure(Reason::Protocol, parser_.error().message());
}

void Exchange::set_deadline(std::chrono::milliseconds time) {
  time_ = time;
  deadline_.arm(time);
}

void Exchange::give_up(Failure why) {
  if (given_up_) return;
  given_up_ = std::move(why);
  error_code ignored;
  socket_.close(ignored);
  lookup_.abandon();
}

std::optional<Failure> Exchange::ended(const error_code& error, std::string_view when) const {
  if (given_up_) return given_up_;
  if (error) return failure(Reason::Unreachable, fmt::format("{}: {}", when, error.message()));
  return std::nullopt;
}

// ---- connecting ----

awaitable<Reply<std::vector<asio::ip::tcp::endpoint>>> Exchange::resolve() {
  const http_client::Resolver::Found found =
      co_await resolver_.resolve(server_.endpoint.host, lookup_);
  if (auto end = ended(found.error, "its name cannot be resolved")) co_return fail(std::move(*end));
  std::vector<tcp::endpoint> endpoints;
  for (const asio::ip::address& address : found.addresses)
    endpoints.emplace_back(address, server_.endpoint.port);
  co_return endpoints;
}

awaitable<Reply<void>> Exchange::connect() {
  const auto endpoints = co_await resolve();
  if (!endpoints) co_return fail(endpoints.error());
  error_code error = asio::error::host_not_found;
  for (const tcp::endpoint& endpoint : *endpoints) {
    if (given_up_) break;
    error_code ignored;
    socket_.close(ignored);
    const auto [failed] = co_await socket_.async_connect(endpoint, net::kAwait);
    error = failed;
    if (!error) break;
  }
  if (auto end = ended(error, "cannot connect")) co_return fail(std::move(*end));
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  keep_alive(socket_);
  if (server_.tls) co_return co_await secure();
  co_return Reply<void>();
}

Reply<void> Exchange::load_certificates(asio::ssl::context& context) const {
  // Read here and not by OpenSSL, which would wait for a pipe.
  const auto load = [this](const std::string& file, const auto& how) -> Reply<void> {
    if (file.empty()) return {};
    const auto cannot = [&](std::string_view why) -> Reply<void> {
      return fail(failure(Reason::Refused, fmt::format("cannot use {}: {}", file, why)));
    };
    const auto text = read_regular_file(file, kMostOfCertificates);
    if (!text) return cannot(text.error().message());
    if (!*text) return cannot("there is no such file");
    if (!(*text)->contains("-----BEGIN ")) return cannot("there is no PEM in it");
    error_code error;
    how(asio::buffer(**text), error);
    if (error) return cannot(error.message());
    return {};
  };
  error_code ignored;
  if (options_.ca_file.empty()) context.set_default_verify_paths(ignored);
  using Pem = asio::const_buffer;
  if (auto loaded =
          load(options_.ca_file,
               [&](Pem pem, error_code& error) { context.add_certificate_authority(pem, error); });
      !loaded)
    return loaded;
  if (auto loaded =
          load(options_.certificate_file,
               [&](Pem pem, error_code& error) { context.use_certificate_chain(pem, error); });
      !loaded)
    return loaded;
  return load(options_.key_file, [&](Pem pem, error_code& error) {
    context.use_private_key(pem, asio::ssl::context::pem, error);
  });
}

awaitable<Reply<void>> Exchange::secure() {
  tls_context_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls_context_->native_handle(), TLS1_2_VERSION);
  if (auto loaded = load_certificates(*tls_context_); !loaded) co_return loaded;
  tls_ = std::make_unique<TlsStream>(socket_, *tls_context_);
  tls_->set_verify_mode(asio::ssl::verify_peer);
  // Checked by OpenSSL itself and not by Asio's callback: a wrong name is then reported as such.
  SSL* const ssl = tls_->native_handle();
  const std::string& host = server_.endpoint.host;
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
  } else {
    SSL_set1_host(ssl, host.c_str());
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
  const auto [error] = co_await tls_->async_handshake(TlsStream::client, net::kAwait);
  if (error && !given_up_) {
    const long verdict = SSL_get_verify_result(ssl);
    if (verdict != X509_V_OK) {
      co_return fail(
          failure(Reason::Unreachable, fmt::format("its certificate is not accepted: {}",
                                                   X509_verify_cert_error_string(verdict))));
    }
  }
  if (auto end = ended(error, "TLS handshake failed")) co_return fail(std::move(*end));
  co_return Reply<void>();
}

// ---- asking ----

awaitable<Reply<void>> Exchange::write(std::string_view request) {
  const auto bytes = asio::buffer(request.data(), request.size());
  error_code error;
  if (tls_) {
    std::tie(error, std::ignore) = co_await asio::async_write(*tls_, bytes, net::kAwait);
  } else {
    std::tie(error, std::ignore) = co_await asio::async_write(socket_, bytes, net::kAwait);
  }
  if (auto end = ended(error, "cannot send")) co_return fail(std::move(*end));
  co_return Reply<void>();
}

awaitable<Reply<void>> Exchange::send(std::string_view path, std::string_view body,
                                      std::string_view token) {
  if (given_up_) co_return fail(*given_up_);
  if (auto connected = co_await connect(); !connected) co_return connected;
  const std::string credentials = token.empty() ? "" : fmt::format("Authorization: {}\r\n", token);
  const std::string request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      path, server_.endpoint.to_string(), body.size(), credentials, body);
  if (auto written = co_await write(request); !written) co_return written;
  buffer_.resize(kReadBytes);
  while (true) {
    const auto received = co_await receive();
    if (!received) co_return fail(received.error());
    if (received->empty())
      co_return fail(failure(Reason::Unreachable, "closed the connection before it answered"));
    unread_ = *received;
    const auto progress = parser_.feed(unread_);
    unread_ = unread_.subspan(progress.consumed);
    if (progress.status == wire::ParseStatus::Failed) co_return fail(protocol_failure());
    if (progress.status == wire::ParseStatus::HeadDone) break;
  }
  status_ = parser_.head().status;
  co_return Reply<void>();
}

awaitable<Reply<std::span<char>>> Exchange::receive() {
  const auto room = asio::buffer(buffer_);
  error_code error;
  std::size_t size = 0;
  if (tls_) {
    std::tie(error, size) = co_await tls_->async_read_some(room, net::kAwait);
  } else {
    std::tie(error, size) = co_await socket_.async_read_some(room, net::kAwait);
  }
  const bool closed = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
  if (auto end = ended(closed ? error_code() : error, "the connection broke"))
    co_return fail(std::move(*end));
  co_return std::span(buffer_.data(), size);
}

awaitable<Reply<std::string_view>> Exchange::read() {
  while (!done_) {
    // Checked also between two pieces that came together: after give_up() the caller wants no more.
    if (given_up_) co_return fail(*given_up_);
    const auto progress = parser_.feed(unread_);
    unread_ = unread_.subspan(progress.consumed);
    done_ = progress.status == wire::ParseStatus::Done;
    if (!progress.body.empty()) co_return progress.body;
    if (progress.status == wire::ParseStatus::Failed) co_return fail(protocol_failure());
    if (done_) break;
    const auto received = co_await receive();
    if (!received) co_return fail(received.error());
    unread_ = *received;
    if (!unread_.empty()) continue;
    if (parser_.finish() != wire::ParseStatus::Done) {
      co_return fail(failure(Reason::Unreachable, "closed the connection inside its answer"));
    }
    done_ = true;
  }
  co_return std::string_view();
}

awaitable<Reply<std::string>> Exchange::read_all(std::size_t limit) {
  std::string whole;
  while (true) {
    const auto piece = co_await read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return whole;
    if (piece->size() > limit - whole.size()) {
      co_return fail(
          failure(Reason::Protocol, fmt::format("its answer is larger than {} bytes", limit)));
    }
    whole += *piece;
  }
}

}  // namespace baton::etcd
