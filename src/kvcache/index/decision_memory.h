// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"
#include "kvcache/index/page_arena.h"
#include "kvcache/index/shard.h"
#include "kvcache/index/slots.h"
#include "libs/locks/mutex.h"

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace baton::kvcache {

// Role. Remembers which holders were sent which prompts lately, and so have them: for engines
//   without events, and until events come.
// Confinement. Any thread. Times never run backwards by more than a caller's own delay.
// Invariants. An entry is forgotten `ttl` after its last use, up to a tenth of a second later, and
//   later still if more is due than a call may do; at the limit, the entry next to expire goes. The
//   work per block is one comparison; the rest is done per run. A holder has the beginning of each
//   run, up to where its prompts ended.
class DecisionMemory {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::chrono::milliseconds ttl{120'000};
    std::size_t blocks = 1'000'000;  // pairs of block and holder
  };
  // Blocks remembered of a longer prompt.
  static constexpr std::size_t kLongest = 32'768;

  explicit DecisionMemory(Limits limits);

  // The holder has, or will have, these blocks; counts as a use of those remembered.
  void remember(Holder holder, std::span<const SequenceHash> prompt, Time now);
  void forget(Holder holder);
  // Forgets all due entries, in parts, so that other calls can run between. To be called now and
  // then.
  void tidy(Time now);

  // Like Index::match(), with the same length for all tiers. Waits only for calls that write
  // prompts with the same beginning.
  void match(std::span<const SequenceHash> prompt, Time now, std::vector<Match>& matches);

  Index::Size size() const;

 private:
  using Tick = std::int64_t;  // tenths of a second
  using Number = std::uint64_t;
  // The blocks of a run before `end` are remembered until then.
  struct Step {
    Tick until;
    std::uint32_t end;
  };
  // In the order of their ends: later blocks are forgotten earlier.
  using Steps = boost::container::small_vector<Step, 1>;
  struct Record {
    Number number;
    std::uint32_t slot;
    boost::unordered_flat_map<BlockPlace, Steps> runs;  // by their first blocks' places
  };
  struct Due {
    Number record;
    BlockPlace run;
  };

  static Tick tick_of(Time time);
  Record& record_of(Holder holder) REQUIRES(mutex_);
  // Puts off forgetting of what the record has of the links, and adds no more than `room`.
  void follow(Record& record, std::span<const Link> links, Tick until, std::size_t room)
      REQUIRES(mutex_);
  // `end`: of a run's blocks that are used. How many of these the record did not have.
  std::uint32_t use(Record& record, Shard& shard, BlockPlace run, std::uint32_t end, Tick until)
      REQUIRES(mutex_, shard.lock());
  // Forgets what has run out by then of the first in the earliest bucket, or puts it off.
  void settle_first() REQUIRES(mutex_);
  bool any_due(Time now) const REQUIRES(mutex_);
  bool expire(Time now, std::size_t steps) REQUIRES(mutex_);
  void note_first() REQUIRES(mutex_);
  void drop(Record& record, BlockPlace run, std::uint32_t end, std::uint32_t new_end)
      REQUIRES(mutex_);

  const Limits limits_;
  Capped blocks_;
  PageArena arena_{SystemPages::Small};  // written by threads that serve
  std::deque<Shard> shards_;
  PageArena name_arena_{SystemPages::Small};
  Slots slots_{name_arena_};

  mutable locks::Mutex mutex_;  // shards are locked within
  std::map<Holder, Record> records_ GUARDED_BY(mutex_);
  std::unordered_map<Number, Holder> holders_ GUARDED_BY(mutex_);
  Number next_ GUARDED_BY(mutex_) = 0;
  // Each run of a record is in one bucket: that of its first step to go, or an earlier one.
  std::map<Tick, std::vector<Due>> buckets_ GUARDED_BY(mutex_);
  std::size_t remembered_ GUARDED_BY(mutex_) = 0;
  std::atomic<Tick> first_due_;
};

}  // namespace baton::kvcache
