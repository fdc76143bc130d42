// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <optional>

namespace baton::scheduling {

// Role. How fast a queue is served while somebody waits in it: to tell those who come how long they
//   would wait, and those who are refused when to come again. Work is in seconds of one worker, as
//   they were guessed: where all guesses are wrong by the same factor, so is what was served.
// Confinement. None of its own: its owner locks.
class DrainRate {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DrainRate(Clock::time_point now);

  // Somebody waits now, where nobody did. A rate of long ago is forgotten.
  void begin(Clock::time_point now);
  // Nobody waits any more: the time until the next one comes says nothing.
  void end(Clock::time_point now);
  void served(double work, Clock::time_point now);

  // In how many seconds so much will have been served; what was served more than half a minute ago
  // hardly counts. Nothing where too little has been seen to tell.
  std::optional<double> forecast(double work, Clock::time_point now) const;
  // The same from 1 to 60 seconds, whatever has been seen.
  std::chrono::seconds time_for(double work, Clock::time_point now) const;

 private:
  // What was served in which time, the longer ago the less. Time without anybody waiting is none.
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
