// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/policy/prefill_backlog.h"
#include "scheduling/policy/published_speed.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

namespace baton::scheduling {

// Role. The line through what was measured, by least squares: seconds = a + tokens x b. Old
//   measurements fade, so that it follows a rank that changes.
// Confinement. None of its own: its owner locks.
// Invariants. Neither a nor b is negative, and b is not 0.
class SpeedFit {
 public:
  void add(double tokens, double seconds);
  // `prior` counts like a few measurements and fades; a little of it stays, so that short prompts do not
  // say what long ones take.
  PrefillSpeed speed(const PrefillSpeed& prior) const;
  std::uint64_t measured() const { return measured_; }

 private:
  std::uint64_t measured_ = 0;
  // Sums of products, the oldest weighing least.
  double count_ = 0;
  double tokens_ = 0;
  double seconds_ = 0;
  double tokens_tokens_ = 0;
  double tokens_seconds_ = 0;
};

// Role. What ranks of one kind have measured together: the guess for one that is new.
// Confinement. Any thread; readers take no lock.
// Lifetime. Shared by the ranks.
class SiblingPace {
 public:
  PrefillSpeed speed() const { return speed_.load().value_or(kUnmeasuredSpeed); }
  void add(double tokens, double seconds, Time now);

 private:
  PublishedSpeed speed_;
  std::mutex mutex_;
  SpeedFit fit_;
};

// How fast a rank is that has measured so much itself, if anything: while it has not, and the more the
// longer ago that was, as its siblings are; null: it has none.
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

// Role. Learns how fast one rank prefills from what a router sees: when prompts were sent, and when
//   they were answered. Prompts that are answered in the same moment were computed in one step. The time
//   from one such moment to the next, while there was something to do, is what the step has taken.
// Confinement. Any thread; a lock for a few sums, and readers take none.
// Lifetime. As long as the rank; shared with what was sent there.
// Invariants. Each sent() ends in one computed() or one lost(). A single outlier moves the speed only
//   a little.
class Pace {
 public:
  // Answers closer together than this, or than this share of what their step has taken, come from one
  // step of the engine: a busy machine passes them on one after the other.
  static constexpr std::chrono::milliseconds kSameStep{2};
  static constexpr double kSameStepShare = 0.25;

  // `siblings`: null where it has none. What it learns stands in `published`.
  explicit Pace(std::shared_ptr<SiblingPace> siblings = nullptr,
                std::shared_ptr<PublishedSpeed> published = std::make_shared<PublishedSpeed>());

  void sent(Time now);
  // Its prefill is complete; `tokens` of it were in no cache.
  void computed(Time now, std::uint64_t tokens);
  // It has failed or was cancelled: how much of it was computed nobody knows.
  void lost(Time now);

  // See speed_of().
  PrefillSpeed speed(Time now) const { return speed_of(*published_, siblings_.get(), now); }
  bool measured() const { return published_->load().has_value(); }

 private:
  // What was computed in one step, as far as is known.
  struct Step {
    std::uint64_t prompts = 0;
    double tokens = 0;
    double seconds = 0;
    double until_first = 0;  // of these, until the first answer
  };

  // The following require: mutex_ is held.
  void one_less();
  void close_step();

  const std::shared_ptr<SiblingPace> siblings_;
  const std::shared_ptr<PublishedSpeed> published_;

  std::mutex mutex_;
  SpeedFit fit_;
  std::uint64_t outstanding_ = 0;
  Time since_;            // the last answer, or when it was idle before: what was sent first
  bool blurred_ = false;  // part of the time since went into a prompt that was lost
  Step step_;
};

}  // namespace baton::scheduling
