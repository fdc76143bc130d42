// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

namespace baton::scheduling {

using Clock = std::chrono::steady_clock;  // times are passed in; the clock is not read here
using Time = Clock::time_point;

// How long a rank takes for a step: a floor, which the prompts of the step share, and the tokens it
// must compute.
struct PrefillSpeed {
  double seconds_per_step = 0;
  double seconds_per_token = 0;

  // A prompt that finds the rank idle.
  double seconds(double tokens) const { return seconds_per_step + seconds_of(tokens); }
  // A prompt that joins others in their step.
  double seconds_of(double tokens) const { return seconds_per_token * std::max(0.0, tokens); }
  bool operator==(const PrefillSpeed&) const = default;
};

// The speed before any measurement. Any number will do: until then queues and prompts are compared
// in the same wrong unit.
inline constexpr PrefillSpeed kUnmeasuredSpeed{.seconds_per_step = 0.005,
                                               .seconds_per_token = 1.0 / 20'000};

// Role. A speed with one writer and many readers. An old one counts for less.
// Confinement. Any thread. A read during a write may see one number of the old speed and one of the
//   new.
class PublishedSpeed {
 public:
  void store(const PrefillSpeed& speed, Time now) {
    measured_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    per_step_.store(speed.seconds_per_step, std::memory_order_relaxed);
    per_token_.store(speed.seconds_per_token, std::memory_order_release);
  }
  // Nothing before the first store.
  std::optional<PrefillSpeed> load() const {
    const double per_token = per_token_.load(std::memory_order_acquire);
    if (per_token < 0) return std::nullopt;
    return PrefillSpeed{.seconds_per_step = per_step_.load(std::memory_order_relaxed),
                        .seconds_per_token = per_token};
  }

  // The weight of a measurement against the usual speed: full while it is fresh, then falling, so
  // that a rank that was slow once is tried again after some seconds.
  double trust(Time now) const {
    const Clock::duration age =
        now - Time(Clock::duration(measured_at_.load(std::memory_order_relaxed)));
    if (age <= kFresh) return 1;
    return std::exp2(-std::chrono::duration<double>(age - kFresh) / kHalfLife);
  }

 private:
  static constexpr double kNothing = -1;
  static constexpr std::chrono::seconds kFresh{2};
  static constexpr std::chrono::duration<double> kHalfLife{0.5};
  std::atomic<double> per_step_{kNothing};
  std::atomic<double> per_token_{kNothing};
  std::atomic<Clock::rep> measured_at_{0};
};

}  // namespace baton::scheduling
