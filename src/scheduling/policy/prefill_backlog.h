// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/policy/published_speed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace baton::scheduling {

// Role. The prompts that one rank has still to compute, and its estimated progress. Time since the
//   oldest one got its turn is progress; it is subtracted from all of them, or, if the duration of
//   some is unknown, from the oldest alone. A rank computes in steps: prompts that come during a
//   step are computed in the next one together, so the floor of a step counts once.
// Confinement. Any thread; readers take no lock.
// Lifetime. Outlives the prompts that are in it.
// Invariants. Nothing is ever below zero. Time does not run backwards: the latest one seen counts.
class PrefillBacklog {
 public:
  // Requires: its address does not change while it is in a backlog.
  struct Prompt {
    std::int64_t tokens = 0;
    std::optional<std::chrono::nanoseconds> duration;  // in a step of others; absent: not modelled
    std::chrono::nanoseconds step{0};                  // more, where it is the first of its step

   private:
    friend class PrefillBacklog;
    Prompt* previous_ = nullptr;
    Prompt* next_ = nullptr;
  };

  PrefillBacklog() = default;
  PrefillBacklog(const PrefillBacklog&) = delete;
  PrefillBacklog& operator=(const PrefillBacklog&) = delete;

  // If the prompt is the first of its step, `step` is added to its duration. Requires: prompt is in
  // no backlog, its tokens and its durations are not negative.
  void add(Prompt& prompt, Time now);
  // Requires: prompt is in this one.
  void remove(Prompt& prompt, Time now);

  std::int64_t tokens() const { return words_.tokens.load(std::memory_order_relaxed); }
  double tokens(Time now) const;
  double seconds(Time now) const { return line(now).seconds; }
  struct Line {
    double seconds = 0;  // until all of it is computed
    bool open = false;   // the next step has a prompt already that one more joins
  };
  Line line(Time now) const;

 private:
  static constexpr std::int64_t kUnmodelled = -1;
  static constexpr std::uint32_t kOpen = 1U << 31;  // beside the number of unmodelled ones

  // The values a reader needs, all of the same moment. Times in nanoseconds.
  struct Summary {
    std::int64_t tokens = 0;         // of all
    std::int64_t duration = 0;       // of all that are modelled
    std::uint32_t unmodelled = 0;    // how many
    bool open = false;               // a prompt came since the oldest got its turn
    std::int64_t oldest_tokens = 0;  // of the oldest
    std::int64_t oldest_duration = kUnmodelled;
    std::int64_t oldest_since = 0;  // when it got its turn, moved forward by the time of others
  };
  // The same behind a counter that is odd while they change.
  struct Words {
    std::atomic<std::uint32_t> version{0};
    std::atomic<std::uint32_t> unmodelled{0};  // and kOpen
    std::atomic<std::int64_t> tokens{0};
    std::atomic<std::int64_t> duration{0};
    std::atomic<std::int64_t> oldest_tokens{0};
    std::atomic<std::int64_t> oldest_duration{kUnmodelled};
    std::atomic<std::int64_t> oldest_since{0};
  };

  Summary read() const;
  static void wait_for_writer();
  static std::int64_t nanoseconds_of(Time time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  }
  void publish() REQUIRES(mutex_);
  void start_oldest() REQUIRES(mutex_);
  std::int64_t at(Time now) REQUIRES(mutex_);

  Words words_;
  locks::Mutex mutex_;
  Summary current_ GUARDED_BY(mutex_);
  std::int64_t latest_ GUARDED_BY(mutex_) = 0;
  Prompt* oldest_ GUARDED_BY(mutex_) = nullptr;
  Prompt* newest_ GUARDED_BY(mutex_) = nullptr;
};

// Here, since they are asked of thousands of ranks for each prompt.
inline double PrefillBacklog::tokens(Time now) const {
  const Summary seen = read();
  const auto all = static_cast<double>(seen.tokens);
  if (seen.oldest_duration == kUnmodelled) return all;
  const auto oldest = static_cast<double>(seen.oldest_tokens);
  if (seen.oldest_duration == 0) return all - oldest;
  const auto elapsed = std::max<std::int64_t>(0, nanoseconds_of(now) - seen.oldest_since);
  const double done =
      oldest * (static_cast<double>(elapsed) / static_cast<double>(seen.oldest_duration));
  return all - std::min(done, seen.unmodelled == 0 ? all : oldest);
}

inline PrefillBacklog::Line PrefillBacklog::line(Time now) const {
  const Summary seen = read();
  std::int64_t done = 0;
  if (seen.oldest_duration != kUnmodelled) {
    const auto elapsed = std::max<std::int64_t>(0, nanoseconds_of(now) - seen.oldest_since);
    const std::int64_t most = seen.unmodelled == 0 ? seen.duration : seen.oldest_duration;
    // When all should be done and nothing is, assume the same delay again: a stalled rank must not
    // look idle.
    done = elapsed <= most ? elapsed : 2 * most - elapsed;
  }
  return {std::chrono::duration<double>(std::chrono::nanoseconds(seen.duration - done)).count(),
          seen.open};
}

inline PrefillBacklog::Summary PrefillBacklog::read() const {
  // Each word is read with acquire and written with release: a reader that sees a new one also sees
  // that the counter has moved.
  constexpr int kSpins = 100;
  for (int spins = 0;; ++spins) {
    if (spins >= kSpins) wait_for_writer();
    const std::uint32_t version = words_.version.load(std::memory_order_acquire);
    if (version % 2 != 0) continue;
    const std::uint32_t unmodelled = words_.unmodelled.load(std::memory_order_acquire);
    const Summary seen{.tokens = words_.tokens.load(std::memory_order_acquire),
                       .duration = words_.duration.load(std::memory_order_acquire),
                       .unmodelled = unmodelled & ~kOpen,
                       .open = (unmodelled & kOpen) != 0,
                       .oldest_tokens = words_.oldest_tokens.load(std::memory_order_acquire),
                       .oldest_duration = words_.oldest_duration.load(std::memory_order_acquire),
                       .oldest_since = words_.oldest_since.load(std::memory_order_acquire)};
    if (words_.version.load(std::memory_order_relaxed) == version) return seen;
  }
}

}  // namespace baton::scheduling
