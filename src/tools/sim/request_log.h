// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/connection.h"
#include "tools/sim/request.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace baton::sim {

// Role. The last request legs as they arrived, for tests that look at what a router sent.
// Confinement. One thread.
// Invariants. Never more than 64 entries.
class RequestLog {
 public:
  // Returns the entry's number, for what becomes known later.
  std::uint64_t add(const HttpRequest& request, Phase phase);
  void set_rank(std::uint64_t number, std::uint32_t rank);
  nlohmann::json list() const;

 private:
  struct Entry {
    std::string path;
    Phase phase;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    std::optional<std::uint32_t> rank;  // none until one was chosen
  };
  std::deque<Entry> entries_;
  std::uint64_t first_ = 0;  // number of the oldest entry
};

}  // namespace baton::sim
