// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace baton::routing {

using Clock = std::chrono::steady_clock;  // whose times are passed in: none is asked here
using Time = Clock::time_point;

// Role. The prompts that one rank has still to compute, and how far it must have come with them.
//   Time since the oldest one got its turn is progress; it is taken off all of them, or where the
//   duration of some is not known, off the oldest alone.
// Confinement. Any thread; readers take no lock.
// Lifetime. Outlives the prompts that are in it.
// Invariants. Nothing is ever below zero. Time does not run backwards: the latest one seen counts.
class PrefillBacklog {
 public:
  // Requires: stays where it is while it is in a backlog.
  struct Prompt {
    std::int64_t tokens = 0;
    std::optional<std::chrono::nanoseconds> duration;  // absent: not modelled

   private:
    friend class PrefillBacklog;
    Prompt* previous_ = nullptr;
    Prompt* next_ = nullptr;
  };

  PrefillBacklog() = default;
  PrefillBacklog(const PrefillBacklog&) = delete;
  PrefillBacklog& operator=(const PrefillBacklog&) = delete;

  // Requires: prompt is in no backlog, its tokens and its duration are not negative.
  void add(Prompt& prompt, Time now);
  // Requires: prompt is in this one.
  void remove(Prompt& prompt, Time now);

  std::int64_t tokens() const { return words_.tokens.load(std::memory_order_relaxed); }
  double tokens(Time now) const;
  double seconds(Time now) const;

 private:
  static constexpr std::int64_t kUnmodelled = -1;

  // What a reader needs, all of the same moment. Times in nanoseconds.
  struct Summary {
    std::int64_t tokens = 0;         // of all
    std::int64_t duration = 0;       // of all that are modelled
    std::uint32_t unmodelled = 0;    // how many
    std::int64_t oldest_tokens = 0;  // of the oldest
    std::int64_t oldest_duration = kUnmodelled;
    std::int64_t oldest_since = 0;  // when it got its turn, later by what others have used of it
  };
  // The same behind a counter that is odd while they change.
  struct Words {
    std::atomic<std::uint32_t> version{0};
    std::atomic<std::uint32_t> unmodelled{0};
    std::atomic<std::int64_t> tokens{0};
    std::atomic<std::int64_t> duration{0};
    std::atomic<std::int64_t> oldest_tokens{0};
    std::atomic<std::int64_t> oldest_duration{kUnmodelled};
    std::atomic<std::int64_t> oldest_since{0};
  };

  Summary read() const;
  // The following require: mutex_ is held.
  void publish();
  void start_oldest();
  std::int64_t at(Time now);

  Words words_;
  std::mutex mutex_;
  Summary current_;
  std::int64_t latest_ = 0;
  Prompt* oldest_ = nullptr;
  Prompt* newest_ = nullptr;
};

}  // namespace baton::routing
