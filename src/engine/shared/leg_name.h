// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <string>

namespace baton::engine {

using boost::asio::awaitable;

// Name of one leg at an SGLang server: its `rid`. SGLang aborts every request whose rid begins with
// the aborted one, also when a connection closes, and refuses a rid it already has. So names are
// random and of one length: no name is a prefix of another.
struct LegName {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // False where the leg has none.
  explicit operator bool() const { return high != 0 || low != 0; }
  std::string text() const;
};

// Makes an SGLang server stop the leg. A closed connection does so as well, but the server checks
// for that only every few seconds. A lost abort is no failure. `authorization` may be empty.
awaitable<void> abort_request(http_client::UpstreamPool& pool, http_client::Target target,
                              LegName name, std::string authorization);

}  // namespace baton::engine
