// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "scheduling/policy/block_weight.h"
#include "scheduling/policy/prefill_backlog.h"
#include "scheduling/policy/published_speed.h"

#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace baton::scheduling {

// A rank of a worker, as the ledger and the cache view name it.
struct RankKey {
  model::WorkerId worker;
  std::uint32_t rank = 0;
  auto operator<=>(const RankKey&) const = default;
};

struct RankKeyHash {
  std::size_t operator()(const RankKey& key) const {
    // Multiplying and folding twice moves every bit of the key into every bit of the hash.
    std::uint64_t mixed =
        (key.worker.value ^ (std::uint64_t{key.rank} << 32 | key.rank)) + 0x9E37'79B9'7F4A'7C15ULL;
    mixed = (mixed ^ mixed >> 30) * 0xBF58'476D'1CE4'E5B9ULL;
    mixed = (mixed ^ mixed >> 27) * 0x94D0'49BB'1331'11EBULL;
    return static_cast<std::size_t>(mixed ^ mixed >> 31);
  }
};

// Two lines of the processor's cache: it brings in both when one is wanted.
inline constexpr std::size_t kTwoLines = 128;
inline constexpr std::size_t kLine = kTwoLines / 2;

// Role. The load of one rank and its speed: all that a scorer reads of it. With thousands of ranks
//   scoring mostly waits for memory, so this lies in two cache lines.
// Confinement. Any thread reads, without a lock; only a LoadLedger and the learners of speeds
//   write.
// Lifetime. Shared by the fleet and by the bookings.
// Invariants. The load is 0 everywhere when nothing is booked.
class alignas(kTwoLines) RankLoad {
 public:
  std::int64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  // To be computed for requests before their first token, as booked.
  std::int64_t prefill_tokens() const { return backlog_.tokens(); }
  // The same, less the tokens that must have been computed since; modelled requests only.
  double prefill_tokens(Time now) const { return backlog_.tokens(now); }
  // Remaining prefill, as predicted at booking; 0 if nothing is modelled.
  double prefill_seconds(Time now) const { return backlog_.seconds(now); }
  PrefillBacklog::Line prefill_line(Time now) const { return backlog_.line(now); }
  // Prefill not booked there yet: requests elsewhere that wait for this rank.
  double awaited_seconds() const {
    constexpr double kNanosecond = 1e-9;
    return static_cast<double>(awaited_.load(std::memory_order_relaxed)) * kNanosecond;
  }
  // Active ones, equal prefixes once; output blocks by weight.
  double decode_blocks() const { return in_blocks(decode_.load(std::memory_order_relaxed)); }
  // Written by a Pace and a TransferPace.
  const PublishedSpeed& prefill_speed() const { return prefill_speed_; }
  PublishedSpeed& prefill_speed() { return prefill_speed_; }
  const PublishedSpeed& transfer_speed() const { return transfer_speed_; }
  PublishedSpeed& transfer_speed() { return transfer_speed_; }
  // Prefetches the load for a read that follows soon.
  void fetch() const { __builtin_prefetch(&requests_); }
  void fetch_all() const {
    __builtin_prefetch(&awaited_);
    __builtin_prefetch(&requests_);
  }

 private:
  friend class LoadLedger;
  friend class Awaiting;

  // The first line, read by forecasts.
  std::atomic<std::int64_t> awaited_{0};  // nanoseconds
  PublishedSpeed prefill_speed_;
  PublishedSpeed transfer_speed_;
  // The second line, for all.
  alignas(kLine) std::atomic<std::int64_t> requests_{0};
  std::atomic<BlockWeight> decode_{0};
  PrefillBacklog backlog_;  // which begins with what is read
};

// Role. Announces that a prompt waits for a rank to have time, so that others see the queue: as
//   long as this lives.
// Confinement. One thread at a time.
class Awaiting {
 public:
  Awaiting() = default;  // nothing is awaited
  Awaiting(std::shared_ptr<RankLoad> load, std::chrono::nanoseconds time)
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
  std::shared_ptr<RankLoad> load_;
  std::int64_t time_ = 0;
};

}  // namespace baton::scheduling
