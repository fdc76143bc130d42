// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/blame.h"

#include <algorithm>

namespace baton::handoff {

void Blame::handoff_failed(model::WorkerId prefill, model::WorkerId decode, bool misled) {
  const bool again = std::ranges::any_of(pairs_, [prefill, decode](const Pair& pair) {
    return pair.prefill == prefill && pair.decode == decode;
  });
  pairs_.push_back({.prefill = prefill, .decode = decode, .may_meet_again = misled && !again});
}

bool Blame::suspects_decode(model::WorkerId worker) const {
  return std::ranges::find(pairs_, worker, &Pair::decode) != pairs_.end();
}

fleet::Excluded Blame::suspected_prefills() const {
  fleet::Excluded all = prefills_;
  for (const Pair& pair : pairs_) all.push_back(pair.prefill);
  return all;
}

fleet::Excluded Blame::suspected_decodes() const {
  fleet::Excluded all = decodes_;
  for (const Pair& pair : pairs_) all.push_back(pair.decode);
  return all;
}

fleet::Excluded Blame::decodes_beside(model::WorkerId prefill) const {
  fleet::Excluded all = decodes_;
  for (const Pair& pair : pairs_) {
    if (pair.prefill == prefill && !pair.may_meet_again) all.push_back(pair.decode);
  }
  return all;
}

}  // namespace baton::handoff
