// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace baton::http {

// How many tokens there are: one more each `interval`, up to `depth` / `interval` of them.
struct Rate {
  using Duration = std::chrono::nanoseconds;
  Duration interval{0};  // 0: no limit
  Duration depth{0};

  // `per_second` 0: no limit. `burst` 0: as many as come in a second, but at least one.
  static Rate of(double per_second, std::size_t burst);
  bool limited() const { return interval.count() > 0; }
};

// Role. A token bucket, stored as the time at which it will be full again. Taking a token moves
//   that time by the rate's interval.
// Confinement. Its owner's. Time is an argument.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  // Takes a token; where there is none, tells how long until there is one.
  std::optional<Rate::Duration> take(const Rate& rate, Clock::time_point now);
  bool full(Clock::time_point now) const { return full_at_ <= now; }

 private:
  Clock::time_point full_at_{};  // long ago
};

}  // namespace baton::http
