// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/index.h"

#include "kvcache/index/index_state.h"
#include "libs/locks/mutex.h"

#include <algorithm>

namespace baton::kvcache {
namespace {

constexpr std::uint32_t kAllTiers = (1U << kTiers) - 1;

std::uint32_t bit_of(Tier tier) { return 1U << static_cast<unsigned>(tier); }

void finish(SlotState& slot) REQUIRES(slot.mutex) {
  slot.names.shrink();
  slot.tally.bytes.store(slot.names.bytes() + slot.aliases.bytes(), std::memory_order_relaxed);
}

}  // namespace

Index::State::State(Limits limits)
    : blocks{.most = limits.blocks}, all_names{.most = limits.memberships} {
  for (std::size_t i = 0; i < kShards; ++i) shards.emplace_back(arena, blocks);
}

Index::Index(Limits limits) : state_(std::make_unique<State>(limits)) {}
Index::~Index() = default;

Slot Index::join(Holder holder) { return Slot{state_->slots.open(holder)}; }

void Index::leave(Slot slot) {
  clear(slot);
  state_->slots.close(static_cast<std::uint32_t>(slot));
}

void Index::State::give_name(const Writer& writer, EngineHash name, BlockPlace place,
                             std::vector<Moved>& moved) {
  const EngineMap::Entry entry = writer.slot.names.put(name, place);
  if (!entry) return;
  Aliases& aliases = writer.slot.aliases;
  const BlockPlace old = entry.place();
  const std::uint32_t lost =
      aliases.knows(old) ? aliases.take(name, old, kAllTiers).block_lost : kAllTiers;
  if (lost != 0) moved.push_back({.place = old, .tiers = lost});
  entry.set_place(place);
}

void Index::State::bind_known(const Writer& writer, Shard& shard, BlockPlace place, EngineHash name,
                              std::uint32_t tiers, Applied& applied, std::vector<Moved>& moved) {
  Aliases& aliases = writer.slot.aliases;
  const EngineMap::Entry entry = writer.slot.names.find(name);
  const std::uint32_t before =
      shard.hold(run_of(place), offset_of(place), writer.number, tiers, writer.slot.tally);
  if (entry && entry.place() == place) {
    std::uint32_t had = before;
    if (aliases.knows(place)) {
      had = aliases.tiers(name, place);
      aliases.extend(name, place, tiers);
    }
    ++((had & tiers) == tiers ? applied.known : applied.done);
    return;
  }
  give_name(writer, name, place, moved);
  aliases.add(name, place, tiers, before);
  ++applied.done;
}

std::uint32_t Index::State::bind(const Writer& writer, Shard& shard, BlockPlace first,
                                 std::uint32_t count, std::span<const Link> links,
                                 std::uint32_t tiers, Applied& applied, std::vector<Moved>& moved) {
  Shard::Part part{.run = run_of(first), .begin = offset_of(first), .count = count};
  part.count = shard.free_from(part, writer.number);
  if (part.count == 0) {
    bind_known(writer, shard, first, links.front().engine, tiers, applied, moved);
    return 1;
  }
  shard.hold_free(part, writer.number, tiers, writer.slot.tally);
  for (std::uint32_t i = 0; i < part.count; ++i) {
    give_name(writer, links[i].engine, first + i, moved);
  }
  applied.done += part.count;
  return part.count;
}

void Index::State::release(const Writer& writer, std::span<const Moved> moved) {
  for (const Moved& block : moved) {
    Shard& shard = shards[shard_index(block.place)];
    const locks::Lock hold(shard.lock());
    shard.release(run_of(block.place), offset_of(block.place), writer.number, block.tiers,
                  writer.slot.tally);
  }
}

Applied Index::State::extend(const Writer& writer, BlockPlace& above, std::span<const Link> links,
                             std::uint32_t tiers) {
  const std::size_t before = writer.slot.names.size();
  const std::uint32_t room = all_names.take(static_cast<std::uint32_t>(links.size()));
  const Applied applied = chain(writer, above, links, tiers, before + room);
  all_names.give(before + room - writer.slot.names.size());
  return applied;
}

Applied Index::State::chain(const Writer& writer, BlockPlace& above, std::span<const Link> links,
                            std::uint32_t tiers, std::size_t most_names) {
  const EngineMap* const map = &writer.slot.names;  // for the lambdas, which run under its lock
  // The number of links that can be named: without room, only one that has its name already.
  const auto nameable = [&](std::span<const Link> of) {
    const std::size_t room = most_names - map->size();
    if (room >= of.size()) return of.size();
    return room > 0 || !map->find(of.front().engine) ? room : 1;
  };
  Applied applied;
  const std::size_t number =
      above == kNoPlace ? shard_of(links.front().sequence) : shard_index(above);
  Shard& shard = shards[number];
  std::vector<Moved> moved;
  while (!links.empty()) {
    auto chunk = links.first(std::min(links.size(), kChunk));
    writer.slot.names.reserve(chunk.size());
    for (const Link& link : chunk) writer.slot.names.prefetch(link.engine);
    {
      const locks::Lock hold(shard.lock());
      while (!chunk.empty() && moved.empty()) {
        const auto named = chunk.first(nameable(chunk));
        const RunNumber run = above == kNoPlace ? kNoRun : run_of(above);
        const std::uint32_t offset = above == kNoPlace ? 0 : offset_of(above);
        if (named.empty()) break;
        Shard::Part part = shard.find(run, offset, named);
        if (part.count == 0) part = shard.make(run, offset, named);
        if (part.count == 0) break;
        const BlockPlace first = place_of(number, part.run, part.begin);
        const std::uint32_t bound =
            bind(writer, shard, first, part.count, chunk, tiers, applied, moved);
        above = first + bound - 1;
        chunk = chunk.subspan(bound);
        links = links.subspan(bound);
      }
      shard.publish_bytes();
    }
    if (!chunk.empty() && moved.empty()) {
      applied.no_room = static_cast<std::uint32_t>(links.size());
      break;
    }
    release(writer, moved);
    moved.clear();
  }
  return applied;
}

Applied Index::store(Slot slot, std::optional<EngineHash> parent, std::span<const NewBlock> blocks,
                     Tier tier) {
  if (blocks.empty()) return {};
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const locks::Lock hold(writer.slot.mutex);
  BlockPlace place = kNoPlace;
  std::optional<SequenceHash> before;
  if (parent) {
    const EngineMap::Entry entry = writer.slot.names.find(*parent);
    if (!entry) return {.unknown_parent = static_cast<std::uint32_t>(blocks.size())};
    place = entry.place();
    Shard& shard = state_->shards[shard_index(place)];
    const locks::Lock hold_shard(shard.lock());
    before = shard.sequence(run_of(place), offset_of(place));
  }
  static thread_local std::vector<Link> links;
  links.clear();
  for (const NewBlock& block : blocks) {
    before = before ? next_sequence(*before, block.block) : first_sequence(block.block);
    links.push_back({.engine = block.engine, .sequence = *before});
  }
  const Applied applied = state_->extend(writer, place, links, bit_of(tier));
  finish(writer.slot);
  return applied;
}

Applied Index::restore(Slot slot, std::optional<EngineHash> parent,
                       std::span<const Restored> blocks) {
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const locks::Lock hold(writer.slot.mutex);
  BlockPlace place = kNoPlace;
  if (parent) {
    const EngineMap::Entry entry = writer.slot.names.find(*parent);
    if (!entry) return {.unknown_parent = static_cast<std::uint32_t>(blocks.size())};
    place = entry.place();
  }
  Applied applied;
  std::vector<Link> links;
  while (!blocks.empty() && applied.no_room == 0) {
    const std::uint32_t tiers = blocks.front().tiers & kAllTiers;
    if (tiers == 0) break;  // not held anywhere, so nothing can follow
    links.clear();
    for (const Restored& block : blocks) {
      if ((block.tiers & kAllTiers) != tiers) break;
      links.push_back({.engine = block.engine, .sequence = block.sequence});
    }
    const Applied more = state_->extend(writer, place, links, tiers);
    applied.done += more.done;
    applied.known += more.known;
    blocks = blocks.subspan(links.size());
    if (more.no_room > 0) applied.no_room = more.no_room;
  }
  (applied.no_room > 0 ? applied.no_room : applied.unknown_parent) +=
      static_cast<std::uint32_t>(blocks.size());
  finish(writer.slot);
  return applied;
}

template <class Action>
std::uint32_t Index::State::for_known(const Writer& writer, std::span<const EngineHash> names,
                                      Action& action) {
  std::uint32_t unknown = 0;
  const EngineMap* const map = &writer.slot.names;  // for the lambdas, which run under its lock
  std::array<EngineMap::Entry, kChunk> entries;
  for (; !names.empty(); names = names.subspan(std::min(names.size(), kChunk))) {
    const auto chunk = names.first(std::min(names.size(), kChunk));
    // An action may move others' entries, or remove one that is named twice.
    const auto entry_at = [&](std::size_t i) {
      if (entries[i] && !entries[i].is(chunk[i])) entries[i] = map->find(chunk[i]);
      return entries[i];
    };
    const auto shard_at = [&](std::size_t i) {
      const EngineMap::Entry entry = entry_at(i);
      return entry ? shard_index(entry.place()) : kShards;
    };
    for (const EngineHash name : chunk) map->prefetch(name);
    for (std::size_t i = 0; i < chunk.size(); ++i) entries[i] = map->find(chunk[i]);
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
      const locks::Lock hold(shard.lock());
      for (std::size_t k = i; k < end; ++k) shard.prefetch_run(run_of(entries[k].place()));
      for (std::size_t k = i; k < end; ++k) {
        shard.prefetch_parts(run_of(entries[k].place()), offset_of(entries[k].place()));
      }
      for (; i < end; ++i) {
        const EngineMap::Entry entry = entry_at(i);
        if (entry) {
          action.apply(writer, shard, chunk[i], entry);
        } else {
          ++unknown;
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
  const locks::Lock hold(writer.slot.mutex);
  struct Copy {
    void apply(const State::Writer& writer, Shard& shard, EngineHash name, EngineMap::Entry entry)
        REQUIRES(writer.slot.mutex, shard.lock()) {
      State::bind_known(writer, shard, entry.place(), name, tiers, applied, moved);
    }
    std::uint32_t tiers;
    Applied applied = {};
    std::vector<State::Moved> moved = {};  // always empty: the names keep their meaning
  };
  Copy copy{.tiers = bit_of(tier)};
  copy.applied.unknown_parent = state_->for_known(writer, blocks, copy);
  finish(writer.slot);
  return copy.applied;
}

Applied Index::remove(Slot slot, std::span<const EngineHash> blocks, Tier tier) {
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const locks::Lock hold(writer.slot.mutex);
  struct Removal {
    void apply(const State::Writer& writer, Shard& shard, EngineHash name, EngineMap::Entry entry)
        REQUIRES(writer.slot.mutex, shard.lock()) {
      EngineMap& names = writer.slot.names;
      Aliases& aliases = writer.slot.aliases;
      const BlockPlace place = entry.place();
      if (aliases.knows(place)) {
        const std::uint32_t had = aliases.tiers(name, place);
        ++((had & bit) == 0 ? applied.known : applied.done);
        if ((had & bit) == 0) return;
        if (had == bit) names.erase(entry);
        shard.release(run_of(place), offset_of(place), writer.number,
                      aliases.take(name, place, bit).block_lost, writer.slot.tally);
        return;
      }
      const std::uint32_t had =
          shard.release(run_of(place), offset_of(place), writer.number, bit, writer.slot.tally);
      ++((had & bit) == 0 ? applied.known : applied.done);
      if (had == bit) names.erase(entry);
    }
    std::uint32_t bit;
    Applied applied = {};
  };
  Removal removal{.bit = bit_of(tier)};
  const std::size_t before = writer.slot.names.size();
  // Unknown ones are not there, as was asked for.
  removal.applied.known += state_->for_known(writer, blocks, removal);
  state_->all_names.give(before - writer.slot.names.size());
  finish(writer.slot);
  return removal.applied;
}

void Index::clear(Slot slot) {
  const State::Writer writer{.number = static_cast<std::uint32_t>(slot),
                             .slot = state_->slots.state(static_cast<std::uint32_t>(slot))};
  const locks::Lock hold(writer.slot.mutex);
  std::vector<BlockPlace> runs;  // the places of their first blocks
  runs.reserve(writer.slot.names.size());
  writer.slot.names.for_each(
      [&](EngineHash, BlockPlace place) { runs.push_back(place - offset_of(place)); });
  std::ranges::sort(runs);
  const auto twice = std::ranges::unique(runs);
  runs.erase(twice.begin(), twice.end());
  for (const BlockPlace run : runs) {
    Shard& shard = state_->shards[shard_index(run)];
    const locks::Lock hold_shard(shard.lock());
    shard.release_all(run_of(run), writer.number, writer.slot.tally);
    shard.publish_bytes();
  }
  state_->all_names.give(writer.slot.names.size());
  writer.slot.names.clear();
  writer.slot.aliases.clear();
  finish(writer.slot);
}

void Index::match(std::span<const SequenceHash> prompt, std::vector<Match>& matches) const {
  if (prompt.empty()) return matches.clear();
  const Shard& shard = state_->shards[shard_of(prompt.front())];
  const locks::Lock hold(shard.lock());
  shard.match(prompt, state_->slots, matches);
}

std::optional<Match> Index::match_one(Slot slot, std::span<const SequenceHash> prompt) const {
  if (prompt.empty()) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(slot);
  const Shard& shard = state_->shards[shard_of(prompt.front())];
  const locks::Lock hold(shard.lock());
  const auto blocks = shard.match_one(prompt, number);
  if (blocks.back() == 0) return std::nullopt;
  return Match{.holder = state_->slots.holder(number), .blocks = blocks};
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

Index::Limits Index::limits() const {
  return {.blocks = state_->blocks.most, .memberships = state_->all_names.most};
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

}  // namespace baton::kvcache
