// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton::fleet {

bool WorkerSet::has_other_than(const Excluded& excluded) const {
  return std::ranges::any_of(workers_, [&excluded](const auto& worker) {
    return std::ranges::find(excluded, worker->id()) == excluded.end();
  });
}

Result<Booking> WorkerSet::book(const Excluded& excluded, const Random& random) {
  const auto load = [this](std::size_t i) { return workers_[i]->in_flight(); };
  const auto eligible = [this, &excluded](std::size_t i) {
    return std::ranges::find(excluded, workers_[i]->id()) == excluded.end();
  };
  const auto picked = selector_.pick(workers_.size(), load, eligible, random);
  if (!picked) {
    return fail(
        Error(Errc::NoWorkers, "no worker is available").with_retry_after(std::chrono::seconds(1)));
  }
  return Booking(*workers_[*picked]);
}

Model::Model(const config::Model& config)
    : name_(config.name),
      aliases_(config.aliases),
      prefill_(config.prefill_policy.value_or(config.policy)),
      decode_(config.decode_policy.value_or(config.policy)),
      aggregated_(config.policy) {}

WorkerSet& Model::workers(model::Role role) {
  switch (role) {
    case model::Role::Prefill:
      return prefill_;
    case model::Role::Decode:
      return decode_;
    case model::Role::Aggregated:
      break;
  }
  return aggregated_;
}

const WorkerSet& Model::workers(model::Role role) const {
  return const_cast<Model*>(this)->workers(role);
}

bool Model::disaggregated() const { return !prefill_.empty() && !decode_.empty(); }

std::string Model::why_not_ready() const {
  if (disaggregated() || !decode_.empty() || !aggregated_.empty()) return "";
  return prefill_.empty() ? "it has no workers" : "it has prefill workers but no decode worker";
}

Fleet::Fleet(const config::Config& config, telemetry::Registry& metrics) {
  std::uint64_t next_id = 1;
  for (const config::Model& model_config : config.models) {
    auto model = std::make_unique<Model>(model_config);
    for (const model::WorkerSpec& spec : model_config.workers) {
      telemetry::Gauge& gauge =
          metrics.gauge("baton_worker_in_flight", "Requests running on a worker now.",
                        {{"model", model_config.name},
                         {"worker", spec.endpoint.to_string()},
                         {"role", std::string(model::to_string(spec.role))}});
      model->workers(spec.role).add(
          std::make_unique<Worker>(model::WorkerId{next_id++}, spec, gauge));
    }
    by_name_.emplace(model->name(), model.get());
    for (const std::string& alias : model->aliases()) by_name_.emplace(alias, model.get());
    models_.push_back(std::move(model));
  }
}

Model* Fleet::find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace baton::fleet
