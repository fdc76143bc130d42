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

// Role. The best fit, by least squares, of seconds = floors x a + tokens x b through what was measured. Old
//   measurements fade, so that it follows a rank that changes.
// Confinement. None of its own: its owner locks.
// Invariants. Neither a nor b is negative, and b is not 0.
class SpeedFit {
 public:
  // `steps` steps in a row. Each has a floor of its own, except where `floors` says otherwise: the floor of
  // a full step is part of what its tokens take.
  struct Measured {
    double tokens = 0;
    double seconds = 0;
    double steps = 1;
    double floors = 1;
  };
  void add(const Measured& measured);
  // `prior` counts like a few measurements and fades; a little of it stays, so that short prompts do not
  // say what long ones take.
  PrefillSpeed speed(const PrefillSpeed& prior) const;
  std::uint64_t measured() const { return measured_; }

 private:
  std::uint64_t measured_ = 0;  // steps
  // Sums for each step, and of products, the oldest weighing least.
  double steps_ = 0;
  double floors_ = 0;
  double tokens_ = 0;
  double floors_floors_ = 0;
  double floors_tokens_ = 0;
  double floors_seconds_ = 0;
  double tokens_tokens_ = 0;
  double tokens_seconds_ = 0;
};

// Role. What ranks of one kind have measured together: the guess for one that is new.
// Confinement. Any thread; readers take no lock.
// Lifetime. Shared by the ranks.
class SiblingPace {
 public:
  PrefillSpeed speed() const { return speed_.load().value_or(kUnmeasuredSpeed); }
  void add(const SpeedFit::Measured& measured, Time now);

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
//   A step that leaves a prompt behind which was there when it began was full: an unknown part of its time
//   went into that prompt. It is measured together with the steps that follow, until a step leaves nobody
//   behind, or until the unknown parts at the ends no longer matter.
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
    double largest = 0;  // of its prompts
    double seconds = 0;
    double until_first = 0;            // of these, until the first answer
    std::uint64_t there_at_first = 0;  // prompts that were there at that answer, with its own
  };
  // Steps in a row.
  struct Stretch {
    double steps = 0;
    std::uint64_t prompts = 0;
    double tokens = 0;
    double largest = 0;
    double seconds = 0;
  };

  // The following require: mutex_ is held.
  void one_less();
  void close_step();
  void close_stretch(double floors);
  void forget_stretch();

  const std::shared_ptr<SiblingPace> siblings_;
  const std::shared_ptr<PublishedSpeed> published_;

  std::mutex mutex_;
  SpeedFit fit_;
  std::uint64_t outstanding_ = 0;
  Time since_;            // the last answer, or when it was idle before: what was sent first
  bool blurred_ = false;  // part of the time since went into a prompt that was lost
  Step step_;
  bool answered_ = false;    // since it was idle
  std::uint64_t there_ = 0;  // when the step began
  Stretch stretch_;
  bool begun_full_ = false;    // the step before the stretch left somebody behind
  bool shares_steps_ = false;  // two were answered within kSameStep once
};

}  // namespace baton::scheduling
