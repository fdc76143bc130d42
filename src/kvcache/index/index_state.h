// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"
#include "kvcache/index/shard.h"
#include "kvcache/index/slots.h"

#include <deque>
#include <span>
#include <vector>

namespace baton::kvcache {

// The most blocks for which a shard is held at a time: readers wait so long.
inline constexpr std::size_t kChunk = kMostInRun;

struct Index::State {
  explicit State(Limits limits);

  // One slot, locked, with its parts at hand.
  struct Writer {
    std::uint32_t number;
    SlotState& slot;
  };
  // A name that now means another block: the tiers to remove from the old one.
  struct Moved {
    BlockPlace place = kNoPlace;
    std::uint32_t tiers = 0;
  };

  // Links blocks into a chain after `above` (kNoPlace: the first begins a prompt), and moves
  // `above` to the last of them. Takes room for their names; unused room goes back.
  Applied extend(const Writer& writer, BlockPlace& above, std::span<const Link> links,
                 std::uint32_t tiers) REQUIRES(writer.slot.mutex);
  // Makes the slot hold a part of the links, and returns how many. They are the first of them.
  // Requires: room for the names of all, or of the first.
  static std::uint32_t bind(const Writer& writer, Shard& shard, BlockPlace first,
                            std::uint32_t count, std::span<const Link> links, std::uint32_t tiers,
                            Applied& applied, std::vector<Moved>& moved)
      REQUIRES(writer.slot.mutex, shard.lock());
  // For a block that the slot has by another name, or by this one.
  static void bind_known(const Writer& writer, Shard& shard, BlockPlace place, EngineHash name,
                         std::uint32_t tiers, Applied& applied, std::vector<Moved>& moved)
      REQUIRES(writer.slot.mutex, shard.lock());
  // Gives the name to another block than it meant. The caller releases the old one.
  static void give_name(const Writer& writer, EngineHash name, BlockPlace place,
                        std::vector<Moved>& moved) REQUIRES(writer.slot.mutex);
  void release(const Writer& writer, std::span<const Moved> moved) REQUIRES(writer.slot.mutex);
  // The same as extend(), with room for so many names of the slot.
  Applied chain(const Writer& writer, BlockPlace& above, std::span<const Link> links,
                std::uint32_t tiers, std::size_t most_names) REQUIRES(writer.slot.mutex);
  // Calls `action.apply(writer, shard, name, entry)` for the names that are known, a shard at a
  // time, with its lock held; returns how many are not known.
  template <class Action>
  std::uint32_t for_known(const Writer& writer, std::span<const EngineHash> names, Action& action)
      REQUIRES(writer.slot.mutex);

  Capped blocks;     // held, or leading to a held one
  Capped all_names;  // of all slots
  PageArena arena;
  std::deque<Shard> shards;
  PageArena name_arena;
  Slots slots{name_arena};
};

}  // namespace baton::kvcache
