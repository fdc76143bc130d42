// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "sim/options.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace baton::sim {

using BlockId = std::uint32_t;

// Role. The simulated KV memory: pages of `block_size` tokens with reference counts, reuse of full
//   prefix blocks by chained hash, and eviction of the least recently used block nobody holds.
// Confinement. One thread.
// Lifetime. Owned by the engine; block ids are valid while held.
// Invariants. A block is either held (references > 0), cached (in the eviction order) or free; the
//   three add up to `total()`. A held block is never evicted.
class BlockPool {
 public:
  struct Allocation {
    std::vector<BlockId> blocks;
    std::uint32_t cached_tokens = 0;
  };

  BlockPool(std::uint32_t blocks, std::uint32_t block_size);

  // Room for `prompt` and `output_tokens` more. The last prompt token is always computed, so at
  // most prompt.size() - 1 tokens come from the cache. Nothing changes when there is no room.
  std::optional<Allocation> allocate(std::span<const TokenId> prompt, std::uint32_t output_tokens);
  void release(std::span<const BlockId> blocks);

  std::span<const TokenId> tokens_of(BlockId block) const { return blocks_[block].tokens; }
  std::uint32_t blocks_for(std::size_t tokens) const;

  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  // Blocks nobody holds, cached ones included: they can be had at once.
  std::uint32_t available() const {
    return static_cast<std::uint32_t>(free_.size() + eviction_order_.size());
  }
  // Blocks that can serve as somebody's prefix, held or not.
  std::uint32_t cached() const { return static_cast<std::uint32_t>(by_hash_.size()); }

 private:
  struct Block {
    std::vector<TokenId> tokens;
    std::uint32_t references = 0;
    std::optional<std::uint64_t> hash;
    std::list<BlockId>::iterator position;  // in eviction_order_, while cached and not held
  };

  std::vector<std::uint64_t> hash_full_blocks(std::span<const TokenId> prompt) const;
  void hold(BlockId block);
  BlockId take_unused();
  void fill(BlockId block, std::span<const TokenId> tokens, std::optional<std::uint64_t> hash);

  std::uint32_t block_size_;
  std::vector<Block> blocks_;
  std::vector<BlockId> free_;
  std::list<BlockId> eviction_order_;  // front goes first
  std::unordered_map<std::uint64_t, BlockId> by_hash_;
};

}  // namespace baton::sim
