// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/index.h"
#include "kvindex/shard.h"
#include "kvindex/slots.h"

#include <deque>
#include <span>

namespace baton::kvindex {

inline constexpr unsigned kShardBits = 32 - Slab::kNumberBits;
inline constexpr std::size_t kShards = std::size_t{1} << kShardBits;
// The most blocks for which a shard is held at a time: readers wait so long.
inline constexpr std::size_t kChunk = 64;

inline std::size_t shard_of(SequenceHash first) {
  return mix(mix(first) >> 32) >> (64 - kShardBits);
}
inline std::size_t shard_index(BlockPlace place) { return place >> Slab::kNumberBits; }
inline NodeNumber node_of(BlockPlace place) { return place & Slab::kNothing; }
inline BlockPlace place_of(std::size_t shard, NodeNumber node) {
  return static_cast<BlockPlace>(shard << Slab::kNumberBits) | node;
}

struct Index::State {
  explicit State(Limits limits);

  // A block with all that is to be known of it.
  struct Link {
    EngineHash engine;
    SequenceHash sequence;
    std::uint32_t tiers;
  };
  // One slot, locked, with its parts at hand.
  struct Writer {
    std::uint32_t number;
    SlotState& slot;
  };
  // A name that has come to mean another block: what to take from the old one.
  struct Moved {
    BlockPlace place = kNoPlace;
    std::uint32_t tiers = 0;
  };

  // Links blocks into a chain after `parent` (kNoPlace: the first begins a prompt).
  Applied extend(Writer writer, BlockPlace parent, std::span<const Link> links);
  // Of a link that the shard has as `node`; false: no room.
  static bool bind(Writer writer, Shard& shard, BlockPlace place, NodeNumber above,
                   const Link& link, Applied& applied, Moved& moved);
  void release(Writer writer, BlockPlace place, std::uint32_t tiers);
  // Calls `action(shard, entry)` for the names that are known, a shard at a time, with its
  // lock held; returns how many are not known.
  template <class Action>
  std::uint32_t for_known(Writer writer, std::span<const EngineHash> names, Action action);

  BlockCount count;
  PageArena arena;
  std::deque<Shard> shards;
  Slots slots;
};

}  // namespace baton::kvindex
