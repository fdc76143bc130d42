// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/lifecycle.h"

#include <utility>

namespace baton::fleet {

std::string_view to_string(PrefillState state) {
  switch (state) {
    case PrefillState::Pending:
      return "pending";
    case PrefillState::Active:
      return "active";
    case PrefillState::Unavailable:
      break;
  }
  return "unavailable";
}

PrefillState prefill_state(const WorkerSet& prefill) {
  const auto members = prefill.members();
  bool any_new = members->workers.empty();
  for (const auto& worker : members->workers) {
    if (worker->draining()) continue;
    switch (worker->condition()) {
      case Condition::Up:
      case Condition::HalfOpen:
      case Condition::OnTrial:
        return PrefillState::Active;
      case Condition::New:
        any_new = true;
        break;
      case Condition::Unreachable:
      case Condition::Ejected:
      case Condition::Misconfigured:
        break;
    }
  }
  return any_new ? PrefillState::Pending : PrefillState::Unavailable;
}

Lifecycle::Lifecycle(std::string model, std::string name_space, const WorkerSet& prefill,
                     telemetry::Logger& log)
    : model_(std::move(model)), name_space_(std::move(name_space)), prefill_(prefill), log_(log) {}

void Lifecycle::observe() {
  const locks::Lock lock(mutex_);
  // Looked up, not derived from the news: two threads may bring theirs in either order.
  const PrefillState now = prefill_state(prefill_);
  report(std::exchange(reported_, now), now);
}

void Lifecycle::report(PrefillState before, PrefillState now) {
  const bool active = now == PrefillState::Active;
  if (active == (before == PrefillState::Active)) return;
  if (!active) {
    deactivations_.add();
    log_.warning("prefill_unavailable",
                 {{"model", model_},
                  {"namespace", name_space_},
                  {"registered", static_cast<std::int64_t>(prefill_.size())}});
    return;
  }
  activations_.add();
  if (std::exchange(was_active_, true)) {
    log_.info("prefill_reactivated", {{"model", model_}, {"namespace", name_space_}});
  } else {
    log_.info("prefill_activated", {{"model", model_}, {"namespace", name_space_}});
  }
}

}  // namespace baton::fleet
