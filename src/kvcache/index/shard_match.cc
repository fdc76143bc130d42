// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <ranges>

namespace baton::kvcache {
namespace {

// The number of the prompt's blocks that are the run's. Equal blocks follow equal blocks only.
std::uint32_t same(const Run& run, std::span<const SequenceHash> prompt) {
  const auto most = std::min<std::size_t>(run.length, prompt.size());
  if (run.sequences[most - 1] == prompt[most - 1]) return static_cast<std::uint32_t>(most);
  const auto places = std::views::iota(std::size_t{0}, most);
  const auto differs = std::ranges::partition_point(
      places, [&](std::size_t at) { return run.sequences[at] == prompt[at]; });
  return static_cast<std::uint32_t>(differs - places.begin());
}

// How much of a prompt's blocks in a run a slot has: with the reach (the farthest tier that it
// takes) that it came with.
struct Progress {
  std::uint32_t reach;
  std::uint32_t blocks = 0;

  // Takes the slot's next interval. `ends(tier, blocks)`: so far it holds the run's blocks in this
  // tier and nearer ones. False: it does not go on.
  template <class Ends>
  bool pass(const Interval& interval, std::uint32_t count, Ends ends) {
    if (interval.begin != blocks || blocks == count) return false;
    const auto near = static_cast<std::uint32_t>(std::countr_zero(unsigned{interval.tiers}));
    for (; reach < near; ++reach) ends(reach, blocks);
    blocks = std::min<std::uint32_t>(interval.end, count);
    return true;
  }
};

}  // namespace

// Role. One match: goes down the runs of a prompt with those holders that have all blocks so far.
// Confinement. The holder of the shard's lock.
class Matcher {
 public:
  Matcher(const RunSlab& runs, const RunTable& table, std::span<const SequenceHash> prompt)
      : runs_(runs), table_(table), prompt_(prompt) {}

  // Calls `visit(run, depth, count)` for each run of the prompt, with its beginning and the number
  // of its blocks that are the prompt's, as long as `visit` returns true.
  template <class Visit>
  void walk(Visit visit) const {
    std::size_t depth = 0;
    while (depth < prompt_.size()) {
      const RunNumber found = table_.find(prompt_[depth]);
      if (found == kNoRun) return;
      // Most likely it is full, and the next one begins behind it.
      if (depth + kMostInRun < prompt_.size()) table_.prefetch_line(prompt_[depth + kMostInRun]);
      const Run& run = runs_[found];
      const std::uint32_t count = same(run, prompt_.subspan(depth));
      if (!visit(run, static_cast<std::uint32_t>(depth), count)) return;
      depth += count;
    }
  }

  void all(const Slots& slots, std::vector<Match>& matches) const;
  std::array<std::uint32_t, kTiers> one(std::uint32_t slot) const;

 private:
  // A slot that has all blocks so far.
  struct Alive {
    std::uint32_t slot;
    std::uint32_t match;
    std::uint32_t reach;
  };
  // Those that are, ordered by slot, and what has become of all that were.
  struct Progressing {
    std::span<Alive> alive;
    std::vector<Match>& matches;
  };

  static bool begin(const Run& run, std::uint32_t count, const Slots& slots, Progressing& on);
  // Whether two runs have the same intervals, and so the same holders drop out of both.
  static bool alike(const Run& run, const Run& other) {
    return run.interval_count == other.interval_count &&
           std::memcmp(run.intervals, other.intervals, run.interval_count * sizeof(Interval)) == 0;
  }
  static void pass(const Run& run, std::uint32_t depth, std::uint32_t count, Progressing& on);
  static void leave(const Alive& slot, std::uint32_t depth, std::vector<Match>& matches);

  const RunSlab& runs_;
  const RunTable& table_;
  std::span<const SequenceHash> prompt_;
};

// Starts with all holders of the first block. True if each of them holds all blocks that the run
// shares with the prompt, on the device, and no interval begins later.
bool Matcher::begin(const Run& run, std::uint32_t count, const Slots& slots, Progressing& on) {
  // Kept for the next call, as are the matches: thousands, of which each is written once.
  static thread_local std::vector<Alive> room;
  if (room.size() < run.interval_count) room.resize(run.interval_count);
  on.matches.resize(run.interval_count);
  std::uint32_t found = 0;
  bool all = true;
  for (const Interval& interval : run.all_intervals()) {
    all = all && interval.begin == 0 && interval.end >= count && (interval.tiers & 1) != 0;
    if (interval.begin > 0) continue;
    room[found] = {.slot = interval.slot, .match = found, .reach = 0};
    on.matches[found].holder = slots.holder(interval.slot);
    ++found;
  }
  on.matches.resize(found);
  on.alive = std::span(room).first(found);
  return all;
}

// It goes no farther than to here.
void Matcher::leave(const Alive& slot, std::uint32_t depth, std::vector<Match>& matches) {
  auto& blocks = matches[slot.match].blocks;
  if (slot.reach == 0) return blocks.fill(depth);
  std::fill(blocks.begin() + slot.reach, blocks.end(), depth);
}

// Both lists are ordered by slot. A slot that lacks some of the run's blocks is left behind.
void Matcher::pass(const Run& run, std::uint32_t depth, std::uint32_t count, Progressing& on) {
  auto& [alive, matches] = on;
  const Interval* at = run.intervals;
  const Interval* const end = at + run.interval_count;
  std::size_t kept = 0;
  for (const Alive slot : alive) {
    // Mostly it is the next one. If not, it may be far away: many have blocks here, and not those
    // before.
    if (at != end && at->slot < slot.slot && ++at != end && at->slot < slot.slot)
      at = std::ranges::lower_bound(at, end, slot.slot, {}, &Interval::slot);
    if (at == end || at->slot != slot.slot) {
      leave(slot, depth, matches);
      continue;
    }
    if (at->begin == 0 && at->end >= count && (at->tiers & 1) != 0) {
      alive[kept++] = slot;
      ++at;
      continue;
    }
    auto& blocks = matches[slot.match].blocks;
    Progress progress{.reach = slot.reach};
    const auto ends = [&](std::uint32_t tier, std::uint32_t length) {
      blocks[tier] = depth + length;
    };
    while (at != end && at->slot == slot.slot && progress.pass(*at, count, ends)) ++at;
    if (progress.blocks == count) {
      alive[kept++] = {.slot = slot.slot, .match = slot.match, .reach = progress.reach};
    } else {
      for (; progress.reach < kTiers; ++progress.reach) ends(progress.reach, progress.blocks);
    }
  }
  alive = alive.first(kept);
}

void Matcher::all(const Slots& slots, std::vector<Match>& matches) const {
  Progressing on{.alive = {}, .matches = matches};
  std::uint32_t reached = 0;
  const Run* before = nullptr;  // the run before, if all its holders have all of its blocks
  std::uint32_t before_count = 0;
  walk([&](const Run& run, std::uint32_t depth, std::uint32_t count) {
    reached = depth + count;
    if (before != nullptr && count <= before_count && alike(run, *before)) return true;
    if (depth > 0 || !begin(run, count, slots, on)) pass(run, depth, count, on);
    before = on.alive.size() == run.interval_count ? &run : nullptr;
    before_count = count;
    return !on.alive.empty();
  });
  if (reached == 0) matches.clear();
  for (const Alive& slot : on.alive) leave(slot, reached, matches);
}

std::array<std::uint32_t, kTiers> Matcher::one(std::uint32_t slot) const {
  std::array<std::uint32_t, kTiers> blocks{};
  std::uint32_t reach = 0;
  std::uint32_t reached = 0;
  walk([&](const Run& run, std::uint32_t depth, std::uint32_t count) {
    const auto list = run.all_intervals();
    Progress progress{.reach = reach};
    for (const auto *at = std::ranges::lower_bound(list, slot, {}, &Interval::slot).operator->();
         at != list.data() + list.size() && at->slot == slot &&
         progress.pass(
             *at, count,
             [&](std::uint32_t tier, std::uint32_t length) { blocks[tier] = depth + length; });
         ++at) {
    }
    reach = progress.reach;
    reached = depth + progress.blocks;
    return progress.blocks == count;
  });
  std::fill(blocks.begin() + reach, blocks.end(), reached);
  return blocks;
}

void Shard::match(std::span<const SequenceHash> prompt, const Slots& slots,
                  std::vector<Match>& matches) const {
  Matcher(runs_, table_, prompt).all(slots, matches);
}

std::array<std::uint32_t, kTiers> Shard::match_one(std::span<const SequenceHash> prompt,
                                                   std::uint32_t slot) const {
  return Matcher(runs_, table_, prompt).one(slot);
}

}  // namespace baton::kvcache
