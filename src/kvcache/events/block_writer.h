// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/block_namespace.h"
#include "kvcache/events/event.h"
#include "kvcache/events/feed.h"
#include "kvcache/events/seed_memory.h"
#include "kvcache/index/index.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace baton::kvcache {

// Role. Writes an event's blocks into a slot of the index: cuts the tokens into blocks, hashes them
//   and counts the results.
// Confinement. One thread.
// Lifetime. The index and the tally outlive it.
// Invariants. All blocks it stores are of one shape.
class BlockWriter {
 public:
  // `block_size`: nothing: that of the first store.
  BlockWriter(Index& index, Slot slot, std::optional<std::uint32_t> block_size, FeedTally& tally);

  // Requires: it has written nothing yet, and nothing waits in the other. False if the other's
  // block size is not wanted here.
  bool adopt(const BlockWriter& other);
  void store(const Event& event, Tier tier);
  void copy(std::span<const EngineHash> blocks, Tier tier);
  // Takes effect with the next call of any other kind.
  void remove(std::span<const EngineHash> blocks, Tier tier);
  void flush();
  // The slot holds nothing any more.
  void clear();
  // The same, and the shape is to be learned again.
  void forget();

  std::optional<std::uint32_t> configured_size() const { return configured_size_; }
  // That a store had last, instead of the configured one; 0: none had.
  std::uint64_t refused_size() const { return refused_size_; }
  // Blocks of another size than the configured one came.
  void refuse_size(std::uint64_t size, std::uint64_t blocks);
  // The shape of the stores so far.
  std::optional<BlockShape> shape() const { return shape_; }
  // No block was hashed with a seed that its successors need.
  bool all_plain() const { return seeds_.size() == 0; }
  void count(Skipped reason, std::uint64_t how_many = 1);

 private:
  bool fits(const Event& event) const;
  std::optional<std::uint64_t> seed_for(const BlockNamespace& name_space,
                                        std::optional<EngineHash> parent) const;

  void remove_now(std::span<const EngineHash> blocks, Tier tier);

  Index& index_;
  Slot slot_;
  std::optional<std::uint32_t> configured_size_;
  FeedTally& tally_;
  std::uint64_t refused_size_ = 0;
  std::optional<BlockShape> shape_;
  SeedMemory seeds_;
  std::vector<EngineHash> removed_;  // not yet from the index
  Tier removed_from_ = Tier::Device;
};

}  // namespace baton::kvcache
