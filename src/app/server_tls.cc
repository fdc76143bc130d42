// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/server_tls.h"

#include "core/regular_file.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace baton::app {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMostOfPem = 1024 * 1024;

Result<std::string> read_pem(std::string_view key, const std::string& path) {
  auto text = read_regular_file(path, kMostOfPem);
  if (text && *text) return **std::move(text);
  return fail(Errc::Internal, fmt::format("{}: cannot read {}: {}", key, path,
                                          text ? "there is no such file" : text.error().message()));
}

}  // namespace

ServerTls::ServerTls(asio::io_context& io, const config::Tls& files, telemetry::Logger& log)
    : files_(files),
      log_(log),
      certificate_watch_(io, files.certificate, [this] { reload(); }),
      key_watch_(io, files.key, [this] { reload(); }) {}

Result<std::unique_ptr<ServerTls>> ServerTls::load(asio::io_context& io, const config::Tls& files,
                                                   telemetry::Logger& log) {
  std::unique_ptr<ServerTls> tls(new ServerTls(io, files, log));
  boost::system::error_code error;
  tls->context_.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  SSL_CTX* const context = tls->context_.native_handle();
  if (SSL_CTX_set_cipher_list(context, files.ciphers.c_str()) != 1) {
    return fail(Errc::Internal,
                fmt::format("tls.ciphers: OpenSSL knows none of \"{}\"", files.ciphers));
  }
  auto certificate = read(files);
  if (!certificate) return fail(std::move(certificate.error()));
  tls->certificate_.set(std::move(*certificate));
  SSL_CTX_set_cert_cb(context, &ServerTls::show_certificate, tls.get());
  return tls;
}

Result<ServerTls::Certificate> ServerTls::read(const config::Tls& files) {
  auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  boost::system::error_code error;
  auto chain = read_pem("tls.certificate", files.certificate);
  if (!chain) return fail(std::move(chain.error()));
  made->use_certificate_chain(asio::buffer(*chain), error);
  if (error) {
    return fail(Errc::Internal,
                fmt::format("tls.certificate: cannot read a PEM certificate chain from {}: {}",
                            files.certificate, error.message()));
  }
  auto key = read_pem("tls.key", files.key);
  if (!key) return fail(std::move(key.error()));
  made->use_private_key(asio::buffer(*key), asio::ssl::context::pem, error);
  if (error) {
    return fail(Errc::Internal,
                fmt::format("tls.key: {} is not the PEM key of that certificate: {}", files.key,
                            error.message()));
  }
  return made;
}

// OpenSSL asks in each handshake; a context in use must not be changed itself.
int ServerTls::show_certificate(SSL* connection, void* self) {
  const auto certificate = static_cast<const ServerTls*>(self)->certificate_.get();
  SSL_CTX* const source = (*certificate)->native_handle();
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(source, &chain);
  const bool shown = SSL_use_certificate(connection, SSL_CTX_get0_certificate(source)) == 1 &&
                     SSL_use_PrivateKey(connection, SSL_CTX_get0_privatekey(source)) == 1 &&
                     SSL_set1_chain(connection, chain) == 1;
  return shown ? 1 : 0;
}

void ServerTls::follow() {
  // Without notice of changes the watch compares the files every second.
  for (net::FileWatch* const watch : {&certificate_watch_, &key_watch_}) {
    if (const auto started = watch->start(); !started)
      log_.warning("certificate_polled", {{"reason", started.error().message()}});
  }
  reload();  // it may have changed since it was loaded
}

void ServerTls::reload() {
  auto certificate = read(files_);
  if (!certificate) {
    log_.error("certificate_not_replaced", {{"reason", certificate.error().message()}});
    return;
  }
  const auto before = certificate_.get();
  const bool same = X509_cmp(SSL_CTX_get0_certificate((*before)->native_handle()),
                             SSL_CTX_get0_certificate((*certificate)->native_handle())) == 0;
  certificate_.set(std::move(*certificate));  // also where only the chain behind it has changed
  if (!same) log_.info("certificate_replaced", {{"file", files_.certificate}});
}

void ServerTls::stop() {
  certificate_watch_.stop();
  key_watch_.stop();
}

}  // namespace baton::app
