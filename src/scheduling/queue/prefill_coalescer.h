// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/queue/class_queue.h"
#include "scheduling/queue/coalescing_table.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace baton::scheduling {

class PrefillCoalescer;

// Role. Marks its holder as the one that computes a prefix, so that others need not: until it is
//   done, or, if it is dropped before, has failed.
// Confinement. One thread at a time.
// Lifetime. Keeps its PrefillCoalescer alive.
class LeaderLease {
 public:
  LeaderLease() = default;
  LeaderLease(LeaderLease&& other) noexcept = default;
  LeaderLease& operator=(LeaderLease&& other) noexcept;
  ~LeaderLease();

  // The blocks are in a worker's cache now: the requests that waited for them go on.
  void done();
  // The cache view may include its blocks now: the requests that wait for them look again.
  void counted() const;
  explicit operator bool() const { return coalescer_ != nullptr; }

 private:
  friend class PrefillCoalescer;
  LeaderLease(std::shared_ptr<PrefillCoalescer> followers, Leader leader)
      : coalescer_(std::move(followers)), leader_(leader) {}

  std::shared_ptr<PrefillCoalescer> coalescer_;  // null: it leads no group
  Leader leader_ = 0;
};

// The prefill that a coalesced request waits for.
struct FollowedPrefill {
  std::shared_ptr<FollowerGroup> group;
  WaitKey awaits() const;
  // The wait is over, whatever the cache view says.
  bool over() const { return group->succeeded; }
};

// Role. Coalesces prefills: of many requests with the same cold prefix one computes it and the rest
//   wait for that. For one model and namespace. They wait in the queue, in a bucket of their leader.
// Confinement. Any thread.
// Lifetime. Held by shared_ptr.
// Invariants. A leader has been booked. If a leader fails, the first of its followers to be booked
//   replaces it and the others follow it, as far as they have enough in common. Memory is bounded:
//   a forgotten prefix is computed twice.
class PrefillCoalescer : public std::enable_shared_from_this<PrefillCoalescer> {
 public:
  // No request follows longer than this.
  static constexpr std::chrono::seconds kLongest{30};

  // `tokens`: the least common prefix for which a request waits for a leader; 0: no coalescing.
  // `changed` is called when the waiting requests are to be tried again.
  explicit PrefillCoalescer(std::uint64_t tokens, std::function<void()> changed = {});
  ~PrefillCoalescer();
  PrefillCoalescer(const PrefillCoalescer&) = delete;
  PrefillCoalescer& operator=(const PrefillCoalescer&) = delete;

  // The request that computes this beginning now, to follow it, if there is one.
  std::optional<FollowedPrefill> find(const Chain& chain);
  // For a booked request: it leads, unless its prompt is too short for others to wait for. Or
  // returns the prefill to follow instead, if another request was booked for the same at this
  // moment. `before`: the prefill it followed, if any: the requests that still follow that one now
  // follow it.
  std::expected<LeaderLease, FollowedPrefill> lead(
      const Chain& chain, const std::optional<FollowedPrefill>& before = {});

  std::size_t blocks() const;

 private:
  friend class LeaderLease;

  void counted(Leader leader);
  void finish(Leader leader, CoalescingTable::End end);
  FollowedPrefill follow(Leader leader) REQUIRES(mutex_);

  mutable locks::Mutex mutex_;
  CoalescingTable table_ GUARDED_BY(mutex_);
  const std::function<void()> changed_;
};

}  // namespace baton::scheduling
