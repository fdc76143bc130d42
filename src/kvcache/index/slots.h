// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/aliases.h"
#include "kvcache/index/engine_map.h"
#include "kvcache/index/index.h"
#include "libs/locks/mutex.h"

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <vector>

namespace baton::kvcache {

// How much a slot holds. One thread writes at a time, any reads.
struct Tally {
  std::array<std::atomic<std::size_t>, kTiers> blocks{};
  std::atomic<std::size_t> memberships{0};
  std::atomic<std::size_t> bytes{0};

  static void add(std::atomic<std::size_t>& figure, std::size_t difference) {
    figure.store(figure.load(std::memory_order_relaxed) + difference, std::memory_order_relaxed);
  }
  // Tiers that some memberships have lost and won.
  void count_tiers(std::uint32_t before, std::uint32_t after, std::size_t count) {
    for (std::uint32_t changed = before ^ after; changed != 0; changed &= changed - 1) {
      const auto tier = static_cast<std::size_t>(std::countr_zero(changed));
      add(blocks[tier], (after >> tier & 1) != 0 ? count : -count);
    }
  }
};

inline constexpr std::uint32_t kMostSlots = 1U << 23;

struct SlotState {
  explicit SlotState(PageArena& arena) : names(arena) {}

  // Held while the slot's blocks are changed or listed.
  locks::Mutex mutex;
  EngineMap names GUARDED_BY(mutex);
  Aliases aliases GUARDED_BY(mutex);
  Tally tally;
};

// Role. The holders of the slots.
// Confinement. Any thread. holder() needs a reason why the slot cannot leave meanwhile: a
//   membership seen under its shard's lock is one.
class Slots {
 public:
  // The arena outlives it. The slots' share of it counts as theirs.
  explicit Slots(PageArena& arena) : arena_(arena) {}
  ~Slots();
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  std::uint32_t open(Holder holder);
  void close(std::uint32_t slot);

  const Holder& holder(std::uint32_t slot) const { return place(slot).holder; }
  SlotState& state(std::uint32_t slot) const { return *place(slot).state; }

  std::size_t bytes() const;
  std::size_t memberships() const;

 private:
  static constexpr std::uint32_t kPerChunk = 1024;
  struct Place {
    Holder holder{};
    std::unique_ptr<SlotState> state;
  };
  using Chunk = std::array<Place, kPerChunk>;

  Place& place(std::uint32_t slot) const {
    return (*chunks_[slot / kPerChunk].load(std::memory_order_acquire))[slot % kPerChunk];
  }

  PageArena& arena_;
  mutable locks::Mutex mutex_;
  std::array<std::atomic<Chunk*>, kMostSlots / kPerChunk> chunks_{};
  std::uint32_t fresh_ GUARDED_BY(mutex_) = 0;  // slots from here on have never been used
  std::vector<std::uint32_t> free_ GUARDED_BY(mutex_);
};

}  // namespace baton::kvcache
