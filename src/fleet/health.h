// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "libs/locks/mutex.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::fleet {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// State of a worker.
enum class Condition {
  New,            // it has not answered yet
  Up,             // it answers
  Unreachable,    // no answer, or it says that it is not ready
  Ejected,        // it failed too often, and waits
  HalfOpen,       // it has waited; one request may try
  OnTrial,        // that request is under way
  Misconfigured,  // it is not as announced
};
std::string_view to_string(Condition condition);

// How a request failed on a worker.
enum class Failure {
  Refused,      // nothing listens at its address: the process has ended
  Unreachable,  // no connection
  Broken,       // timeout, server error, a stream that ended in the middle
};

// Role. Tracks one worker by the results of requests and probes: ejection with back-off and a
//   trial, overload marks that expire. Knows nothing of load.
// Confinement. Any thread; a look is one atomic load, a change takes a lock.
// Invariants. An unreachable worker comes back as soon as it answers a probe; one that failed
//   requests comes back by serving one. A misconfigured worker comes back only by a probe that
//   finds it corrected.
class Health {
 public:
  struct Change {
    Condition from;
    Condition to;
    std::string why;
  };
  using News = std::optional<Change>;

  explicit Health(const config::Health& options) : options_(options) {}

  Condition condition() const { return condition_.load(std::memory_order_acquire); }
  bool overloaded(Time now) const {
    const std::int64_t until = overloaded_until_.load(std::memory_order_relaxed);
    return until != 0 && now.time_since_epoch().count() < until;
  }
  // Reason of the last change for the worse; empty if it is up.
  std::string why() const;
  // When it last served a request; the beginning of time if never.
  Time last_success() const {
    return Time(Clock::duration(last_success_.load(std::memory_order_relaxed)));
  }

  // Results of requests.
  News succeeded(Time now);
  News failed(Failure failure, std::string_view why, Time now);
  // An answer has begun, and may still fail: proof enough for a trial, but not for more.
  News progressed(Time now);
  // 429 or 503: it is there, and has enough to do. `pause`: how long it is to be left alone.
  void pushed_back(std::chrono::milliseconds pause, Time now);
  // HalfOpen: takes the trial; false if another request has it.
  bool begin_trial();
  // The request on trial ended without telling anything of the worker.
  void abandon_trial();

  // Results of probes.
  News answered(Time now);
  News unreachable(Failure how, std::string_view why);
  News misconfigured(std::string_view why);
  // Its process has ended since it last answered: the next answer is another process's.
  bool process_ended() const { return process_ended_.load(std::memory_order_relaxed); }
  // Results of canaries, bad enough to eject it.
  News eject(std::string_view why, Time now);
  // An ejected worker's back-off is over: it is worth a probe.
  bool may_return(Time now) const;

 private:
  News enter(Condition next, std::string_view why) REQUIRES(mutex_);
  News enter_ejected(std::string_view why, Time now) REQUIRES(mutex_);

  const config::Health options_;
  std::atomic<Condition> condition_{Condition::New};
  std::atomic<std::int64_t> overloaded_until_{0};  // of Clock; 0: never
  std::atomic<std::int64_t> last_success_{0};      // of Clock
  std::atomic<std::uint32_t> failures_{0};         // in a row
  std::atomic<std::uint32_t> ejections_{0};        // since the last success
  std::atomic<bool> has_answered_{false};
  std::atomic<bool> process_ended_{false};
  mutable locks::Mutex mutex_;
  Time out_until_ GUARDED_BY(mutex_);  // while Ejected
  std::string why_ GUARDED_BY(mutex_);
};

}  // namespace baton::fleet
