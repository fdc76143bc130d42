// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/leg_name.h"

#include "http_client/fetch.h"

#include <fmt/format.h>

#include <chrono>

namespace baton::engine {
namespace {

// The server only notes it down.
constexpr std::chrono::milliseconds kAbortTimeout{2000};

}  // namespace

std::string LegName::text() const { return fmt::format("{:016x}{:016x}", high, low); }

awaitable<void> abort_request(http_client::UpstreamPool& pool, http_client::Target target,
                              LegName name, std::string authorization) {
  std::string headers;
  if (!authorization.empty()) headers += fmt::format("Authorization: {}\r\n", authorization);
  const std::string body = fmt::format(R"({{"rid":"{}"}})", name.text());
  co_await http_client::fetch(
      pool, target,
      {.method = "POST", .path = "/abort_request", .own_headers = headers, .body = body},
      {.first_byte = kAbortTimeout, .idle = kAbortTimeout});
}

}  // namespace baton::engine
