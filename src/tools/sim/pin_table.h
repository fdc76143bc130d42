// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/block_pool.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::sim {

using TimePoint = std::chrono::steady_clock::time_point;

// Role. The blocks a prefill worker keeps for a decode worker, by hand-off key, each with a lease.
// Confinement. One thread; time comes in as an argument.
// Lifetime. Owned by the engine. Block references stay with the table until it gives them back.
// Invariants. A key is fetched at most once, unless the transfer was given up. Every pin ends in
//   exactly one of release and expiry.
class PinTable {
 public:
  struct Pin {
    std::vector<BlockId> blocks;
    std::uint32_t tokens = 0;  // how many prompt tokens the blocks carry
    TimePoint expires;
    bool fetched = false;        // or being fetched: not for another one
    bool ever_fetched = false;   // also where that was given up
    std::uint64_t transfer = 0;  // the one under way, 0 when there is none
  };

  void pin(std::string key, std::vector<BlockId> blocks, std::uint32_t tokens, TimePoint expires);

  // The pin, now marked as fetched, with a new transfer under way; its lease starts anew so that a
  // peer that dies half way does not keep the blocks for ever.
  Result<const Pin*> fetch(std::string_view key, TimePoint now, std::chrono::nanoseconds lease);

  // The peer of `transfer` is gone before it released the blocks. `again`: another one may fetch.
  void give_up(std::string_view key, std::uint64_t transfer, bool again);

  // The transfer under way, 0 when there is none.
  std::uint64_t transfer_of(std::string_view key) const;

  std::uint64_t transfers_under_way() const;

  // The blocks of `key`, which is forgotten; empty when there is no such pin.
  std::vector<BlockId> release(std::string_view key);

  struct Expired {
    std::string key;
    std::vector<BlockId> blocks;
    bool fetched = false;  // by a peer that never released them
  };
  std::vector<Expired> expire(TimePoint now);

  bool contains(std::string_view key) const { return pins_.contains(std::string(key)); }
  std::uint64_t pinned_blocks() const { return pinned_blocks_; }
  bool empty() const { return pins_.empty(); }

 private:
  std::unordered_map<std::string, Pin> pins_;
  std::uint64_t pinned_blocks_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace baton::sim
