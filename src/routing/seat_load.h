// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "routing/block_weight.h"
#include "routing/prefill_backlog.h"

#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace baton::routing {

// A rank of a worker, as the ledger and the caches name it.
struct SeatKey {
  model::WorkerId worker;
  std::uint32_t rank = 0;
  auto operator<=>(const SeatKey&) const = default;
};

struct SeatKeyHash {
  std::size_t operator()(const SeatKey& seat) const {
    // Multiplying and folding twice moves every bit of the key into every bit of the hash.
    std::uint64_t mixed = (seat.worker.value ^ (std::uint64_t{seat.rank} << 32 | seat.rank)) +
                          0x9E37'79B9'7F4A'7C15ULL;
    mixed = (mixed ^ mixed >> 30) * 0xBF58'476D'1CE4'E5B9ULL;
    mixed = (mixed ^ mixed >> 27) * 0x94D0'49BB'1331'11EBULL;
    return static_cast<std::size_t>(mixed ^ mixed >> 31);
  }
};

// Role. What runs on one rank.
// Confinement. Any thread reads, without a lock; only a LoadLedger writes.
// Lifetime. Shared by the fleet and by what is booked on it.
// Invariants. 0 everywhere when nothing is booked.
class alignas(64) SeatLoad {
 public:
  std::int64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  // To be computed for requests before their first token, as booked.
  std::int64_t prefill_tokens() const { return backlog_.tokens(); }
  // The same less what must have been computed since; modelled requests only.
  double prefill_tokens(Time now) const { return backlog_.tokens(now); }
  // Of prefill still to do, as predicted when it was booked; 0 where nothing is modelled.
  double prefill_seconds(Time now) const { return backlog_.seconds(now); }
  // Of prefill that is not booked there yet: what waits elsewhere for this rank to have time.
  double awaited_seconds() const {
    constexpr double kNanosecond = 1e-9;
    return static_cast<double>(awaited_.load(std::memory_order_relaxed)) * kNanosecond;
  }
  // Active ones, equal beginnings once; output blocks by weight.
  double decode_blocks() const { return in_blocks(decode_.load(std::memory_order_relaxed)); }
  // Has it brought near: it will be looked at in a moment.
  void fetch() const {
    __builtin_prefetch(&requests_);
    __builtin_prefetch(&awaited_);
  }

 private:
  friend class LoadLedger;
  friend class Awaiting;

  std::atomic<std::int64_t> requests_{0};
  std::atomic<BlockWeight> decode_{0};
  PrefillBacklog backlog_;
  std::atomic<std::int64_t> awaited_{0};  // nanoseconds
};

// Role. Says that a prompt waits for a rank to have time, so that others see the line: for as long as
//   this lives.
// Confinement. One thread at a time.
class Awaiting {
 public:
  Awaiting() = default;  // nothing is awaited
  Awaiting(std::shared_ptr<SeatLoad> load, std::chrono::nanoseconds time)
      : load_(std::move(load)), time_(time.count()) {
    load_->awaited_.fetch_add(time_, std::memory_order_relaxed);
  }
  Awaiting(Awaiting&& other) noexcept
      : load_(std::exchange(other.load_, nullptr)), time_(other.time_) {}
  Awaiting& operator=(Awaiting&& other) noexcept {
    std::swap(load_, other.load_);
    std::swap(time_, other.time_);
    return *this;
  }
  ~Awaiting() {
    if (load_) load_->awaited_.fetch_sub(time_, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<SeatLoad> load_;
  std::int64_t time_ = 0;
};

}  // namespace baton::routing
