// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/failure_history.h"

#include <algorithm>

namespace baton::scheduling {

void FailureHistory::handoff_failed(model::WorkerId prefill, model::WorkerId decode, bool misled) {
  const bool again = std::ranges::any_of(pairs_, [prefill, decode](const Pair& pair) {
    return pair.prefill == prefill && pair.decode == decode;
  });
  pairs_.push_back({.prefill = prefill, .decode = decode, .may_meet_again = misled && !again});
}

bool FailureHistory::suspects_decode(model::WorkerId worker) const {
  return std::ranges::find(pairs_, worker, &Pair::decode) != pairs_.end();
}

Excluded FailureHistory::suspected_prefills() const {
  Excluded all = prefills_;
  for (const Pair& pair : pairs_) all.push_back(pair.prefill);
  return all;
}

Excluded FailureHistory::suspected_decodes() const {
  Excluded all = decodes_;
  for (const Pair& pair : pairs_) all.push_back(pair.decode);
  return all;
}

Excluded FailureHistory::decodes_beside(model::WorkerId prefill) const {
  Excluded all = decodes_;
  for (const Pair& pair : pairs_) {
    if (pair.prefill == prefill && !pair.may_meet_again) all.push_back(pair.decode);
  }
  return all;
}

}  // namespace baton::scheduling
