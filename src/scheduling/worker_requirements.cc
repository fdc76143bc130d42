// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/worker_requirements.h"

namespace baton::scheduling {

bool BusyThreshold::crossed_by(const fleet::Worker& worker, double prefill_tokens) const {
  if (tokens && prefill_tokens > static_cast<double>(*tokens)) return true;
  return share && prefill_tokens > *share * static_cast<double>(worker.max_batched_tokens());
}

WorkerRequirements requirements_for(model::Role role, const Hints& hints) {
  WorkerRequirements requirements;
  requirements.pin = role == model::Role::Prefill ? hints.prefill : hints.decode;
  requirements.allowed = hints.allowed;
  requirements.constraints = hints.constraints;
  requirements.expected_output = hints.expected_output;
  return requirements;
}

}  // namespace baton::scheduling
