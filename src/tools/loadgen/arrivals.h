// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/loadgen/draw.h"
#include "tools/loadgen/options.h"

#include <chrono>
#include <cstdint>

namespace baton::loadgen {

// Role. The start times of an open loop's conversations. All threads compute the same times from
//   the same seed, so they need not communicate.
// Confinement. One thread.
class ArrivalTimes {
 public:
  ArrivalTimes(Arrivals kind, double per_second, std::uint64_t seed)
      : kind_(kind), gap_us_(1e6 / per_second), draw_(mixed({seed, 0xA331})) {}

  // Time of the next arrival, counted from the start.
  std::chrono::microseconds next() {
    const double now = at_us_;
    at_us_ += kind_ == Arrivals::Even ? gap_us_ : draw_.exponential(gap_us_);
    return std::chrono::microseconds(static_cast<std::int64_t>(now));
  }

 private:
  Arrivals kind_;
  double gap_us_;
  double at_us_ = 0;
  Draw draw_;
};

}  // namespace baton::loadgen
