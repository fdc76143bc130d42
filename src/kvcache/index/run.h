// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/block_hash.h"
#include "kvcache/index/slab.h"

#include <cstdint>
#include <span>

namespace baton::kvcache {

// Number of a run within its shard.
using RunNumber = std::uint32_t;
inline constexpr RunNumber kNoRun = Slab::kNothing;

// The place of a block: its shard, its run, and its offset in the run.
using BlockPlace = std::uint32_t;
inline constexpr BlockPlace kNoPlace = 0xFFFFFFFF;

inline constexpr unsigned kOffsetBits = 7;
inline constexpr unsigned kRunBits = 21;
inline constexpr unsigned kShardBits = 32 - kOffsetBits - kRunBits;
inline constexpr std::uint32_t kMostInRun = 1U << kOffsetBits;

inline std::size_t shard_index(BlockPlace place) { return place >> (kOffsetBits + kRunBits); }
inline RunNumber run_of(BlockPlace place) { return place >> kOffsetBits & ((1U << kRunBits) - 1); }
inline std::uint32_t offset_of(BlockPlace place) { return place & (kMostInRun - 1); }
inline BlockPlace place_of(std::size_t shard, RunNumber run, std::uint32_t offset) {
  return static_cast<BlockPlace>(shard << (kOffsetBits + kRunBits)) | run << kOffsetBits | offset;
}

// Consecutive blocks of a run that a slot has in the same tiers.
struct Interval {
  std::uint32_t slot;
  std::uint8_t begin;
  std::uint8_t end;
  std::uint8_t tiers;
  std::uint8_t zero = 0;  // so that intervals can be compared as bytes
  bool operator==(const Interval&) const = default;
};
static_assert(sizeof(Interval) == 8);

// Consecutive blocks, and their holders. Blocks that follow one of them instead of the next are in
// a run of their own.
struct alignas(64) Run {
  SequenceHash key;         // of the first block
  SequenceHash* sequences;  // of each block; behind them the counts of its holders, and of the
                            // runs that follow it
  Interval* intervals;      // ordered by slot and begin
  Interval single;          // where the only one is
  std::uint32_t interval_count;
  std::uint32_t interval_room;
  std::uint32_t cells_ref;  // of the array that `sequences` is in
  std::uint32_t intervals_ref;
  BlockPlace parent;  // the block before the first; kNoPlace: it begins a prompt
  std::uint8_t length;
  std::uint8_t room;

  std::uint32_t* holders() const { return reinterpret_cast<std::uint32_t*>(sequences + room); }
  std::uint32_t* children() const { return holders() + room; }
  std::span<const Interval> all_intervals() const { return {intervals, interval_count}; }
};
static_assert(sizeof(Run) == 64);
inline constexpr std::size_t kCellBytes = sizeof(SequenceHash) + 2 * sizeof(std::uint32_t);

// Role. The runs of one shard.
// Confinement. One thread at a time.
class RunSlab {
 public:
  explicit RunSlab(PageArena& arena)
      : slab_(arena, sizeof(Run), {.index_bits = kIndexBits, .number_bits = kRunBits}) {}
  RunNumber take() { return slab_.take(); }
  void give(RunNumber run) { slab_.give(run); }
  Run& operator[](RunNumber run) const {
    return reinterpret_cast<Run*>(slab_.page(run >> kIndexBits))[run & ((1U << kIndexBits) - 1)];
  }

 private:
  static constexpr unsigned kIndexBits = 8;  // as many as a page has room for

  Slab slab_;
};

// Mixes a number's bits into the higher ones; no two numbers give the same.
inline std::uint64_t mix(std::uint64_t number) { return number * 0x9E3779B97F4A7C15U; }

}  // namespace baton::kvcache
