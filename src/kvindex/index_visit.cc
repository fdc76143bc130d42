// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/index_state.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace baton::kvindex {
namespace {

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

// What a slot calls its blocks, ordered so that a block comes after the one before it.
struct Listed {
  Index::Held held;
  BlockPlace place;
  std::size_t parent = kNobody;       // where in the list
  std::size_t first_child = kNobody;  // and so on
  std::size_t next = kNobody;
};

}  // namespace

void Index::visit(Slot slot, const std::function<void(const Held&)>& visitor) const {
  const auto number = static_cast<std::uint32_t>(slot);
  SlotState& state = state_->slots.state(number);
  std::vector<Listed> list;
  {
    const std::lock_guard hold(state.mutex);
    list.reserve(state.names.size());
    std::unordered_map<BlockPlace, std::size_t> by_place;  // one name of each block
    state.names.for_each([&](EngineHash name, BlockPlace place) {
      by_place.try_emplace(place, list.size());
      list.push_back({.held = {.engine = name}, .place = place});
    });
    // A shard is held for many names at once: to ask for it anew takes a turn of the others.
    std::unique_lock<FairLock> hold_shard;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Listed& block = list[i];
      Shard& shard = state_->shards[shard_index(block.place)];
      if (hold_shard.mutex() != &shard.lock() || i % kChunk == 0) {
        if (hold_shard.owns_lock()) hold_shard.unlock();
        hold_shard = std::unique_lock(shard.lock());
      }
      const RunNumber run = run_of(block.place);
      const std::uint32_t offset = offset_of(block.place);
      block.held.sequence = shard.sequence(run, offset);
      block.held.tiers = static_cast<std::uint8_t>(
          state.aliases.knows(block.place) ? state.aliases.tiers(block.held.engine, block.place)
                                           : shard.tiers(run, offset, number));
      BlockPlace before = block.place - 1;
      if (offset == 0) {
        block.held.first = shard.parent(run) == kNoPlace;
        if (block.held.first) continue;
        before = place_of(shard_index(block.place), 0, 0) | shard.parent(run);
      }
      const auto found = by_place.find(before);
      if (found == by_place.end()) continue;
      block.parent = found->second;
      block.held.parent = list[found->second].held.engine;
    }
  }

  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t parent = list[i].parent;
    if (parent == kNobody) {
      open.push_back(i);
    } else {
      list[i].next = list[parent].first_child;
      list[parent].first_child = i;
    }
  }
  // Along each chain before the next, so that chains stay together.
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    visitor(list[at].held);
    for (std::size_t child = list[at].first_child; child != kNobody; child = list[child].next) {
      open.push_back(child);
    }
  }
}

}  // namespace baton::kvindex
