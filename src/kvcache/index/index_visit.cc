// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/index_state.h"
#include "libs/locks/mutex.h"

#include <algorithm>
#include <vector>

namespace baton::kvcache {

Index::Listing Index::list(Slot slot) const {
  const auto number = static_cast<std::uint32_t>(slot);
  SlotState& state = state_->slots.state(number);
  Listing listing;
  auto& blocks = listing.blocks_;
  const locks::Lock hold(state.mutex);
  blocks.reserve(state.names.size());
  state.names.for_each([&](EngineHash name, BlockPlace place) {
    blocks.push_back({.held = {.engine = name}, .place = place});
  });
  // Blocks of a run are together in memory.
  std::ranges::sort(blocks, {}, &Listing::Block::place);
  // A shard is held for many names at once: asking again would wait for the others' turns.
  for (std::size_t i = 0; i < blocks.size();) {
    const std::size_t at = shard_index(blocks[i].place);
    Shard& shard = state_->shards[at];
    const locks::Lock hold_shard(shard.lock());
    do {
      Listing::Block& block = blocks[i++];
      const RunNumber run = run_of(block.place);
      const std::uint32_t offset = offset_of(block.place);
      block.held.sequence = shard.sequence(run, offset);
      block.held.tiers = static_cast<std::uint8_t>(
          state.aliases.knows(block.place) ? state.aliases.tiers(block.held.engine, block.place)
                                           : shard.tiers(run, offset, number));
      block.before = block.place - 1;
      if (offset > 0) continue;
      block.held.first = shard.parent(run) == kNoPlace;
      block.before = block.held.first ? kNoPlace : place_of(at, 0, 0) | shard.parent(run);
    } while (i < blocks.size() && i % kChunk != 0 && shard_index(blocks[i].place) == at);
  }
  return listing;
}

void Index::Listing::visit(const std::function<void(const Held&)>& visitor) const {
  constexpr auto kNone = static_cast<std::uint32_t>(-1);
  struct Links {
    std::uint32_t first_child = kNone;  // position in the list
    std::uint32_t next = kNone;
  };
  std::vector<Links> links(blocks_.size());
  std::vector<std::uint32_t> parents(blocks_.size(), kNone);
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const auto before = std::ranges::lower_bound(blocks_, blocks_[i].before, {}, &Block::place);
    if (before == blocks_.end() || before->place != blocks_[i].before) {
      open.push_back(i);
      continue;
    }
    parents[i] = static_cast<std::uint32_t>(before - blocks_.begin());
    links[i].next = links[parents[i]].first_child;
    links[parents[i]].first_child = i;
  }
  // Along each chain before the next, so that chains stay together.
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    Held held = blocks_[at].held;
    if (parents[at] != kNone) held.parent = blocks_[parents[at]].held.engine;
    visitor(held);
    for (std::uint32_t child = links[at].first_child; child != kNone; child = links[child].next) {
      open.push_back(child);
    }
  }
}

void Index::visit(Slot slot, const std::function<void(const Held&)>& visitor) const {
  list(slot).visit(visitor);
}

}  // namespace baton::kvcache
