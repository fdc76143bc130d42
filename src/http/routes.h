// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "pipeline/response_sink.h"
#include "scheduling/policy/trust.h"
#include "wire/http_message.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::http {

using boost::asio::awaitable;

// A request that has been read whole.
struct Call {
  wire::RequestHead head;
  std::string body;
  std::string request_id;
  std::chrono::steady_clock::time_point received;
  scheduling::Trusted trusted;  // its source may say which workers serve
  std::string client;           // which key it came with, never the key; empty: without one
  pipeline::ResponseSink& response;
  Cancellation& cancellation;
  MemoryShare memory = {};  // has the body
};

// A coroutine that outlives the call, so it gets the call by value.
using Handler = std::function<awaitable<void>(Call)>;

enum class Access {
  Open,
  Key,       // clients with one of the listener's keys; all clients if it has none
  Operator,  // the same, but only from this machine where the listener has no keys
};

struct Route {
  std::string method;  // GET answers HEAD too
  std::string path;    // one that ends with '/' takes everything below it
  Access access;
  Handler handler;
};

// Role. Maps requests to handlers: the whole API of a listener as data.
// Confinement. Immutable once the listener runs.
class Routes {
 public:
  Routes(std::vector<Route> routes) : routes_(std::move(routes)) {}

  // NotFound, or MethodNotAllowed where the path exists.
  Result<const Route*> find(std::string_view method, std::string_view path) const;
  // For Allow: "GET, HEAD, OPTIONS". Empty where no route has the path.
  std::string allowed_methods(std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

// Answers with JSON.
awaitable<void> respond_json(Call call, int status, std::string json);
awaitable<void> respond_error(Call call, Error error);
// Responds with the JSON and status 200, or with the error.
awaitable<void> respond(Call call, Result<std::string> json);

}  // namespace baton::http
