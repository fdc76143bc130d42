// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/model.h"

#include <utility>

namespace baton::fleet {

Model::Model(const config::Model& config, telemetry::Registry& metrics, telemetry::Logger& log)
    : options_(config),
      prefill_(model::Role::Prefill, config.prefill_policy.value_or(config.policy)),
      decode_(model::Role::Decode, config.decode_policy.value_or(config.policy)),
      aggregated_(model::Role::Aggregated, config.policy),
      prefill_sessions_(config.affinity.ttl, config.affinity.sessions),
      decode_sessions_(config.affinity.ttl, config.affinity.sessions),
      lifecycle_(config.name, prefill_, metrics, log) {
  options_.workers.clear();
}

void Model::add(std::unique_ptr<Worker> worker) {
  const model::Role role = worker->spec().role;
  if (role == model::Role::Prefill) worker->watched_by(lifecycle_);
  workers(role).add(std::move(worker));
}

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

Worker* Model::find_worker(std::string_view name) const {
  for (const WorkerSet* const set : {&prefill_, &decode_, &aggregated_}) {
    if (Worker* const worker = set->find(name)) return worker;
  }
  return nullptr;
}

routing::AffinityTable& Model::affinity(model::Role role) {
  return role == model::Role::Prefill ? prefill_sessions_ : decode_sessions_;
}

bool Model::disaggregated() const {
  return disaggregation() != model::Disaggregation::Off && !prefill_.empty() && !decode_.empty();
}

std::string Model::why_not_ready() const {
  if (decode_.empty() && aggregated_.empty()) {
    return prefill_.empty() ? "it has no workers" : "it has prefill workers but no decode worker";
  }
  if (disaggregation() == model::Disaggregation::Required) {
    if (!decode_.any_available()) return "disaggregation is required, and no decode worker is up";
    switch (prefill_state()) {
      case PrefillState::Pending:
        return "disaggregation is required, and no prefill worker has been seen yet";
      case PrefillState::Unavailable:
        return "disaggregation is required, and every prefill worker is down";
      case PrefillState::Active:
        return "";
    }
  }
  if (!decode_.any_available() && !aggregated_.any_available()) return "every worker is down";
  return "";
}

}  // namespace baton::fleet
