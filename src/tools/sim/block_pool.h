// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/block_change.h"
#include "tools/sim/engine_hash.h"
#include "tools/sim/host_tier.h"
#include "tools/sim/options.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace baton::sim {

using BlockId = std::uint32_t;

struct PoolSettings {
  BlockHasher hasher = BlockHasher();
  bool caching = true;  // off: nothing is ever found
  bool recording = false;
  std::uint32_t host_blocks = 0;
};

// Role. The simulated KV memory: pages of `block_size` tokens with reference counts, reuse of full
//   prefix blocks by chained hash, eviction of the least recently used block that is not held (to
//   the host tier, where there is one), and a record of what can be found from when to when.
// Confinement. One thread.
// Lifetime. Owned by the engine; block ids are valid while held.
// Invariants. A block is either held (references > 0), cached (in the eviction order) or free; the
//   three add up to `total()`. A held block is never evicted. A block can be found only while the
//   one before it can.
class BlockPool {
 public:
  struct Allocation {
    std::vector<BlockId> blocks = {};
    std::uint32_t cached_tokens = 0;
    std::size_t tokens = 0;                     // that the blocks carry
    std::optional<BlockHash> last_full = {};    // the hash of the last full block
    std::vector<BlockHash> prompt_hashes = {};  // of the prompt's full blocks
    CacheScope scope = {};
  };

  BlockPool(std::uint32_t blocks, std::uint32_t block_size, PoolSettings settings = {});

  // Room for `prompt` and `output_tokens` more. The last prompt token is always computed, so at
  // most prompt.size() - 1 tokens come from the cache. The blocks carry the part of the
  // prompt that the device has cached; the rest is appended as its KV comes to be there, first of all what
  // `cached_tokens` counts beyond that, which comes from the host. Nothing changes when there is no
  // room.
  std::optional<Allocation> reserve(std::span<const TokenId> prompt, std::uint32_t output_tokens,
                                    const CacheScope& scope = {});
  // The same for a prompt whose KV is all there at once.
  std::optional<Allocation> allocate(std::span<const TokenId> prompt, std::uint32_t output_tokens,
                                     const CacheScope& scope = {});
  // The KV of these tokens is there, too, as is room for them. Blocks that become full can be found
  // from now on.
  void append(Allocation& allocation, std::span<const TokenId> tokens);
  // Records a last block that is not full; it never serves as a prefix.
  void cache_partial(Allocation& allocation);
  void release(std::span<const BlockId> blocks);

  // Nothing can be found any more. Held blocks stay held.
  void clear();
  // Removes a reported block without an event.
  void forget(const BlockHash& hash, const CacheScope& scope);

  // Changes since the last call, oldest first; only when recording.
  std::vector<BlockChange> take_changes();
  // All that can be found.
  std::vector<CachedBlock> table() const;

  std::span<const TokenId> tokens_of(BlockId block) const { return blocks_[block].tokens; }
  std::uint32_t blocks_for(std::size_t tokens) const;
  const BlockHasher& hasher() const { return hasher_; }

  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  // Blocks that are not held, cached ones included: they can be allocated at once.
  std::uint32_t available() const {
    return static_cast<std::uint32_t>(free_.size() + eviction_order_.size());
  }
  // Blocks that can serve as a prefix, held or not.
  std::uint32_t cached() const { return static_cast<std::uint32_t>(by_key_.size()); }

 private:
  struct Name {
    BlockHash hash;
    std::optional<BlockHash> parent;
    CacheScope scope;
  };
  struct Block {
    std::vector<TokenId> tokens;
    std::uint32_t references = 0;
    std::optional<Name> name;               // while it can be found
    std::list<BlockId>::iterator position;  // in eviction_order_, while cached and not held
  };

  const std::vector<BlockHash>& hash_full_blocks(std::span<const TokenId> prompt,
                                                 const CacheScope& scope);
  std::uint64_t key_of(const Name& name) const { return hasher_.key(name.hash, name.scope); }
  CachedBlock cached_block(const Block& block) const;
  void hold(BlockId block);
  BlockId take_unused();
  void evict(BlockId block);
  void cache(Allocation& allocation, std::size_t index, const BlockHash& hash);
  void tell_stored(const CachedBlock& block);
  void tell_removed(const BlockHash& hash, Tier tier);

  std::uint32_t block_size_;
  BlockHasher hasher_;
  bool caching_;
  bool recording_;
  std::vector<Block> blocks_;
  std::vector<BlockId> free_;
  std::list<BlockId> eviction_order_;  // front goes first
  std::unordered_map<std::uint64_t, BlockId> by_key_;
  HostTier host_;
  std::vector<BlockChange> changes_;
  bool run_open_ = false;  // the last change is a store that the next block may join

  // The head of a queue asks again each step until there is room.
  struct Hashed {
    std::vector<TokenId> prompt;
    CacheScope scope;
    std::vector<BlockHash> hashes;
  } hashed_;
};

}  // namespace baton::sim
