// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "fleet/lifecycle.h"
#include "fleet/worker_set.h"
#include "routing/affinity.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fleet {

// Role. One served model: its names, its options, and its workers by role.
// Confinement. Any thread, once all workers are added.
class Model {
 public:
  Model(const config::Model& config, telemetry::Registry& metrics, telemetry::Logger& log);

  const std::string& name() const { return options_.name; }
  const std::vector<std::string>& aliases() const { return options_.aliases; }
  model::Disaggregation disaggregation() const { return options_.disaggregation; }
  model::OnPrefillFailure on_prefill_failure() const { return options_.on_prefill_failure; }
  std::size_t retries() const { return options_.retries; }
  std::size_t migration() const { return options_.migration; }
  // Body fields that may name the session.
  std::span<const std::string> session_fields() const { return options_.affinity.body_fields; }

  void add(std::unique_ptr<Worker> worker);
  WorkerSet& workers(model::Role role);
  const WorkerSet& workers(model::Role role) const;
  // By name, host:port or number; null where it has none of that name.
  Worker* find_worker(std::string_view name) const;
  // Where sessions are served; aggregated workers share that of decode.
  routing::AffinityTable& affinity(model::Role role);
  PrefillState prefill_state() const { return lifecycle_.state(); }

  // Prefill and decode are on different workers, and that is not switched off.
  bool disaggregated() const;
  // Empty where the model can serve; otherwise what is missing.
  std::string why_not_ready() const;

 private:
  config::Model options_;  // without the workers
  WorkerSet prefill_;
  WorkerSet decode_;
  WorkerSet aggregated_;
  routing::AffinityTable prefill_sessions_;
  routing::AffinityTable decode_sessions_;
  Lifecycle lifecycle_;
};

}  // namespace baton::fleet
