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

Lifecycle::Lifecycle(std::string model, const WorkerSet& prefill, telemetry::Registry& metrics,
                     telemetry::Logger& log)
    : model_(std::move(model)),
      prefill_(prefill),
      log_(log),
      gauge_(metrics.gauge("baton_prefill_state",
                           "Prefill workers: 0 none seen yet, 1 active, 2 all down.",
                           {{"model", model_}})),
      to_active_(metrics.counter("baton_prefill_transitions_total",
                                 "Changes of baton_prefill_state, by the state entered.",
                                 {{"model", model_}, {"to", "active"}})),
      to_unavailable_(metrics.counter("baton_prefill_transitions_total",
                                      "Changes of baton_prefill_state, by the state entered.",
                                      {{"model", model_}, {"to", "unavailable"}})) {}

void Lifecycle::observe(Availability now) {
  const std::lock_guard lock(mutex_);
  seen_up_ = seen_up_ || now == Availability::Up;
  if (!seen_up_) return;
  // Looked up, not derived from the news: two threads may bring theirs in either order.
  const PrefillState next =
      prefill_.any_available() ? PrefillState::Active : PrefillState::Unavailable;
  if (next != state()) enter(next);
}

void Lifecycle::enter(PrefillState next) {
  const PrefillState before = state_.exchange(next, std::memory_order_acq_rel);
  gauge_.set(static_cast<std::int64_t>(next));
  if (next == PrefillState::Unavailable) {
    to_unavailable_.add();
    log_.warning("prefill_unavailable", {{"model", model_}});
    return;
  }
  to_active_.add();
  if (before == PrefillState::Pending) {
    log_.info("prefill_activated", {{"model", model_}});
  } else {
    log_.info("prefill_reactivated", {{"model", model_}});
  }
}

}  // namespace baton::fleet
