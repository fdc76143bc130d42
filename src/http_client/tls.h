// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace baton::http_client {

// How a client speaks TLS. A server must show a certificate that an authority has signed for its
// name: no option skips that.
struct TlsOptions {
  std::string ca_file = {};           // PEM; empty: the system's authorities
  std::string certificate_file = {};  // PEM; with key_file, for servers that ask for a certificate
  std::string key_file = {};
  std::string server_name = {};  // to ask for and to check; empty: the host connected to
};

// The options, read. Connections that were made with it may outlive it.
struct TlsClient {
  boost::asio::ssl::context context;
  std::string server_name;
};

// Reads the files. An error names the file that cannot be used, and says why.
Result<std::unique_ptr<TlsClient>> make_tls_client(const TlsOptions& options);

}  // namespace baton::http_client
