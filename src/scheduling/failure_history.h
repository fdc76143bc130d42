// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "scheduling/worker_requirements.h"

#include <vector>

namespace baton::scheduling {

// Role. Records the workers that failed one request. A failed hand-off has two suspects: the decode
//   worker's error does not tell whether it lost the cache or the prefill worker never sent it.
// Confinement. One thread.
// Invariants. A worker that surely failed the request is not asked again for it. Two workers whose
//   hand-off failed are not paired again, unless stale data had paired them; each is avoided, and
//   may serve with another worker if no other can.
class FailureHistory {
 public:
  void prefill_failed(model::WorkerId worker) { prefills_.push_back(worker); }
  void decode_failed(model::WorkerId worker) { decodes_.push_back(worker); }
  // `misled`: stale data may have paired them, which excuses them once.
  void handoff_failed(model::WorkerId prefill, model::WorkerId decode, bool misled = false);

  bool suspects_decode(model::WorkerId worker) const;
  // Workers not to ask: surely failed, and suspected.
  const Excluded& prefills() const { return prefills_; }
  Excluded suspected_prefills() const;
  const Excluded& decodes() const { return decodes_; }
  Excluded suspected_decodes() const;
  Excluded decodes_beside(model::WorkerId prefill) const;

 private:
  struct Pair {
    model::WorkerId prefill;
    model::WorkerId decode;
    bool may_meet_again;
  };

  Excluded prefills_;
  Excluded decodes_;
  std::vector<Pair> pairs_;
};

}  // namespace baton::scheduling
