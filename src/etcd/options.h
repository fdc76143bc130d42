// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

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
  // PEM files, read for each connection, so that renewed ones are taken up.
  std::string ca_file;  // empty: the system's authorities
  std::string certificate_file;
  std::string key_file;
  std::chrono::milliseconds timeout{5000};
  // While watching, the server is asked something cheap this often.
  std::chrono::milliseconds probe_every{3000};
  // Limit of one answer, of one message of a watch, and of a whole listing.
  std::size_t message_bytes = 64 * 1024 * 1024;
};

}  // namespace baton::etcd
