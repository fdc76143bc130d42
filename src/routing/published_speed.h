// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>

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

// Role. A speed that one writes and all read.
// Confinement. Any thread. Who reads while it is written may see one number of the old speed and one
//   of the new.
class PublishedSpeed {
 public:
  void store(const PrefillSpeed& speed) {
    per_prompt_.store(speed.seconds_per_prompt, std::memory_order_relaxed);
    per_token_.store(speed.seconds_per_token, std::memory_order_release);
  }
  // Nothing before the first store.
  std::optional<PrefillSpeed> load() const {
    const double per_token = per_token_.load(std::memory_order_acquire);
    if (per_token < 0) return std::nullopt;
    return PrefillSpeed{.seconds_per_prompt = per_prompt_.load(std::memory_order_relaxed),
                        .seconds_per_token = per_token};
  }

 private:
  static constexpr double kNothing = -1;
  std::atomic<double> per_prompt_{kNothing};
  std::atomic<double> per_token_{kNothing};
};

}  // namespace baton::routing
