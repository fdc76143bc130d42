// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/load_ledger.h"

#include <algorithm>
#include <utility>

namespace baton::scheduling {

struct LoadLedger::Entry::Booking {
  std::shared_ptr<LoadLedger> ledger;
  std::shared_ptr<RankLoad> load;
  PrefillBacklog::Prompt prompt;
  bool in_prefill = false;
  Time latest;
  ActiveBlocks::Slot slot = 0;
  ActiveBlocks::Run* end = nullptr;  // null: it has no chain
  std::uint64_t own_blocks = 0;      // of the prompt, beyond the chain
  std::uint64_t output_blocks = 0;
  BlockWeight weight = kWholeBlock;  // of each of its blocks that no other one has
  std::uint32_t block_size = 0;
  std::optional<std::uint64_t> expected_output;
  bool track_output = false;

  BlockWeight own_weight() const {
    return static_cast<BlockWeight>(own_blocks + output_blocks) * weight;
  }
};

LoadLedger::Entry::Entry() = default;
LoadLedger::Entry::Entry(std::unique_ptr<Booking> booking) : booking_(std::move(booking)) {}
LoadLedger::Entry::Entry(Entry&&) noexcept = default;
LoadLedger::Entry& LoadLedger::Entry::operator=(Entry&& other) noexcept {
  Entry taken(std::move(other));
  std::swap(booking_, taken.booking_);  // what was booked here ends with `taken`
  return *this;
}
LoadLedger::Entry::~Entry() {
  if (booking_) free(booking_->latest);
}

void LoadLedger::Entry::prefill_completed(Time now) {
  if (booking_) booking_->ledger->complete_prefill(*booking_, now);
}

void LoadLedger::Entry::produced(std::uint64_t tokens) {
  if (!booking_ || !booking_->track_output) return;
  const std::uint64_t blocks = tokens / booking_->block_size;
  if (blocks <= booking_->output_blocks) return;
  BlockWeight weight = booking_->weight;
  if (booking_->expected_output) {
    const double done =
        static_cast<double>(tokens) / static_cast<double>(*booking_->expected_output);
    weight = weight_of(1 - done);  // without an expectation `done` is infinite
  }
  booking_->ledger->grow_output(*booking_, blocks, weight);
}

void LoadLedger::Entry::free(Time now) {
  if (!booking_) return;
  const auto booking = std::move(booking_);
  booking->ledger->end(*booking, now);
}

LoadLedger::Entry LoadLedger::book(RankKey key, std::shared_ptr<RankLoad> load, LegLoad what,
                                   Time now) {
  auto booking = std::make_unique<Entry::Booking>();
  booking->ledger = shared_from_this();
  booking->latest = now;
  booking->block_size = std::max(what.block_size, 1U);
  booking->expected_output = what.expected_output;
  booking->track_output = what.track_output;
  const std::size_t chained = what.chain ? what.chain->size() : 0;
  booking->own_blocks = what.blocks - std::min<std::uint64_t>(chained, what.blocks);
  BlockWeight weight = booking->own_weight();
  if (chained > 0) {
    const locks::Lock lock(mutex_);
    booking->slot = take_slot(key, *load);
    const ActiveBlocks::Added added = active_.add(booking->slot, std::move(what.chain));
    booking->end = added.end;
    weight += added.change;
  }
  if (what.prefill_tokens > 0) {
    booking->in_prefill = true;
    booking->prompt.tokens = static_cast<std::int64_t>(what.prefill_tokens);
    booking->prompt.duration = what.prefill_time;
    booking->prompt.step = what.step_time;
    load->backlog_.add(booking->prompt, now);
  }
  load->decode_.fetch_add(weight, std::memory_order_relaxed);
  load->requests_.fetch_add(1, std::memory_order_relaxed);
  booking->load = std::move(load);
  return Entry(std::move(booking));
}

void LoadLedger::shared(std::span<const std::uint64_t> chain,
                        std::vector<std::pair<RankKey, std::uint32_t>>& out) const {
  out.clear();
  const locks::Lock lock(mutex_);
  const TrackedRank* const ranks = ranks_.data();  // for the lambda, which runs under the lock
  active_.visit_shared(chain, [ranks, &out](ActiveBlocks::Slot slot, std::size_t blocks) {
    out.emplace_back(ranks[slot].key, static_cast<std::uint32_t>(blocks));
  });
}

std::size_t LoadLedger::tracked_blocks() const {
  const locks::Lock lock(mutex_);
  return active_.blocks();
}

void LoadLedger::complete_prefill(Entry::Booking& booking, Time now) {
  booking.latest = std::max(booking.latest, now);
  if (!std::exchange(booking.in_prefill, false)) return;
  booking.load->backlog_.remove(booking.prompt, booking.latest);
}

void LoadLedger::grow_output(Entry::Booking& booking, std::uint64_t blocks, BlockWeight weight) {
  const BlockWeight before = booking.own_weight();
  const BlockWeight old = std::exchange(booking.weight, weight);
  booking.output_blocks = blocks;
  BlockWeight change = booking.own_weight() - before;
  if (booking.end != nullptr && weight != old) {
    const locks::Lock lock(mutex_);
    change += active_.reweigh(booking.slot, booking.end, old, weight);
  }
  booking.load->decode_.fetch_add(change, std::memory_order_relaxed);
}

void LoadLedger::end(Entry::Booking& booking, Time now) {
  complete_prefill(booking, now);
  BlockWeight change = -booking.own_weight();
  if (booking.end != nullptr) {
    const locks::Lock lock(mutex_);
    change += active_.remove(booking.slot, booking.end, booking.weight);
    give_back(booking.slot);
  }
  booking.load->decode_.fetch_add(change, std::memory_order_relaxed);
  booking.load->requests_.fetch_sub(1, std::memory_order_relaxed);
}

ActiveBlocks::Slot LoadLedger::take_slot(RankKey key, const RankLoad& load) {
  const auto [known, is_new] = slots_.try_emplace(&load, 0);
  if (is_new) {
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<ActiveBlocks::Slot>(ranks_.size()));
      ranks_.emplace_back();
    }
    known->second = free_slots_.back();
    free_slots_.pop_back();
    ranks_[known->second] = TrackedRank{key, &load, 0};
  }
  ++ranks_[known->second].entries;
  return known->second;
}

void LoadLedger::give_back(ActiveBlocks::Slot slot) {
  if (--ranks_[slot].entries > 0) return;
  slots_.erase(ranks_[slot].load);
  free_slots_.push_back(slot);
}

}  // namespace baton::scheduling
