// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/host_tier.h"

#include <utility>

namespace baton::sim {

void HostTier::touch(std::uint64_t key) {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) order_.splice(order_.end(), order_, found->second);
}

HostTier::Outcome HostTier::put(std::uint64_t key, CachedBlock block) {
  Outcome outcome;
  if (capacity_ == 0) return outcome;
  if (contains(key)) {
    touch(key);
    return outcome;
  }
  if (order_.size() == capacity_) {
    outcome.evicted = std::move(order_.front().second);
    by_key_.erase(order_.front().first);
    order_.pop_front();
  }
  block.tier = Tier::Host;
  by_key_.emplace(key, order_.emplace(order_.end(), key, std::move(block)));
  outcome.stored = true;
  return outcome;
}

void HostTier::clear() {
  order_.clear();
  by_key_.clear();
}

}  // namespace baton::sim
