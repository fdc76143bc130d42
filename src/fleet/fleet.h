// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/result.h"
#include "fleet/worker.h"
#include "routing/selector.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::fleet {

// Workers a request must not be sent to again.
using Excluded = std::vector<model::WorkerId>;
using Random = std::function<std::uint64_t()>;

// Role. The workers of one role of one model, and the policy that picks among them.
// Confinement. Any thread.
class WorkerSet {
 public:
  explicit WorkerSet(model::Policy policy) : selector_(policy) {}

  void add(std::unique_ptr<Worker> worker) { workers_.push_back(std::move(worker)); }
  bool empty() const { return workers_.empty(); }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  bool has_other_than(const Excluded& excluded) const;
  // Picks and counts in one step: what was chosen is what is used.
  Result<Booking> book(const Excluded& excluded, const Random& random);

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
  routing::Selector selector_;
};

// Role. One served model: its names and its workers by role.
class Model {
 public:
  explicit Model(const config::Model& config);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& aliases() const { return aliases_; }
  WorkerSet& workers(model::Role role);
  const WorkerSet& workers(model::Role role) const;
  // Prefill and decode on different workers.
  bool disaggregated() const;
  // Empty where the model can serve; otherwise what is missing.
  std::string why_not_ready() const;

 private:
  std::string name_;
  std::vector<std::string> aliases_;
  WorkerSet prefill_;
  WorkerSet decode_;
  WorkerSet aggregated_;
};

// Role. Who serves what.
// Confinement. Any thread; built before serving starts and not changed since.
// Lifetime. Owned by App, outlives every request.
class Fleet {
 public:
  Fleet(const config::Config& config, telemetry::Registry& metrics);

  // By name or alias; null where nobody serves it.
  Model* find(std::string_view name);
  const std::vector<std::unique_ptr<Model>>& models() const { return models_; }

 private:
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::unique_ptr<Model>> models_;
  std::unordered_map<std::string, Model*, NameHash, std::equal_to<>> by_name_;
};

}  // namespace baton::fleet
