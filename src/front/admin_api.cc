// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "front/admin_api.h"

#include "front/readiness.h"

#include <string>
#include <string_view>
#include <utility>

namespace baton::front {
namespace {

awaitable<void> respond_metrics(Call call, std::string text) {
  wire::Headers headers;
  headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  co_await call.response.respond(200, headers, text);
}

awaitable<void> tell_route(pipeline::RouteQuery& query, Call call) {
  auto described = co_await query.describe(std::move(call.head.headers), std::move(call.body),
                                           std::move(call.memory), call.cancellation);
  if (described) {
    co_await respond_json(std::move(call), 200, *std::move(described));
  } else {
    co_await respond_error(std::move(call), std::move(described.error()));
  }
}

}  // namespace

std::vector<Route> admin_routes(AdminContext context) {
  const auto health = [](Call call) {
    return respond_json(std::move(call), 200, R"({"status":"ok"})");
  };
  const auto ready = [context](Call call) {
    Readiness state = readiness_of(context.fleet, context.sources(), context.draining());
    return respond_json(std::move(call), state.ready ? 200 : 503, std::move(state.json));
  };
  const auto model_ready = [context](Call call) {
    const std::string_view name = call.head.path().substr(kModelsBelow.size());
    if (auto state = find_readiness(context.fleet, name))
      return respond_json(std::move(call), state->ready ? 200 : 503, std::move(state->json));
    return respond_error(
        std::move(call),
        Error(Errc::ModelNotFound,
              "below /v1/models/ there is only MODEL/ready here, for a model that is served"));
  };
  const auto scrape = [context](Call call) {
    return respond_metrics(std::move(call), context.metrics.render());
  };
  const auto route = [context](Call call) {
    return tell_route(context.route_query, std::move(call));
  };
  return {
      {"GET", "/health", Access::Open, health},
      {"GET", "/ready", Access::Open, ready},
      {"GET", std::string(kModelsBelow), Access::Open, model_ready},
      {"GET", "/metrics", Access::Open, scrape},
      {"POST", "/v1/route", Access::Operator, route},
  };
}

}  // namespace baton::front
