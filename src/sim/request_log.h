// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "sim/connection.h"
#include "sim/request.h"

#include <nlohmann/json_fwd.hpp>

#include <deque>
#include <string>

namespace baton::sim {

// Role. The last request legs as they arrived, for tests that look at what a router sent.
// Confinement. One thread. Invariants. Never more than 64 entries.
class RequestLog {
 public:
  void add(const HttpRequest& request, Phase phase);
  nlohmann::json list() const;

 private:
  struct Entry {
    std::string path;
    Phase phase;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
  };
  std::deque<Entry> entries_;
};

}  // namespace baton::sim
