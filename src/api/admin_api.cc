// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/admin_api.h"

#include "api/readiness.h"

#include <string>
#include <string_view>
#include <utility>

namespace baton::api {
namespace {

using boost::asio::awaitable;

awaitable<void> respond_metrics(http::Call call, std::string text) {
  wire::Headers headers;
  headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  co_await call.response.respond(200, headers, text);
}

awaitable<void> preview_route(pipeline::RouteQuery& query, http::Call call) {
  auto described = co_await query.describe(std::move(call.head.headers), std::move(call.body),
                                           std::move(call.memory), call.cancellation);
  if (described) {
    co_await http::respond_json(std::move(call), 200, *std::move(described));
  } else {
    co_await http::respond_error(std::move(call), std::move(described.error()));
  }
}

}  // namespace

std::vector<http::Route> admin_routes(AdminContext context) {
  const auto health = [](http::Call call) {
    return http::respond_json(std::move(call), 200, R"({"status":"ok"})");
  };
  const auto ready = [context](http::Call call) {
    Readiness state = readiness_of(context.fleet, context.sources(), context.draining());
    return http::respond_json(std::move(call), state.ready ? 200 : 503, std::move(state.json));
  };
  const auto model_ready = [context](http::Call call) {
    const std::string_view name = call.head.path().substr(kModelsBelow.size());
    if (auto state = find_readiness(context.fleet, name))
      return http::respond_json(std::move(call), state->ready ? 200 : 503, std::move(state->json));
    return http::respond_error(
        std::move(call),
        Error(Errc::ModelNotFound,
              "below /v1/models/ there is only MODEL/ready here, for a model that is served"));
  };
  const auto scrape = [context](http::Call call) {
    return respond_metrics(std::move(call), context.metrics.render());
  };
  const auto route = [context](http::Call call) {
    return preview_route(context.route_query, std::move(call));
  };
  return {
      {"GET", "/health", http::Access::Open, health},
      {"GET", "/ready", http::Access::Open, ready},
      {"GET", std::string(kModelsBelow), http::Access::Open, model_ready},
      {"GET", "/metrics", http::Access::Open, scrape},
      {"POST", "/v1/route", http::Access::Operator, route},
  };
}

}  // namespace baton::api
