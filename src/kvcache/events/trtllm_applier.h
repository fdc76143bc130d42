// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/applier.h"
#include "kvcache/events/block_writer.h"
#include "kvcache/events/trtllm_events.h"

#include <boost/unordered/unordered_flat_set.hpp>

#include <cstdint>
#include <optional>

namespace baton::kvcache {

// Role. Applies TensorRT-LLM's events, which differ from the others' in all but their purpose:
//   numbered one by one, moves instead of copies, one cache per window, incomplete blocks.
// Confinement. One thread.
// Lifetime. The writer outlives it.
// Invariants. Only blocks of the largest window seen are held. If an event was lost, everything
//   known before it is dropped: there is no replay.
class TrtllmApplier {
 public:
  explicit TrtllmApplier(BlockWriter& writer) : writer_(writer) {}

  // Requires: an entry of the writer's rank.
  void apply(TrtllmEntry& entry, Polled& polled);
  void forget();
  // All but the blocks.
  void adopt(const TrtllmApplier& other);

 private:
  void follow(std::uint64_t id, Polled& polled);
  void heed_creation(const TrtllmEntry& entry, Polled& polled);
  bool of_main_window(const TrtllmEntry& entry);
  void drop_blocks();
  void store(TrtllmEntry& entry);
  bool fit_size(const TrtllmEntry& entry);
  void store_levels(const TrtllmEntry& entry);
  void remove(const TrtllmEntry& entry);
  void move(const TrtllmEntry& entry);

  BlockWriter& writer_;
  std::optional<std::uint64_t> last_id_;
  std::uint64_t window_ = 0;
  bool in_use_ = false;                // the cache, since it was made
  std::optional<std::uint32_t> size_;  // tokens in a block, where not configured
  boost::unordered_flat_set<EngineHash> partial_;
};

}  // namespace baton::kvcache
