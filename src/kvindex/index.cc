// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/index.h"

#include "kvindex/index_state.h"

#include <algorithm>
#include <mutex>

namespace baton::kvindex {
namespace {

constexpr std::uint32_t kAllTiers = (1U << kTiers) - 1;

std::uint32_t bit_of(Tier tier) { return 1U << static_cast<unsigned>(tier); }

void finish(SlotState& slot) {
  slot.names.shrink();
  slot.tally.bytes.store(slot.names.bytes() + slot.aliases.bytes(), std::memory_order_relaxed);
}

}  // namespace

Index::State::State(Limits limits) : count{.most = limits.blocks} {
  for (std::size_t i = 0; i < kShards; ++i) shards.emplace_back(arena, count);
}

Index::Index(Limits limits) : state_(std::make_unique<State>(limits)) {}
Index::~Index() = default;

Slot Index::join(Holder holder) { return Slot{state_->slots.open(holder)}; }

void Index::leave(Slot slot) {
  clear(slot);
  state_->slots.close(static_cast<std::uint32_t>(slot));
}

bool Index::State::bind(Writer writer, Shard& shard, BlockPlace place, NodeNumber above,
                        const Link& link, Applied& applied, Moved& moved) {
  EngineMap& names = writer.slot.names;
  Aliases& aliases = writer.slot.aliases;
  EngineMap::Entry* entry = names.find(link.engine);
  const BlockPlace bound = entry == nullptr ? kNoPlace : entry->place;
  const auto before =
      shard.hold(node_of(place), above, writer.number, link.tiers, writer.slot.tally);
  if (!before) return false;
  if (bound == place) {
    std::uint32_t had = tiers_of(*before);
    if (aliases.knows(place)) {
      had = aliases.tiers(link.engine, place);
      aliases.extend(link.engine, place, link.tiers);
    }
    ++((had & link.tiers) == link.tiers ? applied.known : applied.done);
    return true;
  }
  if (bound != kNoPlace) {
    moved = {.place = bound, .tiers = kAllTiers};
    if (aliases.knows(bound)) moved.tiers = aliases.take(link.engine, bound, kAllTiers).block_lost;
  }
  if (*before != 0) aliases.add(link.engine, place, link.tiers, tiers_of(*before));
  if (entry == nullptr) {
    names.add(link.engine, place);
  } else {
    entry->place = place;
  }
  ++applied.done;
  return true;
}

void Index::State::release(Writer writer, BlockPlace place, std::uint32_t tiers) {
  if (tiers == 0) return;
  Shard& shard = shards[shard_index(place)];
  const std::lock_guard hold(shard.lock());
  shard.release(node_of(place), writer.number, tiers, writer.slot.tally);
}

Applied Index::State::extend(Writer writer, BlockPlace parent, std::span<const Link> links) {
  Applied applied;
  const std::size_t number =
      parent == kNoPlace ? shard_of(links.front().sequence) : shard_index(parent);
  Shard& shard = shards[number];
  NodeNumber above = parent == kNoPlace ? kNoNode : node_of(parent);
  while (!links.empty()) {
    const auto chunk = links.first(std::min(links.size(), kChunk));
    writer.slot.names.reserve(chunk.size());
    for (const Link& link : chunk) writer.slot.names.prefetch(link.engine);
    Moved moved;
    std::size_t at = 0;
    {
      const std::lock_guard hold(shard.lock());
      for (const Link& link : chunk) shard.prefetch_line(link.sequence);
      for (const Link& link : chunk) shard.prefetch_found(link.sequence);
      for (; at < chunk.size() && moved.place == kNoPlace; ++at) {
        NodeNumber node = shard.find(chunk[at].sequence);
        if (node == kNoNode) node = shard.make(chunk[at].sequence, above);
        const bool room = node != kNoNode && bind(writer, shard, place_of(number, node), above,
                                                  chunk[at], applied, moved);
        if (!room) {
          if (node != kNoNode) shard.drop_if_bare(node);
          applied.no_room = static_cast<std::uint32_t>(links.size() - at);
          links = {};
          break;
        }
        above = node;
      }
      shard.publish_bytes();
    }
    if (moved.place != kNoPlace) release(writer, moved.place, moved.tiers);
    if (!links.empty()) links = links.subspan(at);
  }
  return applied;
}

Applied Index::store(Slot slot, std::optional<EngineHash> parent, std::span<const NewBlock> blocks,
                     Tier tier) {
  if (blocks.empty()) return {};
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const std::lock_guard hold(writer.slot.mutex);
  BlockPlace place = kNoPlace;
  std::optional<SequenceHash> before;
  if (parent) {
    const EngineMap::Entry* entry = writer.slot.names.find(*parent);
    if (entry == nullptr) return {.unknown_parent = static_cast<std::uint32_t>(blocks.size())};
    place = entry->place;
    Shard& shard = state_->shards[shard_index(place)];
    const std::lock_guard hold_shard(shard.lock());
    before = shard.key(node_of(place));
  }
  static thread_local std::vector<State::Link> links;
  links.clear();
  for (const NewBlock& block : blocks) {
    before = before ? next_sequence(*before, block.block) : first_sequence(block.block);
    links.push_back({.engine = block.engine, .sequence = *before, .tiers = bit_of(tier)});
  }
  const Applied applied = state_->extend(writer, place, links);
  finish(writer.slot);
  return applied;
}

Applied Index::restore(Slot slot, std::optional<EngineHash> parent,
                       std::span<const Restored> blocks) {
  if (blocks.empty()) return {};
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const std::lock_guard hold(writer.slot.mutex);
  BlockPlace place = kNoPlace;
  if (parent) {
    const EngineMap::Entry* entry = writer.slot.names.find(*parent);
    if (entry == nullptr) return {.unknown_parent = static_cast<std::uint32_t>(blocks.size())};
    place = entry->place;
  }
  std::vector<State::Link> links;
  links.reserve(blocks.size());
  for (const Restored& block : blocks) {
    const std::uint32_t tiers = block.tiers & kAllTiers;
    if (tiers == 0) break;  // nobody has it, so nothing can follow
    links.push_back({.engine = block.engine, .sequence = block.sequence, .tiers = tiers});
  }
  Applied applied;
  if (!links.empty()) applied = state_->extend(writer, place, links);
  applied.unknown_parent += static_cast<std::uint32_t>(blocks.size() - links.size());
  finish(writer.slot);
  return applied;
}

template <class Action>
std::uint32_t Index::State::for_known(Writer writer, std::span<const EngineHash> names,
                                      Action action) {
  std::uint32_t unknown = 0;
  const EngineMap& map = writer.slot.names;
  std::array<EngineMap::Entry*, kChunk> entries{};
  for (; !names.empty(); names = names.subspan(std::min(names.size(), kChunk))) {
    const auto chunk = names.first(std::min(names.size(), kChunk));
    // An action may move others' entries, or remove one that is named twice.
    const auto entry_at = [&](std::size_t i) {
      EngineMap::Entry*& entry = entries[i];
      if (entry != nullptr && (entry->place == kNoPlace || entry->name() != chunk[i])) {
        entry = map.find(chunk[i]);
      }
      return entry;
    };
    const auto shard_at = [&](std::size_t i) {
      const EngineMap::Entry* entry = entry_at(i);
      return entry == nullptr ? kShards : shard_index(entry->place);
    };
    for (const EngineHash name : chunk) map.prefetch(name);
    for (std::size_t i = 0; i < chunk.size(); ++i) entries[i] = map.find(chunk[i]);
    for (std::size_t i = 0; i < chunk.size();) {
      const std::size_t number = shard_at(i);
      std::size_t end = i + 1;
      while (end < chunk.size() && shard_at(end) == number) ++end;
      if (number == kShards) {
        unknown += static_cast<std::uint32_t>(end - i);
        i = end;
        continue;
      }
      Shard& shard = shards[number];
      const std::lock_guard hold(shard.lock());
      for (std::size_t k = i; k < end; ++k) shard.prefetch_node(node_of(entries[k]->place));
      for (std::size_t k = i; k < end; ++k) shard.prefetch_around(node_of(entries[k]->place));
      for (; i < end; ++i) {
        EngineMap::Entry* entry = entry_at(i);
        if (entry == nullptr) {
          ++unknown;
        } else {
          action(shard, *entry);
        }
      }
      shard.publish_bytes();
    }
  }
  return unknown;
}

Applied Index::copy(Slot slot, std::span<const EngineHash> blocks, Tier tier) {
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const std::lock_guard hold(writer.slot.mutex);
  Applied applied;
  applied.unknown_parent =
      state_->for_known(writer, blocks, [&](Shard& shard, EngineMap::Entry& entry) {
        State::Moved moved;
        State::bind(writer, shard, entry.place, kNoNode,
                    {.engine = entry.name(), .sequence = 0, .tiers = bit_of(tier)}, applied, moved);
      });
  finish(writer.slot);
  return applied;
}

Applied Index::remove(Slot slot, std::span<const EngineHash> blocks, Tier tier) {
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const std::lock_guard hold(writer.slot.mutex);
  const std::uint32_t bit = bit_of(tier);
  Applied applied;
  EngineMap& names = writer.slot.names;
  Aliases& aliases = writer.slot.aliases;
  const std::uint32_t unknown =
      state_->for_known(writer, blocks, [&](Shard& shard, EngineMap::Entry& entry) {
        const BlockPlace place = entry.place;
        const EngineHash name = entry.name();
        const bool shared = aliases.knows(place);
        const std::uint32_t had = shared ? aliases.tiers(name, place)
                                         : tiers_of(shard.member(node_of(place), writer.number));
        if ((had & bit) == 0) {
          ++applied.known;
          return;
        }
        if (had == bit) names.erase(&entry);
        const std::uint32_t lost = shared ? aliases.take(name, place, bit).block_lost : bit;
        if (lost != 0) shard.release(node_of(place), writer.number, lost, writer.slot.tally);
        ++applied.done;
      });
  applied.known += unknown;  // they are not there, as was asked for
  finish(writer.slot);
  return applied;
}

void Index::clear(Slot slot) {
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const std::lock_guard hold(writer.slot.mutex);
  std::vector<BlockPlace> places;
  places.reserve(writer.slot.names.size());
  writer.slot.names.for_each([&](EngineHash, BlockPlace place) { places.push_back(place); });
  std::ranges::sort(places);
  const auto twice = std::ranges::unique(places);
  places.erase(twice.begin(), twice.end());
  for (std::size_t i = 0; i < places.size();) {
    const std::size_t number = shard_index(places[i]);
    Shard& shard = state_->shards[number];
    const std::lock_guard hold_shard(shard.lock());
    const std::size_t end = std::min(places.size(), i + kChunk);
    for (; i < end && shard_index(places[i]) == number; ++i) {
      shard.release(node_of(places[i]), writer.number, kAllTiers, writer.slot.tally);
    }
    shard.publish_bytes();
  }
  writer.slot.names.clear();
  writer.slot.aliases.clear();
  finish(writer.slot);
}

void Index::match(std::span<const SequenceHash> prompt, std::vector<Match>& matches) const {
  matches.clear();
  if (prompt.empty()) return;
  const Shard& shard = state_->shards[shard_of(prompt.front())];
  const std::lock_guard hold(shard.lock());
  shard.match(prompt, state_->slots, matches);
}

Index::Holding Index::holding(Slot slot) const {
  const Tally& tally = state_->slots.state(static_cast<std::uint32_t>(slot)).tally;
  Holding holding;
  for (std::size_t tier = 0; tier < kTiers; ++tier) {
    holding.blocks[tier] = tally.blocks[tier].load(std::memory_order_relaxed);
  }
  holding.bytes = tally.bytes.load(std::memory_order_relaxed);
  return holding;
}

Index::Size Index::size() const {
  Size size{.blocks = 0,
            .memberships = state_->slots.memberships(),
            .bytes = sizeof(State) + state_->arena.bytes() + state_->slots.bytes()};
  for (const Shard& shard : state_->shards) {
    size.blocks += shard.held();
    size.bytes += shard.bytes();
  }
  return size;
}

}  // namespace baton::kvindex
