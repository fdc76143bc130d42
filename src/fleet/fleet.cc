// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/fleet.h"

#include <utility>

namespace baton::fleet {

Fleet::Fleet(const config::Config& config, telemetry::Registry& metrics, telemetry::Logger& log) {
  std::uint64_t next_id = 1;
  for (const config::Model& model_config : config.models) {
    auto model = std::make_unique<Model>(model_config, metrics, log);
    for (const model::WorkerSpec& spec : model_config.workers) {
      telemetry::Gauge& gauge =
          metrics.gauge("baton_worker_in_flight", "Requests running on a worker now.",
                        {{"model", model_config.name},
                         {"worker", spec.endpoint.to_string()},
                         {"role", std::string(model::to_string(spec.role))}});
      model->add(std::make_unique<Worker>(model::WorkerId{next_id++}, spec, gauge));
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

Worker* Fleet::find_worker(std::string_view name) const {
  for (const auto& model : models_) {
    if (Worker* const worker = model->find_worker(name)) return worker;
  }
  return nullptr;
}

}  // namespace baton::fleet
