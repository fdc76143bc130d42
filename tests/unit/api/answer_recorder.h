// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "http/routes.h"

#include <string>
#include <string_view>

namespace baton::api {

using boost::asio::awaitable;

// Role. Remembers the one answer a handler gives.
class AnswerRecorder final : public pipeline::ResponseSink {
 public:
  awaitable<Result<void>> respond(int given_status, const wire::Headers& given_headers,
                                  std::string_view whole) override {
    status = given_status;
    headers = given_headers;
    body = whole;
    co_return Result<void>{};
  }
  awaitable<Result<void>> begin(int given_status, const wire::Headers& given_headers) override {
    status = given_status;
    headers = given_headers;
    co_return Result<void>{};
  }
  awaitable<Result<void>> write(std::string_view piece) override {
    body += piece;
    co_return Result<void>{};
  }
  awaitable<Result<void>> end() override { co_return Result<void>{}; }

  int status = 0;
  wire::Headers headers;
  std::string body;
};

// Calls the handler of a route, as a session would.
inline awaitable<void> call_route(const http::Routes& routes, std::string method,
                                  std::string target, std::string body, AnswerRecorder& answer,
                                  wire::Headers headers = {}, MemoryBudget* memory = nullptr) {
  wire::RequestHead head;
  head.headers = std::move(headers);
  head.method = std::move(method);
  head.target = std::move(target);
  const http::Route* const route = routes.find(head.method, head.path()).value();
  Cancellation cancellation;
  http::Call call{.head = head,
                  .body = std::move(body),
                  .request_id = "id-1",
                  .received = std::chrono::steady_clock::now(),
                  .trusted = scheduling::Trusted::No,
                  .client = {},
                  .response = answer,
                  .cancellation = cancellation,
                  .memory = MemoryShare(memory)};
  co_await route->handler(std::move(call));
}

}  // namespace baton::api
