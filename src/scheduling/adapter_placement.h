// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"
#include "scheduling/worker_requirements.h"

#include <memory>
#include <span>
#include <string_view>

namespace baton::scheduling {

// Role. Decides which workers a request for an adapter may go to: those that have it loaded. If
//   none of them can serve and workers load adapters on demand, it is a single worker, the same one
//   as long as it can serve, so that the adapter is loaded once and not everywhere.
// Lifetime. One choice; keeps no reference to the requirements.
class AdapterPlacement {
 public:
  using Workers = std::span<const std::shared_ptr<fleet::Worker>>;

  // `able`: true for a worker that could serve the request if it were for the model itself.
  template <class Able>
  AdapterPlacement(const fleet::AdapterRequest& requirements, Workers workers, Able able)
      : name_(requirements.name) {
    const fleet::Worker* best = nullptr;
    for (const auto& worker : workers) {
      if (!able(*worker)) continue;
      loaded_ = loaded_ || has(*worker);
      if (requirements.on_demand && (best == nullptr || draws_more(*worker, *best)))
        best = worker.get();
    }
    if (!loaded_) loads_it_ = best;
  }

  bool takes(const fleet::Worker& worker) const {
    return loaded_ ? has(worker) : &worker == loads_it_;
  }

 private:
  bool has(const fleet::Worker& worker) const;
  // The winner of two depends on the adapter's name and on them, not on the other workers
  // (rendezvous hashing).
  bool draws_more(const fleet::Worker& one, const fleet::Worker& other) const;

  std::string_view name_;
  bool loaded_ = false;
  const fleet::Worker* loads_it_ = nullptr;
};

}  // namespace baton::scheduling
