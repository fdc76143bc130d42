// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/shard.h"

#include <cstring>

namespace baton::kvcache {
namespace {

constexpr std::size_t kLess = static_cast<std::size_t>(-1);

// The number of links that equal the run's blocks from `begin` on.
std::uint32_t same(const Run& run, std::uint32_t begin, std::span<const Link> links) {
  const auto most =
      static_cast<std::uint32_t>(std::min<std::size_t>(run.length - begin, links.size()));
  std::uint32_t count = 0;
  while (count < most && run.sequences[begin + count] == links[count].sequence) ++count;
  return count;
}

}  // namespace

Shard::Shard(PageArena& arena, Capped& count)
    : count_(count), runs_(arena), table_(arena, runs_), pool_(arena) {
  publish_bytes();
}

Shard::Part Shard::find(RunNumber above, std::uint32_t above_offset,
                        std::span<const Link> links) const {
  if (above != kNoRun) {
    const Run& run = runs_[above];
    const std::uint32_t begin = above_offset + 1;
    const std::uint32_t count = same(run, begin, links);
    if (count > 0) return {.run = above, .begin = begin, .count = count};
  }
  const RunNumber found = table_.find(links.front().sequence);
  if (found == kNoRun) return {};
  return {.run = found, .begin = 0, .count = same(runs_[found], 0, links)};
}

Shard::Part Shard::make(RunNumber above, std::uint32_t above_offset, std::span<const Link> links) {
  if (above != kNoRun && runs_[above].length == above_offset + 1 &&
      runs_[above].length < kMostInRun) {
    return append(above, links);
  }
  return make_run(above, above_offset, links);
}

void Shard::write(Run& run, std::span<const Link> links) {
  for (const Link& link : links) {
    run.sequences[run.length] = link.sequence;
    run.holders()[run.length] = 0;
    run.children()[run.length] = 0;
    ++run.length;
  }
}

Shard::Part Shard::append(RunNumber number, std::span<const Link> links) {
  Run& run = runs_[number];
  const auto wanted = std::min<std::size_t>(links.size(), kMostInRun - run.length);
  const std::uint32_t count = count_.take(static_cast<std::uint32_t>(wanted));
  const Part part{.run = number, .begin = run.length, .count = count};
  if (run.length + count > run.room) set_room(run, run.length + count);
  write(run, links.first(count));
  return part;
}

Shard::Part Shard::make_run(RunNumber above, std::uint32_t above_offset,
                            std::span<const Link> links) {
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(links.size(), kMostInRun));
  const std::uint32_t count = count_.take(wanted);
  if (count == 0) return {};
  const RunNumber made = runs_.take();
  if (made != kNoRun) {
    Run& run = runs_[made];
    run.key = links.front().sequence;
    if (table_.insert(made)) {
      run.parent = above == kNoRun ? kNoPlace : place_of(0, above, above_offset);
      run.length = 0;
      run.room = 0;
      HolderIntervals(run, pool_).open();
      set_room(run, count);
      write(run, links.first(count));
      if (above != kNoRun) ++runs_[above].children()[above_offset];
      return {.run = made, .begin = 0, .count = count};
    }
    runs_.give(made);
  }
  count_.give(count);
  return {};
}

// Moves a run's blocks to a place with room for so many, and little more.
void Shard::set_room(Run& run, std::uint32_t blocks) {
  const ArrayPool::Array array = pool_.take(blocks * kCellBytes);
  const Run old = run;
  run.sequences = reinterpret_cast<SequenceHash*>(array.memory);
  run.cells_ref = array.ref;
  run.room = static_cast<std::uint8_t>(std::min<std::size_t>(array.bytes / kCellBytes, kMostInRun));
  if (old.room == 0) return;
  std::memcpy(run.sequences, old.sequences, old.length * sizeof(SequenceHash));
  std::memcpy(run.holders(), old.holders(), old.length * sizeof(std::uint32_t));
  std::memcpy(run.children(), old.children(), old.length * sizeof(std::uint32_t));
  pool_.give(reinterpret_cast<std::byte*>(old.sequences), old.cells_ref);
}

// Drops the blocks at the end of a run that are neither held nor followed, and with the last the
// run itself; then those before it.
void Shard::drop_bare(RunNumber number) {
  while (true) {
    Run& run = runs_[number];
    const std::uint32_t* holders = run.holders();
    const std::uint32_t* children = run.children();
    const std::uint32_t before = run.length;
    while (run.length > 0 && holders[run.length - 1] == 0 && children[run.length - 1] == 0) {
      --run.length;
    }
    if (run.length == before) return;
    count_.give(before - run.length);
    if (run.length > 0) {
      if (run.length < run.room / 2) set_room(run, run.length + run.length / 4);
      return;
    }
    table_.erase(number);
    HolderIntervals(run, pool_).close();
    pool_.give(reinterpret_cast<std::byte*>(run.sequences), run.cells_ref);
    const BlockPlace parent = run.parent;
    runs_.give(number);
    if (parent == kNoPlace) return;
    number = run_of(parent);
    --runs_[number].children()[offset_of(parent)];
  }
}

void Shard::hold_free(const Part& part, std::uint32_t slot, std::uint32_t tiers, Tally& tally) {
  std::uint32_t* holders = runs_[part.run].holders() + part.begin;
  std::size_t fresh = 0;
  for (std::uint32_t i = 0; i < part.count; ++i) fresh += holders[i]++ == 0 ? 1 : 0;
  Tally::add(held_, fresh);
  intervals(part.run).add(slot, part.begin, part.begin + part.count, tiers);
  tally.count_tiers(0, tiers, part.count);
  Tally::add(tally.memberships, part.count);
}

std::uint32_t Shard::hold(RunNumber run, std::uint32_t offset, std::uint32_t slot,
                          std::uint32_t tiers, Tally& tally) {
  HolderIntervals list = intervals(run);
  const std::uint32_t before = list.tiers(slot, offset);
  if (before == 0) {
    hold_free({.run = run, .begin = offset, .count = 1}, slot, tiers, tally);
  } else if ((before | tiers) != before) {
    list.set_tiers(slot, offset, before | tiers);
    tally.count_tiers(before, before | tiers, 1);
  }
  return before;
}

std::uint32_t Shard::release(RunNumber run, std::uint32_t offset, std::uint32_t slot,
                             std::uint32_t tiers, Tally& tally) {
  HolderIntervals list = intervals(run);
  const std::uint32_t before = list.tiers(slot, offset);
  const std::uint32_t left = before & ~tiers;
  if (left == before) return before;
  list.set_tiers(slot, offset, left);
  tally.count_tiers(before, left, 1);
  if (left != 0) return before;
  Tally::add(tally.memberships, kLess);
  if (--runs_[run].holders()[offset] == 0) {
    Tally::add(held_, kLess);
    drop_bare(run);
  }
  return before;
}

void Shard::release_all(RunNumber run, std::uint32_t slot, Tally& tally) {
  HolderIntervals list = intervals(run);
  std::uint32_t* holders = runs_[run].holders();
  for (const Interval& interval : list.of(slot)) {
    const std::uint32_t count = interval.end - interval.begin;
    std::size_t last = 0;
    for (std::uint32_t i = interval.begin; i < interval.end; ++i) {
      last += --holders[i] == 0 ? 1 : 0;
    }
    Tally::add(held_, -last);
    tally.count_tiers(interval.tiers, 0, count);
    Tally::add(tally.memberships, -std::size_t{count});
  }
  list.remove_all(slot);
  drop_bare(run);
}

void Shard::publish_bytes() {
  bytes_.store(sizeof(*this) + table_.bytes() + pool_.bytes(), std::memory_order_relaxed);
}

}  // namespace baton::kvcache
