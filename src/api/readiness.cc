// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/readiness.h"

#include "wire/http_message.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

namespace baton::api {
namespace {

constexpr std::array kRoles{model::Role::Prefill, model::Role::Decode, model::Role::Aggregated};

std::string quoted_or_null(std::string_view text) {
  return text.empty() ? "null" : wire::json_quote(text);
}

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ',';
  list += item;
}

// {"workers":3,"states":{"ready":2,"ejected":1}}
std::string role_json(const fleet::WorkerSet& set) {
  const fleet::Time now = fleet::Clock::now();
  const auto members = set.members();
  std::map<std::string_view, int> counts;
  for (const auto& worker : members->workers) ++counts[worker->state(now)];
  std::string states;
  for (const auto& [state, count] : counts) append(states, fmt::format(R"("{}":{})", state, count));
  return fmt::format(R"({{"workers":{},"states":{{{}}}}})", members->workers.size(), states);
}

// The roles without which the pool cannot serve as it is meant to.
std::string missing_roles(const fleet::Pool& pool, model::Disaggregation disaggregation) {
  std::string missing;
  const bool prefill = pool.workers(model::Role::Prefill).any_available();
  const bool decode = pool.workers(model::Role::Decode).any_available();
  const bool both = pool.workers(model::Role::Aggregated).any_available();
  const bool required = disaggregation == model::Disaggregation::Required;
  if (!prefill && (required || !pool.workers(model::Role::Prefill).empty()))
    append(missing, R"("prefill")");
  if (!decode && (required || !both)) append(missing, R"("decode")");
  return missing;
}

std::string pool_json(const fleet::Pool& pool, model::Disaggregation disaggregation) {
  const std::string why_not = pool.why_not_ready();
  std::string roles;
  for (const model::Role role : kRoles) {
    if (pool.workers(role).empty()) continue;
    append(roles, fmt::format(R"("{}":{})", model::to_string(role), role_json(pool.workers(role))));
  }
  return fmt::format(
      R"({{"ready":{},"reason":{},"prefill_state":"{}","roles":{{{}}},"missing":[{}]}})",
      why_not.empty(), quoted_or_null(why_not), fleet::to_string(pool.prefill_state()), roles,
      missing_roles(pool, disaggregation));
}

}  // namespace

Readiness readiness_of(const fleet::Model& model) {
  const std::string why_not = model.why_not_ready();
  const auto pools = model.pools();
  std::string namespaces;
  for (const auto& pool : *pools) {
    append(namespaces, fmt::format("{}:{}", wire::json_quote(pool->name()),
                                   pool_json(*pool, model.disaggregation())));
  }
  return {why_not.empty(),
          fmt::format(R"({{"model":{},"ready":{},"reason":{},"namespaces":{{{}}}}})",
                      wire::json_quote(model.name()), why_not.empty(), quoted_or_null(why_not),
                      namespaces)};
}

std::optional<Readiness> find_readiness(const fleet::Fleet& fleet, std::string_view below_models) {
  constexpr std::string_view kReady = "/ready";
  const std::string id = wire::percent_decoded(below_models);
  if (!below_models.ends_with(kReady) || fleet.find(id)) return std::nullopt;
  const auto model = fleet.find(std::string_view(id).substr(0, id.size() - kReady.size()));
  if (!model) return std::nullopt;
  return readiness_of(*model);
}

Readiness readiness_of(const fleet::Fleet& fleet, const std::vector<fleet::SourceStatus>& sources,
                       bool draining) {
  bool some_ready = false;
  std::string models;
  for (const auto& model : fleet.models()) {
    const Readiness one = readiness_of(*model);
    append(models, fmt::format("{}:{}", wire::json_quote(model->name()), one.json));
    some_ready = some_ready || one.ready;
  }
  std::string states;
  for (const fleet::SourceStatus& source : sources) {
    append(states, fmt::format(R"("{}":{{"well":{},"detail":{}}})", fleet::to_string(source.origin),
                               source.well, quoted_or_null(source.detail)));
  }
  std::string_view reason;
  if (draining) {
    reason = "shutting down";
  } else if (!some_ready) {
    reason = "no model can serve";
  }
  return {reason.empty(),
          fmt::format(R"({{"ready":{},"reason":{},"models":{{{}}},"sources":{{{}}}}})",
                      reason.empty(), quoted_or_null(reason), models, states)};
}

}  // namespace baton::api
