// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/wish.h"

namespace baton::fleet {

bool BusyLine::crossed_by(const Worker& worker, double prefill_tokens) const {
  if (tokens && prefill_tokens > static_cast<double>(*tokens)) return true;
  return share && prefill_tokens > *share * static_cast<double>(worker.max_batched_tokens());
}

Wish wish_for(model::Role role, const scheduling::Hints& hints) {
  Wish wish;
  wish.pin = role == model::Role::Prefill ? hints.prefill : hints.decode;
  wish.allowed = hints.allowed;
  wish.constraints = hints.constraints;
  wish.expected_output = hints.expected_output;
  return wish;
}

}  // namespace baton::fleet
