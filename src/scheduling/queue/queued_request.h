// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "core/result.h"
#include "scheduling/queue/admission_queue.h"
#include "scheduling/queue/class_queues.h"
#include "scheduling/queue/waiter.h"
#include "scheduling/queue/work.h"

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

namespace baton::scheduling {

// A waiting request, at home on its own executor; `ticket`, `policy_class`, `weight` and `work` do
// not change once it is in the queue.
class AdmissionQueue::QueuedRequest {
 public:
  QueuedRequest(boost::asio::any_io_executor home, const Attempt& attempt, std::size_t policy_class,
                bool fail_fast)
      : waiter(std::move(home)),
        policy_class(policy_class),
        fail_fast(fail_fast),
        attempt_(&attempt) {}

  // Home. Runs the attempt on its turn and returns the result.
  Answer try_now(const config::QueueClass& its_class, Chance chance) {
    if (!attempt_ || outcome_ || thrown_) return Answer::Gone;
    try {
      Result<Tried> tried = (*attempt_)(its_class, chance);
      if (tried && tried->what != Attempted::Taken) {
        wait(std::move(*tried));
        return Answer::Busy;
      }
      settle(std::move(tried));
    } catch (...) {
      thrown_ = std::current_exception();
      waiter.ring();
    }
    return outcome_ && *outcome_ ? Answer::Taken : Answer::Gone;
  }
  // Home.
  void settle(Result<Tried> outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
    waiter.ring();
  }
  // Home.
  void wait(Tried tried) {
    follows = tried.what == Attempted::Follows;
    has_followed = has_followed || follows;
    awaits = std::move(tried.awaits);
    until = tried.until;
  }
  // Home. Drops the attempt: its captures end with the coroutine.
  void leave() { attempt_ = nullptr; }
  bool settled() const { return outcome_ || thrown_; }
  std::optional<Result<Tried>> outcome() {
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(outcome_);
  }

  Waiter waiter;
  const std::size_t policy_class;
  const bool fail_fast;       // it wants a try, but not to wait
  bool constrained = false;   // not every worker will do
  bool follows = false;       // home: it waits for another request
  bool has_followed = false;  // home: it has less to compute than at its arrival
  bool wants_worker = false;  // the queue's: it counts among those that wait for a worker
  bool demands = false;       // the queue's: and among those that keep workers from others
  bool behind = false;        // behind all others of its class
  WaitKey awaits;             // home: the key found by the last try
  std::optional<Clock::time_point> until;  // home: and how long at most
  Ticket ticket = 0;
  Totals weight;
  Work work;
  std::size_t ahead = 0;

 private:
  const Attempt* attempt_;
  std::optional<Result<Tried>> outcome_;
  std::exception_ptr thrown_;
};

}  // namespace baton::scheduling
