// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/advice_api.h"

#include "api/request_fields.h"
#include "config/routing.h"
#include "fleet/pool_advice.h"
#include "model/worker.h"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::api {
namespace {

using Json = nlohmann::ordered_json;

// To three places: there is no more truth in it.
Json rounded(const std::optional<double>& value) {
  return value ? Json(std::round(*value * 1000) / 1000) : Json();
}

Json milliseconds_json(const std::optional<std::chrono::milliseconds>& time) {
  return time ? Json(time->count()) : Json();
}

Json objective_json(const std::optional<config::Slo>& slo) {
  if (!slo) return nullptr;
  return {{"ttft_ms", milliseconds_json(slo->ttft)}, {"itl_ms", milliseconds_json(slo->itl)}};
}

Json observed_json(const fleet::WorkHistory::Summary& work) {
  return {{"seconds", rounded(work.seconds)},
          {"requests_per_second", rounded(work.requests_per_second)},
          {"prefill_seconds_per_second", rounded(work.prefill_load)},
          {"streams", rounded(work.streams())}};
}

Json advice_json(const fleet::Advice& advice) {
  return {{"role", model::to_string(advice.role)},
          {"wanted", advice.wanted},
          {"available", advice.available},
          {"registered", advice.registered},
          {"utilization", rounded(advice.utilization)},
          {"reason", advice.reason}};
}

Json pool_json(const fleet::Model& model, const fleet::Pool& pool, fleet::Time now) {
  const auto work = pool.work().summary(now);
  const auto& slo = model.routing().slo;
  Json roles = Json::array();
  for (const fleet::Advice& one : fleet::advise(work, slo, fleet::facts_of(pool, now)))
    roles.push_back(advice_json(one));
  return {{"model", model.name()},
          {"namespace", pool.name()},
          {"objective", objective_json(slo)},
          {"observed", observed_json(work)},
          {"roles", std::move(roles)}};
}

Result<std::string> describe(const fleet::Fleet& fleet, std::string_view target) {
  std::optional<std::string> wanted;
  if (auto read = read_filters(target, std::array{Filter{"model", &wanted}}); !read)
    return fail(std::move(read.error()));
  if (wanted) {
    if (const auto found = fleet.find(*wanted)) wanted = found->name();  // may be an alias
  }
  const fleet::Time now = fleet::Clock::now();
  Json models = Json::array();
  for (const auto& model : fleet.models()) {
    if (wanted && *wanted != model->name()) continue;
    const auto pools = model->pools();
    for (const auto& pool : *pools) models.push_back(pool_json(*model, *pool, now));
  }
  Json json;
  json["models"] = std::move(models);
  // A name need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::vector<http::Route> advice_routes(const fleet::Fleet& fleet) {
  const auto show = [&fleet](http::Call call) {
    auto answer = describe(fleet, call.head.target);
    return http::respond(std::move(call), std::move(answer));
  };
  return {{"GET", "/v1/advice", http::Access::Operator, show}};
}

}  // namespace baton::api
