// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstdint>

namespace baton::admission {

// Role. How fast a queue has been served lately, to tell those who are refused when to come again.
// Confinement. None of its own: its owner locks.
class DrainRate {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DrainRate(Clock::time_point now);

  // Somebody waits now, where nobody did. A rate of long ago is forgotten.
  void begin(Clock::time_point now);
  void served(std::uint64_t tokens, Clock::time_point now);
  // In how many seconds so many tokens will have been served: from 1 to 60. What was served more than
  // half a minute ago hardly counts.
  std::chrono::seconds time_for(std::uint64_t tokens, Clock::time_point now) const;

 private:
  double decayed(Clock::time_point now) const;

  Clock::time_point beginning_;
  Clock::time_point last_;
  double tokens_ = 0;  // what was served, the longer ago the less
};

}  // namespace baton::admission
