// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/published.h"
#include "core/random.h"
#include "fleet/pool.h"
#include "model/engine_set.h"
#include "scheduling/policy/affinity.h"
#include "scheduling/policy/hints.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fleet {

// Role. One served model: its names, its options, and its workers by namespace.
// Confinement. Any thread; add and remove: one at a time.
// Lifetime. Shared: a request keeps the model it asked for. Other options make another model.
class Model {
 public:
  using Pools = std::vector<std::shared_ptr<Pool>>;

  // `load_notifier`: that of earlier models of the same name, if any.
  Model(const config::Model& config, telemetry::Registry& metrics, telemetry::Logger& log,
        std::shared_ptr<LoadNotifier> load_notifier = std::make_shared<LoadNotifier>());

  const std::string& name() const { return options_.name; }
  const std::vector<std::string>& aliases() const { return options_.aliases; }
  // Adapters that its workers load when asked for one.
  const std::vector<std::string>& adapters() const { return options_.adapters; }
  model::Disaggregation disaggregation() const { return options_.disaggregation; }
  model::OnPrefillFailure on_prefill_failure() const { return options_.on_prefill_failure; }
  std::size_t retries() const { return options_.retries; }
  std::size_t migration() const { return options_.migration; }
  const config::Routing& routing() const { return options_.routing; }
  // Body fields that may name the session.
  std::span<const std::string> session_fields() const { return options_.affinity.body_fields; }

  // Adds it to the pool of its namespace, which is made for its first worker.
  std::shared_ptr<Pool> add(const std::shared_ptr<Worker>& worker);
  void remove(const Worker& worker);

  std::shared_ptr<const Pools> pools() const { return pools_.get(); }
  // That of a namespace; null where there is none.
  std::shared_ptr<Pool> pool(std::string_view name_space) const;
  // The namespace for a request: that of the worker it names, else that of its session's worker,
  // else one of those that are ready, each in proportion to its workers. Never null: a model
  // without workers has an empty pool.
  std::shared_ptr<Pool> choose(const scheduling::Hints& hints, const Random& random);

  // The engines of its workers of these roles.
  model::EngineSet engines(std::initializer_list<model::Role> roles) const;
  // By name, host:port or number; null where it has none of that name.
  std::shared_ptr<Worker> find_worker(std::string_view name) const;
  // The sessions' ranks; aggregated workers share the table of decode.
  scheduling::AffinityTable& affinity(model::Role role);

  // Somewhere prefill and decode are on different workers, and that is not switched off.
  bool disaggregated() const;
  // Empty if some namespace can serve; otherwise the reason why not.
  std::string why_not_ready() const;

 private:
  std::shared_ptr<Pool> pool_of_session(const Pools& pools, const std::string& session);

  config::Model options_;  // without the workers
  telemetry::Registry& metrics_;
  telemetry::Logger& log_;
  std::shared_ptr<LoadNotifier> load_notifier_;
  std::shared_ptr<Pool> default_pool_;
  Published<Pools> pools_;  // by name
  scheduling::AffinityTable prefill_sessions_;
  scheduling::AffinityTable decode_sessions_;
};

}  // namespace baton::fleet
