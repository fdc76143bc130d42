// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/array_pool.h"
#include "kvcache/index/run.h"

#include <cstdint>
#include <span>

namespace baton::kvcache {

// Role. Tracks which slots hold which blocks of a run: the run's ordered list of intervals, changed
//   in place.
// Confinement. A thread that may change the run.
// Invariants. Intervals of a slot neither overlap, nor touch if their tiers are the same. A list of
//   one needs no memory of its own.
class HolderIntervals {
 public:
  HolderIntervals(Run& run, ArrayPool& pool) : run_(run), pool_(pool) {}

  // For a new run, and for one about to go.
  void open();
  void close();

  // The tiers that the slot has the block in.
  std::uint32_t tiers(std::uint32_t slot, std::uint32_t offset) const;
  // How many blocks from `from` on, up to `to`, the slot has none of.
  std::uint32_t free_from(std::uint32_t slot, std::uint32_t from, std::uint32_t to) const;
  // All of the slot's.
  std::span<const Interval> of(std::uint32_t slot) const;

  // Requires: free_from(slot, from, to) == to - from.
  void add(std::uint32_t slot, std::uint32_t from, std::uint32_t to, std::uint32_t tiers);
  // Sets the tiers of a block that the slot holds; none: it holds it no more.
  void set_tiers(std::uint32_t slot, std::uint32_t offset, std::uint32_t tiers);
  void remove_all(std::uint32_t slot);

 private:
  // The slot's first interval that does not end before or at `offset`, or the one after.
  std::uint32_t find(std::uint32_t slot, std::uint32_t offset) const;
  bool is_of(std::uint32_t at, std::uint32_t slot) const {
    return at < run_.interval_count && run_.intervals[at].slot == slot;
  }
  // Replaces some by others.
  void replace(std::uint32_t begin, std::uint32_t end, std::span<const Interval> others);
  void resize(std::uint32_t room);

  Run& run_;
  ArrayPool& pool_;
};

}  // namespace baton::kvcache
