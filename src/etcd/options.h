// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "http_client/tls.h"
#include "model/worker.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace baton::etcd {

struct Server {
  model::Endpoint endpoint;
  bool tls = false;
  // https://host:port, as people write it.
  std::string url() const;
};

struct Options {
  std::vector<Server> endpoints;
  std::string user;  // empty: no authentication
  std::string password;
  // For servers with TLS. The files are read for each connection, so renewed ones are taken up.
  http_client::TlsOptions tls;
  std::chrono::milliseconds timeout{5000};
  // While watching, the server is asked something cheap this often.
  std::chrono::milliseconds probe_every{3000};
  // Limit of one answer, of one message of a watch, and of a whole listing.
  std::size_t message_bytes = 64 * 1024 * 1024;
};

}  // namespace baton::etcd
