// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/policy/active_blocks.h"
#include "scheduling/policy/rank_load.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::scheduling {

// The load of one leg on its worker.
struct LegLoad {
  std::uint64_t prefill_tokens = 0;  // new ones it must compute; 0: none, or that is not tracked
  // Predicted, in a step shared with others; absent: not modelled.
  std::optional<std::chrono::nanoseconds> prefill_time = std::nullopt;
  std::chrono::nanoseconds step_time{0};  // more, where it is the first of its step
  BlockChain chain = nullptr;             // null: unknown, or not to be shared
  std::uint64_t blocks = 0;  // of the prompt; those beyond the chain are this request's alone
  std::uint32_t block_size = 16;
  std::optional<std::uint64_t> expected_output = std::nullopt;  // tokens
  bool track_output = false;
};

// Role. The ledger of the load on the workers of one set: a booking adds to its rank's load, and
//   subtracts exactly that at its end.
// Confinement. Any thread; one lock, held for a few look-ups, and per answer of shared() as long as
//   it takes to write it down.
// Lifetime. In a shared_ptr; its entries keep it.
// Invariants. A rank's load is the sum over its entries, except that blocks of equal prefixes count
//   once: a block that one entry holds has the weight of the entry's output blocks, one that
//   several hold has weight 1.
class LoadLedger : public std::enable_shared_from_this<LoadLedger> {
 public:
  // Role. One booked leg, for as long as this lives; it never expires.
  // Confinement. One thread at a time.
  class Entry {
   public:
    Entry();  // nothing is booked
    Entry(Entry&&) noexcept;
    Entry& operator=(Entry&&) noexcept;
    ~Entry();

    explicit operator bool() const { return booking_ != nullptr; }
    void prefill_completed(Time now);
    // Output tokens so far. Each full block of them counts if output is tracked; if its length is
    // expected too, the weight of these blocks and the prompt's own falls towards the end.
    void produced(std::uint64_t tokens);
    // Also its prefill has ended then.
    void free(Time now);

   private:
    friend class LoadLedger;
    struct Booking;
    explicit Entry(std::unique_ptr<Booking> booking);

    std::unique_ptr<Booking> booking_;
  };

  LoadLedger() = default;
  LoadLedger(const LoadLedger&) = delete;
  LoadLedger& operator=(const LoadLedger&) = delete;

  // Requires: load is not null, and is this rank's in every call.
  [[nodiscard]] Entry book(RankKey key, std::shared_ptr<RankLoad> load, LegLoad what, Time now);
  // For each rank where a prompt with the same beginning is active: how many blocks of `chain` are.
  // Unordered; overwrites `out`.
  void shared(std::span<const std::uint64_t> chain,
              std::vector<std::pair<RankKey, std::uint32_t>>& out) const;
  // Distinct blocks of active prompts, over all ranks.
  std::size_t tracked_blocks() const;

 private:
  struct TrackedRank {
    RankKey key;
    const RankLoad* load = nullptr;
    std::size_t entries = 0;
  };

  void complete_prefill(Entry::Booking& booking, Time now);
  void grow_output(Entry::Booking& booking, std::uint64_t blocks, BlockWeight weight);
  void end(Entry::Booking& booking, Time now);
  ActiveBlocks::Slot take_slot(RankKey key, const RankLoad& load) REQUIRES(mutex_);
  void give_back(ActiveBlocks::Slot slot) REQUIRES(mutex_);

  mutable locks::Mutex mutex_;
  ActiveBlocks active_ GUARDED_BY(mutex_);
  std::vector<TrackedRank> ranks_ GUARDED_BY(mutex_);  // by slot
  std::vector<ActiveBlocks::Slot> free_slots_ GUARDED_BY(mutex_);
  std::unordered_map<const RankLoad*, ActiveBlocks::Slot> slots_ GUARDED_BY(mutex_);
};

}  // namespace baton::scheduling
