// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/block_change.h"

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

namespace baton::sim {

// Role. Copies of blocks that the device had no room for; the least recently used goes first.
// Confinement. One thread.
// Lifetime. Owned by the pool.
// Invariants. At most `capacity` blocks; none with capacity 0.
class HostTier {
 public:
  explicit HostTier(std::uint32_t capacity) : capacity_(capacity) {}

  bool contains(std::uint64_t key) const { return by_key_.contains(key); }
  void touch(std::uint64_t key);

  struct Outcome {
    bool stored = false;
    std::optional<CachedBlock> evicted = {};
  };
  Outcome put(std::uint64_t key, CachedBlock block);
  void clear();

  std::uint32_t capacity() const { return capacity_; }
  const std::list<std::pair<std::uint64_t, CachedBlock>>& blocks() const { return order_; }

 private:
  using Order = std::list<std::pair<std::uint64_t, CachedBlock>>;

  std::uint32_t capacity_;
  Order order_;  // front goes first
  std::unordered_map<std::uint64_t, Order::iterator> by_key_;
};

}  // namespace baton::sim
