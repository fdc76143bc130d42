// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <optional>

namespace baton::scheduling {

// Role. The longest expected wait for which a new request is queued and not refused. A burst
//   passes, and may fill the queue. If the queue stays full for half a second, more comes than can
//   be served: then a shorter queue serves as many, each of them sooner.
// Confinement. None of its own: its owner locks. Times are passed in.
class WaitBound {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // In seconds; 0: no bound.
  explicit WaitBound(double longest) : longest_(longest) {}

  // Whether a request with that many expected seconds may wait, if it may wait at least `at_least`.
  // All waiting work takes `whole` seconds.
  bool allows(double seconds, double at_least, double whole, Time now);
  // The limit applied to the last request.
  double limit() const { return limit_; }

 private:
  double longest_;
  double limit_ = 0;
  std::optional<Time> full_since_;
  bool pressed_ = false;  // and too much has come since
};

}  // namespace baton::scheduling
