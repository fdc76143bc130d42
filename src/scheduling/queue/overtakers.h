// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace baton::scheduling {

// Role. The rate of work that joins a shortest-first queue, by length: shorter requests that are
//   still to come overtake a waiting one. Recent arrivals are expected to continue.
// Confinement. None of its own: its owner locks. Times are passed in.
class Overtakers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A request that takes so many seconds has joined the queue.
  void came(double seconds, Time now);
  // How long a request that takes `seconds` waits, if it would wait `wait` behind those that are
  // before it already. `per_second`: how long the queue takes for a second of work.
  double wait_with_them(double seconds, double wait, double per_second, Time now) const;

 private:
  static constexpr std::size_t kLengths = 32;

  double kept(Time now) const;

  // Seconds of work a second, by length; as of last_.
  std::array<double, kLengths> rates_{};
  Time last_;
};

}  // namespace baton::scheduling
