// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"
#include "scheduling/worker_requirements.h"

#include <memory>
#include <span>
#include <string_view>

namespace baton::scheduling {

// Role. Which workers a request for an adapter may go to: those that have it loaded. Where none of
//   them can serve and workers load it when asked, a single one, always the same as long as it can:
//   so that it is loaded once, and not once everywhere.
// Lifetime. Of one choice; keeps nothing of the wish alive.
class AdapterPlacement {
 public:
  using Workers = std::span<const std::shared_ptr<fleet::Worker>>;

  // `able`: whoever could have the request if it were for the model itself.
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
  // Which of two wins an adapter depends on its name and on them, not on who else is there
  // (rendezvous hashing).
  bool draws_more(const fleet::Worker& one, const fleet::Worker& other) const;

  std::string_view name_;
  bool loaded_ = false;
  const fleet::Worker* loads_it_ = nullptr;
};

}  // namespace baton::scheduling
