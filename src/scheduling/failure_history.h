// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "scheduling/worker_requirements.h"

#include <vector>

namespace baton::scheduling {

// Role. Who has failed one request. A hand-off fails by one of two, and its decode worker's error
//   does not tell by which: whether it lost the cache, or the prefill worker never sent it.
// Confinement. One thread.
// Invariants. Whoever surely failed a request is not asked again for it. Two whose hand-off failed
//   do not meet again, unless what brought them together was out of date; each is rather passed
//   over, and may serve with another where nobody else can.
class FailureHistory {
 public:
  void prefill_failed(model::WorkerId worker) { prefills_.push_back(worker); }
  void decode_failed(model::WorkerId worker) { decodes_.push_back(worker); }
  // `misled`: what brought them together may have been out of date, which excuses them once.
  void handoff_failed(model::WorkerId prefill, model::WorkerId decode, bool misled = false);

  bool suspects_decode(model::WorkerId worker) const;
  // Whom not to ask: surely not, and rather not.
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
