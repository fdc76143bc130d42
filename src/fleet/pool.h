// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "fleet/lifecycle.h"
#include "fleet/load_notifier.h"
#include "fleet/work_history.h"
#include "fleet/worker_set.h"
#include "libs/locks/mutex.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace baton::fleet {

// Role. The workers of one namespace of one model, by role: prefill and decode pair only here, so
//   that an old and a new deployment can serve side by side.
// Confinement. Any thread; add and remove: one at a time.
// Lifetime. Shared: a request keeps the pool it is served by.
class Pool final : public Watcher, public std::enable_shared_from_this<Pool> {
 public:
  // `load_notifier` is the model's.
  Pool(const config::Model& model, std::string name_space, telemetry::Registry& metrics,
       telemetry::Logger& log,
       std::shared_ptr<LoadNotifier> load_notifier = std::make_shared<LoadNotifier>());

  const std::string& name() const { return name_; }
  void add(const std::shared_ptr<Worker>& worker);
  void remove(const Worker& worker);
  bool empty() const { return prefill_.empty() && decode_.empty() && aggregated_.empty(); }

  WorkerSet& workers(model::Role role);
  const WorkerSet& workers(model::Role role) const;
  // By name, host:port or number; null where it has none of that name.
  std::shared_ptr<Worker> find_worker(std::string_view name) const;
  // How many could bring a whole answer: its share of the model's requests.
  std::size_t weight() const { return decode_.size() + aggregated_.size(); }

  // Prefill and decode are on different workers, and that is not switched off.
  bool disaggregated() const;
  PrefillState prefill_state() const { return fleet::prefill_state(prefill_); }
  const Lifecycle& prefill_lifecycle() const { return lifecycle_; }
  // Empty if it can serve; otherwise the reason why not.
  std::string why_not_ready() const;

  // Recent work of the pool; requests record it.
  WorkHistory& work() { return work_; }
  const WorkHistory& work() const { return work_; }

  // Rings when a worker of the model has less to do, comes, or changes.
  LoadNotifier& load_notifier() const { return *load_notifier_; }
  // The pool's own listener to that; null before it is made.
  std::shared_ptr<LoadListener> listener() const {
    const locks::Lock lock(mutex_);
    return listener_;
  }
  // The same, made by `make` where it has none.
  template <class Make>
  std::shared_ptr<LoadListener> listener(Make make) {
    const locks::Lock lock(mutex_);
    if (!listener_) {
      listener_ = make();
      load_notifier_->add(listener_);
    }
    return listener_;
  }

  // Its last worker has left, and requests go to other namespaces.
  void forget_listener() {
    const locks::Lock lock(mutex_);
    listener_.reset();
  }

  void changed(const Worker& worker, const Health::Change& change) override;
  // Reports a state that is no condition: joined, left, draining.
  void report(const Worker& worker, std::string_view to, std::string_view why);

 private:
  void report(const Worker& worker, std::string_view from, std::string_view to,
              std::string_view why);

  const std::string model_;
  const std::string name_;
  const model::Disaggregation disaggregation_;
  telemetry::Registry& metrics_;
  telemetry::Logger& log_;
  const std::shared_ptr<LoadNotifier> load_notifier_;
  mutable locks::Mutex mutex_;
  std::shared_ptr<LoadListener> listener_ GUARDED_BY(mutex_);
  WorkerSet prefill_;
  WorkerSet decode_;
  WorkerSet aggregated_;
  Lifecycle lifecycle_;
  WorkHistory work_;
};

}  // namespace baton::fleet
