// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace baton::fleet {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// What is thought of a worker.
enum class Condition {
  New,            // nobody has heard of it yet
  Up,             // it answers
  Unreachable,    // nobody is there, or it says that it is not ready
  Ejected,        // it failed too often, and waits
  HalfOpen,       // it has waited; one request may try
  OnTrial,        // that request is under way
  Misconfigured,  // it is not what was said of it
};
std::string_view to_string(Condition condition);

// How a request failed on a worker.
enum class Failure {
  Refused,      // nobody listens at its address: the process has ended
  Unreachable,  // no connection
  Broken,       // timeout, server error, a stream that ended in the middle
};

// Role. Judges one worker by what requests and probes have met there: ejection with back-off and a
//   trial, overload marks that expire. Knows nothing of load.
// Confinement. Any thread; looking is one atomic load, a change takes a lock.
// Invariants. What cannot be reached comes back as soon as it answers a probe; what failed requests
//   comes back by serving one. A worker that is misconfigured comes back only by a probe that finds
//   it mended.
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
  // Of the last change for the worse; empty where it is up.
  std::string why() const;
  // When it last served a request; the beginning of time where it has not.
  Time last_success() const {
    return Time(Clock::duration(last_success_.load(std::memory_order_relaxed)));
  }

  // What requests met.
  News succeeded(Time now);
  News failed(Failure failure, std::string_view why, Time now);
  // An answer has begun, and may still fail: proof enough for a trial, but not for more.
  News progressed(Time now);
  // 429 or 503: it is there, and has enough to do. `pause`: how long it is to be left alone.
  void pushed_back(std::chrono::milliseconds pause, Time now);
  // HalfOpen: takes the trial; false where somebody else has it.
  bool begin_trial();
  // The request on trial ended without telling anything of the worker.
  void abandon_trial();

  // What probes met.
  News answered(Time now);
  News unreachable(Failure how, std::string_view why);
  News misconfigured(std::string_view why);
  // Its process has ended since it last answered: whoever answers next is another one.
  bool process_ended() const;
  // What canaries met: enough to eject it.
  News eject(std::string_view why, Time now);
  // An ejected worker's back-off is over: it is worth a probe.
  bool may_return(Time now) const;

 private:
  // The following require: mutex_ is held.
  News enter(Condition next, std::string_view why);
  News enter_ejected(std::string_view why, Time now);

  const config::Health options_;
  std::atomic<Condition> condition_{Condition::New};
  std::atomic<std::int64_t> overloaded_until_{0};  // of Clock; 0: never
  std::atomic<std::int64_t> last_success_{0};      // of Clock
  std::atomic<std::uint32_t> failures_{0};         // in a row
  mutable std::mutex mutex_;
  std::uint32_t ejections_ = 0;  // since the last success
  Time out_until_{};             // while Ejected
  bool heard_of_ = false;        // it has answered something, once
  bool process_ended_ = false;
  std::string why_;
};

}  // namespace baton::fleet
