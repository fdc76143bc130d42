// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/tls.h"

#include "core/regular_file.h"

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <fmt/format.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace baton::http_client {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Context = asio::ssl::context;

constexpr std::size_t kMostOfCertificates = 4 * 1024 * 1024;  // a system's whole list is a tenth

// Reads the file here and not in OpenSSL, which would wait for a pipe.
Result<void> load(const std::string& file, const auto& use) {
  if (file.empty()) return {};
  const auto cannot = [&file](std::string_view why) -> Result<void> {
    return fail(Errc::InvalidRequest, fmt::format("cannot use {}: {}", file, why));
  };
  const auto text = read_regular_file(file, kMostOfCertificates);
  if (!text) return cannot(text.error().message());
  if (!*text) return cannot("there is no such file");
  if (!(*text)->contains("-----BEGIN ")) return cannot("there is no PEM in it");
  error_code error;
  use(asio::buffer(**text), error);
  if (error) return cannot(error.message());
  return {};
}

}  // namespace

Result<std::unique_ptr<TlsClient>> make_tls_client(const TlsOptions& options) {
  auto client = std::make_unique<TlsClient>(Context(Context::tls_client), options.server_name);
  Context& context = client->context;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer);
  using Pem = asio::const_buffer;
  error_code ignored;
  if (options.ca_file.empty()) context.set_default_verify_paths(ignored);
  auto loaded = load(options.ca_file, [&context](Pem pem, error_code& error) {
    context.add_certificate_authority(pem, error);
  });
  if (loaded) {
    loaded = load(options.certificate_file, [&context](Pem pem, error_code& error) {
      context.use_certificate_chain(pem, error);
    });
  }
  if (loaded) {
    loaded = load(options.key_file, [&context](Pem pem, error_code& error) {
      context.use_private_key(pem, Context::pem, error);
    });
  }
  if (!loaded) return fail(std::move(loaded.error()));
  return client;
}

}  // namespace baton::http_client
