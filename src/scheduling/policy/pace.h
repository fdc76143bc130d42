// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/policy/prefill_backlog.h"
#include "scheduling/policy/published_speed.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace baton::scheduling {

// Role. The least-squares fit of seconds = floors x a + tokens x b to the measurements. Old ones
//   fade, so that it follows a rank that changes.
// Confinement. None of its own: its owner locks.
// Invariants. Neither a nor b is negative, and b is not 0.
class SpeedFit {
 public:
  // `steps` steps in a row. Each has a floor of its own, unless `floors` says otherwise: the floor
  // of a full step is part of its tokens' time.
  struct Measured {
    double tokens = 0;
    double seconds = 0;
    double steps = 1;
    double floors = 1;
  };
  void add(const Measured& measured);
  // `prior` counts like a few measurements and fades; a little of it stays, so that short prompts
  // do not determine the speed of long ones.
  PrefillSpeed speed(const PrefillSpeed& prior) const;
  // The rank has changed: what was measured so far counts for little.
  void distrust();
  std::uint64_t measured() const { return measured_; }

 private:
  void fade(double kept);

  std::uint64_t measured_ = 0;  // steps
  // Sums over the steps, and of products; the oldest have the least weight.
  double steps_ = 0;
  double floors_ = 0;
  double tokens_ = 0;
  double floors_floors_ = 0;
  double floors_tokens_ = 0;
  double floors_seconds_ = 0;
  double tokens_tokens_ = 0;
  double tokens_seconds_ = 0;
};

// Role. The common measurements of ranks of one kind: the estimate for a new rank.
// Confinement. Any thread; readers take no lock.
// Lifetime. Shared by the ranks.
class SiblingPace {
 public:
  PrefillSpeed speed() const { return speed_.load().value_or(kUnmeasuredSpeed); }
  void add(const SpeedFit::Measured& measured, Time now);

 private:
  PublishedSpeed speed_;
  locks::Mutex mutex_;
  SpeedFit fit_ GUARDED_BY(mutex_);
};

// A rank's speed: its own measurements, if any; the fewer and older they are, the more its
// siblings' count; null: it has none.
inline PrefillSpeed speed_of(const PublishedSpeed& own, const SiblingPace* siblings, Time now) {
  const auto measured = own.load();
  if (siblings == nullptr) return measured.value_or(kUnmeasuredSpeed);
  const PrefillSpeed usual = siblings->speed();
  if (!measured) return usual;
  const double trust = own.trust(now);
  if (trust == 1) return *measured;
  const auto mixed = [trust](double mine, double theirs) {
    return theirs + trust * (mine - theirs);
  };
  return {.seconds_per_step = mixed(measured->seconds_per_step, usual.seconds_per_step),
          .seconds_per_token = mixed(measured->seconds_per_token, usual.seconds_per_token)};
}

// Role. Learns how fast one rank prefills from the times when prompts were sent and answered.
//   Prompts that are answered at the same moment were computed in one step. While there was work,
//   the time from one such moment to the next is the duration of the step. A step was full if it
//   left behind a prompt that was there when it began: an unknown part of its time went into that
//   prompt. It is measured together with the following steps, until a step leaves no prompt behind,
//   or until the unknown parts at the ends no longer matter.
// Confinement. Any thread; a lock for a few sums, and readers take none.
// Lifetime. As long as the rank; shared with the requests sent there.
// Invariants. Each sent() ends in one computed() or one lost(). A single outlier moves the speed
//   only a little; several in a row, all slower or all faster, replace what was learned before.
class Pace {
 public:
  // Answers closer together than this, or than this share of their step, come from one step of the
  // engine: a busy machine forwards them one after the other.
  static constexpr std::chrono::milliseconds kSameStep{2};
  static constexpr double kSameStepShare = 0.25;

  // `siblings`: null if it has none. The learned speed is written to `published`.
  explicit Pace(std::shared_ptr<SiblingPace> siblings = nullptr,
                std::shared_ptr<PublishedSpeed> published = std::make_shared<PublishedSpeed>());

  void sent(Time now);
  // Its prefill is complete; `tokens` of it were in no cache.
  void computed(Time now, std::uint64_t tokens);
  // The request failed or was cancelled: the computed part of it is unknown.
  void lost(Time now);

  // See speed_of().
  PrefillSpeed speed(Time now) const { return speed_of(*published_, siblings_.get(), now); }
  bool measured() const { return published_->load().has_value(); }

 private:
  // The prompts computed in one step, as far as is known.
  struct Step {
    std::uint64_t prompts = 0;
    double tokens = 0;
    double largest = 0;  // of its prompts
    double seconds = 0;
    double until_first = 0;            // of these, until the first answer
    std::uint64_t there_at_first = 0;  // prompts that were there at that answer, with its own
  };
  // Steps in a row.
  struct Window {
    double steps = 0;
    std::uint64_t prompts = 0;
    double tokens = 0;
    double largest = 0;
    double seconds = 0;
  };

  void one_less() REQUIRES(mutex_);
  void close_step() REQUIRES(mutex_);
  void close_window(double floors) REQUIRES(mutex_);
  void forget_window() REQUIRES(mutex_);
  void notice_change(double ratio) REQUIRES(mutex_);

  const std::shared_ptr<SiblingPace> siblings_;
  const std::shared_ptr<PublishedSpeed> published_;

  locks::Mutex mutex_;
  SpeedFit fit_ GUARDED_BY(mutex_);
  std::uint64_t outstanding_ GUARDED_BY(mutex_) = 0;
  // The last answer, or when it was idle before: what was sent first.
  Time since_ GUARDED_BY(mutex_);
  // Part of the time since went into a prompt that was lost.
  bool blurred_ GUARDED_BY(mutex_) = false;
  Step step_ GUARDED_BY(mutex_);
  bool answered_ GUARDED_BY(mutex_) = false;    // since it was idle
  std::uint64_t there_ GUARDED_BY(mutex_) = 0;  // when the step began
  Window window_ GUARDED_BY(mutex_);
  // The step before the interval left a prompt behind.
  bool begun_full_ GUARDED_BY(mutex_) = false;
  // Measurements in a row far above the expectation; below zero: far below it.
  int outliers_ GUARDED_BY(mutex_) = 0;
  bool shares_steps_ GUARDED_BY(mutex_) = false;  // two were answered within kSameStep once
};

}  // namespace baton::scheduling
