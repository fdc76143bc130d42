// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker_set.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace baton::fleet {

// Pending: no prefill worker has been seen yet. Unavailable: all that there are, are Down.
enum class PrefillState { Pending, Active, Unavailable };
std::string_view to_string(PrefillState state);

// Role. Whether a model's prefill workers can be counted on: Pending → Active ⇄ Unavailable.
// Confinement. Any thread.
// Lifetime. `prefill` and the telemetry outlive it.
// Invariants. The state follows from what the workers are, not from the order of news: once one was
//   seen Up it is Active while any is not Down, and Unavailable otherwise. Each transition is
//   logged and counted once.
class Lifecycle {
 public:
  Lifecycle(std::string model, const WorkerSet& prefill, telemetry::Registry& metrics,
            telemetry::Logger& log);

  PrefillState state() const { return state_.load(std::memory_order_acquire); }
  // A prefill worker's availability has become `now`.
  void observe(Availability now);

 private:
  void enter(PrefillState next);

  const std::string model_;
  const WorkerSet& prefill_;
  telemetry::Logger& log_;
  telemetry::Gauge& gauge_;
  telemetry::Counter& to_active_;
  telemetry::Counter& to_unavailable_;
  std::mutex mutex_;
  bool seen_up_ = false;  // under mutex_
  std::atomic<PrefillState> state_{PrefillState::Pending};
};

}  // namespace baton::fleet
