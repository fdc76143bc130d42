// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/array_pool.h"
#include "kvcache/index/fair_lock.h"
#include "kvcache/index/holder_intervals.h"
#include "kvcache/index/index.h"
#include "kvcache/index/run.h"
#include "kvcache/index/run_table.h"
#include "kvcache/index/slots.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace baton::kvcache {

// How many there are of something, and the most there may be.
struct Capped {
  std::size_t most;
  std::atomic<std::size_t> known{0};

  // Takes as many of those wanted as there is room for.
  std::uint32_t take(std::uint32_t wanted) {
    std::size_t now = known.load(std::memory_order_relaxed);
    while (now < most) {
      const std::size_t given = std::min<std::size_t>(wanted, most - now);
      if (known.compare_exchange_weak(now, now + given, std::memory_order_relaxed)) {
        return static_cast<std::uint32_t>(given);
      }
    }
    return 0;
  }
  void give(std::size_t count) { known.fetch_sub(count, std::memory_order_relaxed); }
};

inline constexpr std::size_t kShards = std::size_t{1} << kShardBits;

// By a prompt's first block.
inline std::size_t shard_of(SequenceHash first) {
  return mix(mix(first) >> 32) >> (64 - kShardBits);
}

// A block with all that is to be known of it.
struct Link {
  EngineHash engine;
  SequenceHash sequence;
};

// Role. All prompts that begin with some blocks: a tree of runs, found by their first blocks.
// Confinement. The holder of its lock, but for the figures.
// Invariants. A block is in one run only. It lives while it is held or others follow it; a block's
//   place stays the same meanwhile.
class Shard {
 public:
  // `count`: distinct blocks in all shards, held or leading to a held one.
  Shard(PageArena& arena, Capped& count);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  FairLock& lock() const RETURN_CAPABILITY(lock_) { return lock_; }

  // Blocks that follow each other in one run.
  struct Part {
    RunNumber run = kNoRun;
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };
  // Finds the first of the links that follow `above` (kNoRun: they begin a prompt), as many as are
  // in one run. None: the first is not there.
  Part find(RunNumber above, std::uint32_t above_offset, std::span<const Link> links) const
      REQUIRES(lock_);
  // Makes the first of them, as many as fit into one run. None: there is no room. They are to be
  // held at once. Requires: find() found none.
  Part make(RunNumber above, std::uint32_t above_offset, std::span<const Link> links)
      REQUIRES(lock_);

  SequenceHash sequence(RunNumber run, std::uint32_t offset) const REQUIRES(lock_) {
    return runs_[run].sequences[offset];
  }
  // The shard is that of any place but kNoPlace.
  BlockPlace parent(RunNumber run) const REQUIRES(lock_) { return runs_[run].parent; }

  std::uint32_t free_from(const Part& part, std::uint32_t slot) REQUIRES(lock_) {
    return intervals(part.run).free_from(slot, part.begin, part.begin + part.count);
  }
  // Requires: the slot has none of them.
  void hold_free(const Part& part, std::uint32_t slot, std::uint32_t tiers, Tally& tally)
      REQUIRES(lock_);
  // The tiers that the slot has a block in.
  std::uint32_t tiers(RunNumber run, std::uint32_t offset, std::uint32_t slot) REQUIRES(lock_) {
    return intervals(run).tiers(slot, offset);
  }
  // The slot has a block in these tiers as well. Returns those it had it in before.
  std::uint32_t hold(RunNumber run, std::uint32_t offset, std::uint32_t slot, std::uint32_t tiers,
                     Tally& tally) REQUIRES(lock_);
  // The slot has it in these tiers no more. Returns those it had it in before.
  std::uint32_t release(RunNumber run, std::uint32_t offset, std::uint32_t slot,
                        std::uint32_t tiers, Tally& tally) REQUIRES(lock_);
  void release_all(RunNumber run, std::uint32_t slot, Tally& tally) REQUIRES(lock_);

  // For a release() to come: first the run, then what it leads to.
  void prefetch_run(RunNumber run) const REQUIRES(lock_) { __builtin_prefetch(&runs_[run]); }
  void prefetch_parts(RunNumber run, std::uint32_t offset) const REQUIRES(lock_) {
    const Run& it = runs_[run];
    __builtin_prefetch(it.holders() + offset);
    __builtin_prefetch(it.intervals);
  }

  void match(std::span<const SequenceHash> prompt, const Slots& slots,
             std::vector<Match>& matches) const REQUIRES(lock_);
  std::array<std::uint32_t, kTiers> match_one(std::span<const SequenceHash> prompt,
                                              std::uint32_t slot) const REQUIRES(lock_);

  // Any thread.
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  void publish_bytes() REQUIRES(lock_);

 private:
  HolderIntervals intervals(RunNumber run) REQUIRES(lock_) { return {runs_[run], pool_}; }
  Part append(RunNumber run, std::span<const Link> links) REQUIRES(lock_);
  Part make_run(RunNumber above, std::uint32_t above_offset, std::span<const Link> links)
      REQUIRES(lock_);
  static void write(Run& run, std::span<const Link> links);
  void set_room(Run& run, std::uint32_t blocks) REQUIRES(lock_);
  void drop_bare(RunNumber run) REQUIRES(lock_);

  mutable FairLock lock_;
  Capped& count_;
  RunSlab runs_ GUARDED_BY(lock_);
  RunTable table_ GUARDED_BY(lock_);
  ArrayPool pool_ GUARDED_BY(lock_);
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace baton::kvcache
