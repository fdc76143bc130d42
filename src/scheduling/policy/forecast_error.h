// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/policy/published_speed.h"

#include <atomic>

namespace baton::scheduling {

// Role. How far forecasts of the workers of one set miss: the expected against the actual time of
//   each prompt. If they miss by much, load is a better guide than a forecast.
// Confinement. Any thread; a lock for one sum, and readers take none.
// Invariants. A single outlier moves the error only a little. The error fades while no prompt is
//   computed, so that forecasts are tried again.
class ForecastError {
 public:
  // Up to kTrusted forecasts alone decide; from kUseless on load alone does.
  static constexpr double kTrusted = 0.5;
  static constexpr double kUseless = 0.8;
  // A smaller miss counts as a fraction of this: engines look for new prompts once a step, and a
  // few milliseconds change no choice.
  static constexpr double kLeastSeconds = 0.02;

  // For one prompt, from its booking on: the expected and the actual seconds until it was computed.
  void add(double expected, double actual, Time now);
  // |expected - actual| / the larger of the two.
  static double missed(double expected, double actual);

  // The mean of missed() over the last few dozen prompts, from 0 to 1.
  double value(Time now) const;
  // How much forecasts count beside load, from 1 to 0.
  double trust(Time now) const;

 private:
  locks::Mutex mutex_;  // one adds at a time
  std::atomic<double> error_{0};
  std::atomic<Clock::rep> latest_{0};
};

}  // namespace baton::scheduling
