// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace baton::http_client {

// A whole answer, whatever its status.
struct Answer {
  int status = 0;
  std::string body;
  std::optional<std::string> retry_after;
  MemoryShare memory = {};  // of the body
};

// A request of Baton's own to a worker.
struct Question {
  std::string_view method = "GET";
  std::string_view path;
  std::string_view own_headers = {};  // further header lines, each with its line end
  std::string_view body = {};
  std::size_t largest_answer = std::size_t{4} * 1024 * 1024;
};

// Sends the question and reads the whole answer. Connecting and the head together may take
// first_byte, the body idle: unlike a stream of tokens, a slow body gets no more time
// (EngineTimeout). The cancellation, if given, ends the exchange with its reason. Referenced
// arguments must stay until the answer is there.
awaitable<Result<Answer>> fetch(UpstreamPool& pool, Target target, Question question,
                                ExchangeTimeouts timeouts, Cancellation* cancellation = nullptr);

}  // namespace baton::http_client
