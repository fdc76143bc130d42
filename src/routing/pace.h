// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "routing/prefill_backlog.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

namespace baton::routing {

// How long a rank takes for a prompt that finds it idle.
struct PrefillSpeed {
  double seconds_per_prompt = 0;
  double seconds_per_token = 0;  // of those it must compute

  double seconds(double tokens) const {
    return seconds_per_prompt + seconds_per_token * std::max(0.0, tokens);
  }
  bool operator==(const PrefillSpeed&) const = default;
};

// Where nobody has measured anything yet. Any number does: until then queues and prompts are
// compared in the same wrong unit.
inline constexpr PrefillSpeed kUnmeasuredSpeed{.seconds_per_prompt = 0.005,
                                               .seconds_per_token = 1.0 / 20'000};

// Role. The line through what was measured, by least squares: seconds = prompts x a + tokens x b.
//   Old measurements fade, so that it follows a rank that changes.
// Confinement. None of its own: its owner locks.
// Invariants. Neither a nor b is negative, and b is not 0.
class SpeedFit {
 public:
  // `prompts` were computed in one go.
  void add(double prompts, double tokens, double seconds);
  // `prior` counts like a few measurements and fades like them.
  PrefillSpeed speed(const PrefillSpeed& prior) const;
  std::uint64_t measured() const { return measured_; }

 private:
  std::uint64_t measured_ = 0;
  // Sums of products, the oldest weighing least.
  double prompts_ = 0;
  double tokens_ = 0;
  double seconds_ = 0;
  double prompts_prompts_ = 0;
  double prompts_tokens_ = 0;
  double tokens_tokens_ = 0;
  double prompts_seconds_ = 0;
  double tokens_seconds_ = 0;
};

// Role. A prefill speed that one writes and all read.
// Confinement. Any thread. Who reads while it is written may see one number of the old speed and one
//   of the new.
class PublishedSpeed {
 public:
  void store(const PrefillSpeed& speed) {
    per_prompt_.store(speed.seconds_per_prompt, std::memory_order_relaxed);
    per_token_.store(speed.seconds_per_token, std::memory_order_relaxed);
  }
  PrefillSpeed load() const {
    return {.seconds_per_prompt = per_prompt_.load(std::memory_order_relaxed),
            .seconds_per_token = per_token_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<double> per_prompt_{kUnmeasuredSpeed.seconds_per_prompt};
  std::atomic<double> per_token_{kUnmeasuredSpeed.seconds_per_token};
};

// Role. What ranks of one kind have measured together: the guess for one that is new.
// Confinement. Any thread; readers take no lock.
// Lifetime. Shared by the ranks.
class SiblingPace {
 public:
  PrefillSpeed speed() const { return speed_.load(); }
  void add(double prompts, double tokens, double seconds);

 private:
  PublishedSpeed speed_;
  std::mutex mutex_;
  SpeedFit fit_;
};

// Role. Learns how fast one rank prefills from what a router sees: when prompts were sent, and when
//   they were answered. The time from one answer to the next, while there was something to do, is what
//   the answered prompt has cost, whether it had waited or shared its steps with others: over many,
//   what one got for nothing another has paid.
// Confinement. Any thread; a lock for a few sums, and readers take none.
// Lifetime. As long as the rank; shared with what was sent there.
// Invariants. Each sent() ends in one computed() or one lost(). A single outlier moves the speed only
//   a little.
class Pace {
 public:
  // Answers closer together than this come from the same step of the engine.
  static constexpr std::chrono::milliseconds kSameStep{2};

  // Null: it has no siblings.
  explicit Pace(std::shared_ptr<SiblingPace> siblings = nullptr);

  void sent(Time now);
  // Its prefill is complete; `tokens` of it were in no cache.
  void computed(Time now, std::uint64_t tokens);
  // It has failed or was cancelled: how much of it was computed nobody knows.
  void lost(Time now);

  // Its own, or while it has none its siblings'.
  PrefillSpeed speed() const { return measured() ? speed_.load() : prior(); }
  bool measured() const { return measured_.load(std::memory_order_acquire); }

 private:
  // What was computed in one step, as far as is known.
  struct Group {
    double prompts = 0;
    double tokens = 0;
    double seconds = 0;
  };

  PrefillSpeed prior() const { return siblings_ ? siblings_->speed() : kUnmeasuredSpeed; }
  // The following require: mutex_ is held.
  void one_less();
  void close_group();

  const std::shared_ptr<SiblingPace> siblings_;
  std::atomic<bool> measured_{false};
  PublishedSpeed speed_;

  std::mutex mutex_;
  SpeedFit fit_;
  std::uint64_t outstanding_ = 0;
  Time since_;            // the last answer, or when it was idle before: what was sent first
  bool blurred_ = false;  // part of the time since went into a prompt that was lost
  Group group_;
};

}  // namespace baton::routing
