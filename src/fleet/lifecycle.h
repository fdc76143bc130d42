// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker_set.h"
#include "libs/locks/mutex.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::fleet {

// Active: some prefill worker answers. Pending: none does, but one has not answered yet, or none is
// registered. Unavailable: there are some, and none of them can serve.
enum class PrefillState { Pending, Active, Unavailable };
std::string_view to_string(PrefillState state);

// The state of a set's prefill: a function of its current workers only.
PrefillState prefill_state(const WorkerSet& prefill);

// Role. Reports activation, deactivation and reactivation of one namespace's prefill workers.
// Confinement. Any thread.
// Lifetime. `prefill` and the telemetry outlive it.
// Invariants. Nothing depends on it: it only reports, each change once.
class Lifecycle {
 public:
  Lifecycle(std::string model, std::string name_space, const WorkerSet& prefill,
            telemetry::Logger& log);

  // A prefill worker has changed.
  void observe();
  // Changes so far.
  std::uint64_t activations() const { return activations_.value(); }
  std::uint64_t deactivations() const { return deactivations_.value(); }

 private:
  void report(PrefillState before, PrefillState now) REQUIRES(mutex_);

  const std::string model_;
  const std::string name_space_;
  const WorkerSet& prefill_;
  telemetry::Logger& log_;
  telemetry::Counter activations_;
  telemetry::Counter deactivations_;
  locks::Mutex mutex_;
  PrefillState reported_ GUARDED_BY(mutex_) = PrefillState::Pending;
  bool was_active_ GUARDED_BY(mutex_) = false;
};

}  // namespace baton::fleet
