// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "core/published.h"
#include "fleet/forecasts.h"
#include "fleet/load_notifier.h"
#include "fleet/members.h"
#include "fleet/worker.h"
#include "libs/locks/mutex.h"
#include "scheduling/policy/load_ledger.h"
#include "scheduling/policy/popularity.h"
#include "scheduling/policy/selector.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace baton::fleet {

// Role. The workers of one role of one namespace of a model, and the data for choosing among them:
//   policy, running load, popular prefixes. Choosing itself is scheduling/worker_booking.h.
// Confinement. Any thread; add and remove: one at a time.
// Invariants. A candidate is a worker and a rank.
class WorkerSet {
 public:
  // `forecasts`: learns from bookings how far forecasts are trusted; null: they are trusted. `itl`:
  // the largest gap between tokens, for which each worker's batch is bounded; 0: it is not.
  WorkerSet(model::Role role, model::Policy policy, config::Cost cost = {},
            std::shared_ptr<LoadNotifier> load_notifier = {},
            std::shared_ptr<Forecasts> forecasts = {}, std::chrono::milliseconds itl = {});

  void add(std::shared_ptr<Worker> worker);
  void remove(const Worker& worker);
  bool empty() const { return size() == 0; }
  std::size_t size() const { return members()->workers.size(); }
  model::Role role() const { return role_; }
  model::Policy policy() const { return policy_; }
  std::shared_ptr<const Members> members() const { return members_.get(); }
  // By name, host:port or number; null where there is none.
  std::shared_ptr<Worker> find(std::string_view name) const;
  // Some worker may have a request.
  bool any_available() const;
  // Requests that the workers can take so that their tokens keep the objective; nothing without
  // one, without workers, or if one of them has not met its limit yet.
  std::optional<std::int64_t> free_places() const;

  // For scheduling, which chooses among the workers and books one of them.
  const config::Cost& cost() const { return cost_; }
  scheduling::LoadLedger& ledger() const { return *ledger_; }
  scheduling::Popularity& popularity() const { return popularity_; }
  const std::shared_ptr<LoadNotifier>& load_notifier() const { return load_notifier_; }
  const std::shared_ptr<Forecasts>& forecasts() const { return forecasts_; }
  std::chrono::milliseconds itl() const { return itl_; }
  scheduling::Selector& selector() const { return selector_; }
  // Held where choosing and booking are one step.
  locks::Mutex& choosing() RETURN_CAPABILITY(choosing_) { return choosing_; }

 private:
  model::Role role_;
  model::Policy policy_;
  config::Cost cost_;
  std::shared_ptr<scheduling::LoadLedger> ledger_;
  mutable scheduling::Popularity popularity_;
  std::shared_ptr<LoadNotifier> load_notifier_;
  std::shared_ptr<Forecasts> forecasts_;
  const std::chrono::milliseconds itl_;
  locks::Mutex choosing_;  // scoring and booking are one step
  Published<Members> members_;
  mutable scheduling::Selector selector_;
};

}  // namespace baton::fleet
