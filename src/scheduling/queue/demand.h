// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "scheduling/queue/drain_rate.h"
#include "scheduling/queue/wait_bound.h"
#include "scheduling/queue/work.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace baton::scheduling {

// Role. The work that waits for workers, by class, and the expected wait of a newcomer behind it.
// Confinement. None of its own: its owner locks. Times are passed in.
class Demand {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Requires: there is a class.
  Demand(const config::Queue& config, Time now);

  void add(std::size_t policy_class, const Work& work, Time now);
  void remove(std::size_t policy_class, const Work& work, Time now);
  void served(const Work& work, Time now) { drain_.served(work.seconds, now); }

  struct Newcomer {
    std::size_t policy_class = 0;
    Work before = {};            // work of its class that may be served before it
    double priority_jump = 0;    // seconds
    double compute_seconds = 0;  // for itself
  };
  struct Wait {
    double seconds = 0;
    double limit = 0;
  };
  // The expected wait, if it is too long. Nothing as long as no forecast exists.
  std::optional<Wait> too_long(const Newcomer& newcomer, Time now);
  // How long it would have to wait; `workers` serve it at once. At the queue's drain rate or, if
  // that is unknown, as if each worker had only the waiting work.
  double foreseen(const Newcomer& newcomer, std::size_t workers, Time now) const;
  // Time until all that waits now is served.
  std::chrono::seconds retry_after(Time now) const;

 private:
  struct PolicyClass {
    double quantum = 1;
    std::size_t requests = 0;
    Work waiting = {};
    bool shortest_first = false;
  };
  double seconds_before(const Newcomer& newcomer) const;
  double seconds_of_all() const;

  std::vector<PolicyClass> classes_;
  std::size_t requests_ = 0;
  DrainRate drain_;
  WaitBound bound_;
};

}  // namespace baton::scheduling
