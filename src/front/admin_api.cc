// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "front/admin_api.h"

#include "pipeline/route_query.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace baton::front {
namespace {

std::string model_state(const fleet::Model& model) {
  const std::string missing = model.why_not_ready();
  const auto count = [&model](model::Role role) { return model.workers(role).workers().size(); };
  return fmt::format(R"({}:{{"ready":{},"reason":{},"prefill":{},"decode":{},"aggregated":{}}})",
                     wire::json_quote(model.name()), missing.empty(),
                     missing.empty() ? "null" : wire::json_quote(missing),
                     count(model::Role::Prefill), count(model::Role::Decode),
                     count(model::Role::Aggregated));
}

struct Readiness {
  bool ready;
  std::string json;
};

Readiness readiness(const fleet::Fleet& fleet, bool draining) {
  bool some_ready = false;
  std::string models;
  for (const auto& model : fleet.models()) {
    if (!models.empty()) models += ',';
    models += model_state(*model);
    some_ready = some_ready || model->why_not_ready().empty();
  }
  std::string reason = "null";
  if (draining) {
    reason = R"("shutting down")";
  } else if (!some_ready) {
    reason = R"("no model can serve")";
  }
  const bool ready = some_ready && !draining;
  return {ready,
          fmt::format(R"({{"ready":{},"reason":{},"models":{{{}}}}})", ready, reason, models)};
}

awaitable<void> respond_metrics(Call call, std::string text) {
  wire::Headers headers;
  headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  co_await call.response.respond(200, headers, text);
}

}  // namespace

std::vector<Route> admin_routes(AdminContext context) {
  const auto health = [](Call call) {
    return respond_json(std::move(call), 200, R"({"status":"ok"})");
  };
  const auto ready = [context](Call call) {
    Readiness state = readiness(context.fleet, context.draining());
    return respond_json(std::move(call), state.ready ? 200 : 503, std::move(state.json));
  };
  const auto scrape = [context](Call call) {
    return respond_metrics(std::move(call), context.metrics.render());
  };
  const auto route = [context](Call call) {
    auto described = pipeline::describe_request(context.fleet, context.ledger, call.head.headers,
                                                std::move(call.body), context.random);
    if (described) return respond_json(std::move(call), 200, std::move(*described));
    return respond_error(std::move(call), std::move(described.error()));
  };
  return {
      {"GET", "/health", Access::Open, health},
      {"GET", "/ready", Access::Open, ready},
      {"GET", "/metrics", Access::Open, scrape},
      {"POST", "/v1/route", Access::Open, route},
  };
}

}  // namespace baton::front
