// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"
#include "support/fake_engine.h"
#include "support/io_fixture.h"

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

namespace baton::http_client {

// A pool, and what is needed to send requests to fake engines through it.
struct ExchangeFixture : test::IoFixture {
  static constexpr std::string_view kHead =
      "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n";
  static constexpr std::size_t kIdleLimit = 2;

  MemoryBudget memory{std::size_t{16} << 20U};
  UpstreamPool pool{io,
                    deadlines,
                    {.connect_timeout = std::chrono::seconds(5),
                     .idle_per_worker = kIdleLimit,
                     .header_bytes = 16 * 1024,
                     .memory = &memory}};
  ExchangeTimeouts timeouts{.first_byte = std::chrono::seconds(5), .idle = std::chrono::seconds(5)};
  std::vector<std::string_view> body{"bo", "dy"};
};

}  // namespace baton::http_client
