// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "routing/pace.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace baton::routing {

// Role. Learns how long it takes from the end of a prompt on one prefill worker until the first token
//   comes from the worker that decodes it: a part for each hand-off and a part for each token.
// Confinement. Any thread; a lock for a few sums, and readers take none.
// Lifetime. As long as the worker, or as any of those it is the common one of.
// Invariants. What differs from the common one by no more than chance does is the common one: equal
//   workers are equally far away.
class TransferPace {
 public:
  // `common`: of all workers of its kind; null: this is such a one, or it has no siblings.
  explicit TransferPace(std::shared_ptr<TransferPace> common = nullptr);

  void took(std::uint64_t tokens, double seconds);
  // What a prompt of so many tokens will take; 0 where nothing is known.
  double seconds(double tokens) const;

 private:
  const std::shared_ptr<TransferPace> common_;
  std::atomic<bool> measured_{false};
  PublishedSpeed line_;

  std::mutex mutex_;
  SpeedFit fit_;  // under mutex_
};

}  // namespace baton::routing
