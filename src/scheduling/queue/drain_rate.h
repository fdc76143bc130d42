// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <optional>

namespace baton::scheduling {

// Role. The rate at which a queue is served while requests wait, for wait forecasts and for the
//   retry-after of refusals. Work is in seconds of one worker, as predicted: if all predictions are
//   wrong by the same factor, so is the served work.
// Confinement. None of its own: its owner locks.
class DrainRate {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DrainRate(Clock::time_point now);

  // The queue is no longer empty. An old rate is forgotten.
  void begin(Clock::time_point now);
  // The queue is empty: the time until the next request says nothing.
  void end(Clock::time_point now);
  void served(double work, Clock::time_point now);

  // Seconds until that much work is served; work served more than half a minute ago hardly counts.
  // Nothing if too little was seen to tell.
  std::optional<double> forecast(double work, Clock::time_point now) const;
  // The same from 1 to 60 seconds, whatever has been seen.
  std::chrono::seconds time_for(double work, Clock::time_point now) const;

 private:
  // Served work and its time, decaying with age. Time with an empty queue does not count.
  struct Seen {
    double work = 0;
    double seconds = 0;
  };
  Seen seen(Clock::time_point now) const;

  Seen seen_;  // as of last_
  bool waits_ = false;
  Clock::time_point begun_;  // when it last did
  Clock::time_point last_;
};

}  // namespace baton::scheduling
