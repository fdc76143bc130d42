// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <optional>

namespace baton::scheduling {

// Role. How long a wait may be foreseen for one who comes before it is refused rather than queued.
//   A burst passes, and may fill the queue. Where the queue has been full for half a second on end more
//   comes than can be served: then a shorter queue serves as many, each of them sooner.
// Confinement. None of its own: its owner locks. Times are told.
class WaitBound {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // In seconds; 0: everybody may wait.
  explicit WaitBound(double longest) : longest_(longest) {}

  // Whether one for whom so many seconds are foreseen may wait, if it may wait `at_least` so long. All
  // that waits takes `whole` seconds.
  bool allows(double seconds, double at_least, double whole, Time now);
  // What was asked of the last one.
  double limit() const { return limit_; }

 private:
  double longest_;
  double limit_ = 0;
  std::optional<Time> full_since_;
  bool pressed_ = false;  // and too much has come since
};

}  // namespace baton::scheduling
