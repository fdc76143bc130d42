// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/policy/active_blocks.h"
#include "scheduling/policy/rank_load.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::scheduling {

// What one leg puts on its worker.
struct LegLoad {
  std::uint64_t prefill_tokens = 0;  // new ones it must compute; 0: none, or that is not tracked
  // As predicted, in a step of others; absent: not modelled.
  std::optional<std::chrono::nanoseconds> prefill_time = std::nullopt;
  std::chrono::nanoseconds step_time{0};  // more, where it is the first of its step
  BlockChain chain = nullptr;             // null: unknown, or not to be shared
  std::uint64_t blocks = 0;  // of the prompt; those beyond the chain are this request's alone
  std::uint32_t block_size = 16;
  std::optional<std::uint64_t> expected_output = std::nullopt;  // tokens
  bool track_output = false;
};

// Role. The book of what runs on the workers of one set: who books adds to the seat's load, and takes
//   away exactly that at the end.
// Confinement. Any thread; one lock, held for a few look-ups, and per answer of shared() as long as
//   it takes to write it down.
// Lifetime. In a shared_ptr; its entries keep it.
// Invariants. A seat's load is the sum over its entries, but for blocks of equal beginnings, which
//   count once: a block that one entry holds weighs what the entry's output blocks do, one that
//   several hold weighs 1.
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
    // Output tokens so far. Each full block of them counts where output is tracked; where its length
    // is expected too, these blocks and the prompt's own ones weigh less the nearer the end is.
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

  // Requires: load is not null, and the seat's each time.
  [[nodiscard]] Entry book(RankKey seat, std::shared_ptr<RankLoad> load, LegLoad what, Time now);
  // For each seat where a prompt with the same beginning is active: how many blocks of `chain` are.
  // In no order; what was in `out` is lost.
  void shared(std::span<const std::uint64_t> chain,
              std::vector<std::pair<RankKey, std::uint32_t>>& out) const;
  // Different blocks of active prompts, over all seats.
  std::size_t tracked_blocks() const;

 private:
  struct RankId {
    RankKey key;
    const RankLoad* load = nullptr;
    std::size_t entries = 0;
  };

  void complete_prefill(Entry::Booking& booking, Time now);
  void grow_output(Entry::Booking& booking, std::uint64_t blocks, BlockWeight weight);
  void end(Entry::Booking& booking, Time now);
  // The following require: mutex_ is held.
  ActiveBlocks::Slot take_slot(RankKey seat, const RankLoad& load);
  void give_back(ActiveBlocks::Slot slot);

  mutable std::mutex mutex_;
  ActiveBlocks active_;
  std::vector<RankId> seats_;  // by slot
  std::vector<ActiveBlocks::Slot> free_slots_;
  std::unordered_map<const RankLoad*, ActiveBlocks::Slot> slots_;
};

}  // namespace baton::scheduling
