// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/queue/class_queue.h"
#include "scheduling/queue/coalescing_table.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace baton::scheduling {

class PrefillCoalescer;

// Role. Says that its holder computes the beginning of a prompt, so that others need not: until it is
//   done, or, where it goes without, has failed.
// Confinement. One thread at a time.
// Lifetime. Keeps its PrefillCoalescer alive.
class LeaderLease {
 public:
  LeaderLease() = default;
  LeaderLease(LeaderLease&& other) noexcept = default;
  LeaderLease& operator=(LeaderLease&& other) noexcept;
  ~LeaderLease();

  // The blocks are in a worker's cache now: those who waited for them go on.
  void done();
  // What caches are believed to have includes its blocks now, perhaps: whoever waits for them looks.
  void counted() const;
  explicit operator bool() const { return coalescer_ != nullptr; }

 private:
  friend class PrefillCoalescer;
  LeaderLease(std::shared_ptr<PrefillCoalescer> followers, Leader leader)
      : coalescer_(std::move(followers)), leader_(leader) {}

  std::shared_ptr<PrefillCoalescer> coalescer_;  // null: it leads nobody
  Leader leader_ = 0;
};

// What a request waits for that follows another one.
struct FollowedPrefill {
  std::shared_ptr<FollowerGroup> pack;
  WaitKey awaits() const;
  // There is nothing to wait for any more, whatever caches are believed to have.
  bool over() const { return pack->succeeded; }
};

// Role. Sees to it that of many requests with the same cold beginning one computes it and the rest
//   wait for that. For one model and namespace. They wait at the gate, in a lane of their leader's.
// Confinement. Any thread.
// Lifetime. Held by shared_ptr.
// Invariants. Who leads has been booked. Where a leader fails, the first of its followers to be booked
//   takes its place and the others follow it, as far as they have enough in common. Memory is
//   bounded: what is not remembered is computed twice.
class PrefillCoalescer : public std::enable_shared_from_this<PrefillCoalescer> {
 public:
  // Nobody follows longer than this.
  static constexpr std::chrono::seconds kLongest{30};

  // `tokens`: whoever has less in common with a leader does not wait for it; 0: nobody does.
  // `changed` is called when those who follow are to be tried again.
  explicit PrefillCoalescer(std::uint64_t tokens, std::function<void()> changed = {});
  ~PrefillCoalescer();
  PrefillCoalescer(const PrefillCoalescer&) = delete;
  PrefillCoalescer& operator=(const PrefillCoalescer&) = delete;

  // For a request that is to follow the one who computes its beginning now, if there is one.
  std::optional<FollowedPrefill> find(const Chain& chain);
  // For one who has been booked: it leads, unless it has too little that others could wait for. Or
  // whom it is to follow instead, where another one was booked for the same in this moment. `before`:
  // whom it followed, if it did: those who still do follow it now.
  std::expected<LeaderLease, FollowedPrefill> lead(
      const Chain& chain, const std::optional<FollowedPrefill>& before = {});

  std::size_t blocks() const;

 private:
  friend class LeaderLease;

  void counted(Leader leader);
  void finish(Leader leader, CoalescingTable::End end);
  // Requires: mutex_ is held.
  FollowedPrefill follow(Leader leader);

  mutable std::mutex mutex_;
  CoalescingTable table_;
  const std::function<void()> changed_;
};

}  // namespace baton::scheduling
