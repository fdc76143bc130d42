// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "core/cancellation.h"
#include "core/result.h"
#include "libs/locks/mutex.h"
#include "scheduling/queue/class_queues.h"
#include "scheduling/queue/classes.h"
#include "scheduling/queue/demand.h"
#include "scheduling/queue/denial.h"
#include "scheduling/queue/max_queue_wait.h"
#include "scheduling/queue/queue_metrics.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::scheduling {

// The result of trying to book. Busy: every worker the request may go to has enough to do. Follows:
// another request computes its prefix. An error is one that waiting does not help.
enum class Attempted { Taken, Busy, Follows };
struct Tried {
  Tried(Attempted what, WaitKey awaits = {}, std::optional<Clock::time_point> until = {})
      : what(what), awaits(std::move(awaits)), until(until) {}
  Attempted what;
  WaitKey awaits;  // what it waits for now; empty: as before
  std::optional<Clock::time_point>
      until;  // then it is tried alone, whatever others wait for the same
};
// Usual: it may follow another. Last: it cannot wait, and goes now or never.
enum class Chance { Usual, Last };
// Run on the caller's own thread, as often as it is the request's turn; not a coroutine.
using Attempt = std::function<Result<Tried>(const config::QueueClass& policy_class, Chance chance)>;

// When the first token is due, of a request with an objective.
struct Due {
  Clock::time_point received;
  // It is admitted if its forecast is to have a worker by then, and refused if it has none at `by`:
  // between the two are the errors of forecasts.
  Clock::time_point foreseen_by;
  Clock::time_point by;
  Clock::duration after;  // from the booking to its first token
  Clock::duration objective;
  bool queue_late = false;  // else it is refused when that cannot be any more
};

// The queue's view of a request.
struct QueueRequest {
  std::string policy_class;  // a class, a family, or empty
  std::uint32_t strict_priority = 0;
  double priority_jump = 0;  // seconds
  std::string tenant;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of those, in the best of its workers' caches
  WaitKey awaits;                   // as far as that is known
  double compute_seconds = 0;       // of the uncached part; 0: unknown
  std::size_t workers = 1;          // factor of the limits
  bool constrained = false;         // not every worker will do: it may find one while others wait
  std::optional<MaxQueueWait> max_wait;  // absent: the configured one
  // Called if other requests wait already: the one it follows, if any. Then it need not be tried.
  std::function<std::optional<Tried>()> follows;
  std::optional<Due> due;  // nothing: it has no objective
  // No worker could serve it in time, however idle: it waits behind all others.
  bool behind = false;
};

struct Admitted {
  std::string policy_class;
  std::chrono::steady_clock::duration waited{0};
  std::size_t ahead = 0;  // of its class, when it came
};

// Role. Admits requests to the workers of one model and namespace: at once if a worker has time,
//   else in the order of the queue, each as soon as its own workers can take it.
// Confinement. Any thread. A request is tried on the executor that enter() runs on, which must do
//   one thing at a time; the recheck timer lives on `home`.
// Lifetime. Held by shared_ptr: pending operations keep it alive.
// Invariants. At most one request is offered its turn at a time. A change that comes meanwhile is
//   not lost. No request overtakes those of its class that wait already, except those whose workers
//   are busy.
// Size. Half of the members are constants, the rest what one mutex guards: who waits, who has the
//   turn, and what has changed since. The order is in ClassQueues, the figures are in QueueMetrics.
class AdmissionQueue : public std::enable_shared_from_this<AdmissionQueue> {
 public:
  // Interval of rechecks while requests wait: load may decay without a notification.
  static constexpr std::chrono::milliseconds kRecheck{100};

  using Now = std::function<Clock::time_point()>;

  AdmissionQueue(config::Queue config, boost::asio::any_io_executor home, QueueMetrics metrics,
                 Now now = Clock::now);
  ~AdmissionQueue();
  AdmissionQueue(const AdmissionQueue&) = delete;
  AdmissionQueue& operator=(const AdmissionQueue&) = delete;

  // Returns once `attempt` has booked, or with the reason why it will not: its own error,
  // QueueFull, WorkersBusy (fail-fast), QueueTimeout, SloUnattainable, or that of the cancellation.
  // `seen` gets the facts of a refused request.
  boost::asio::awaitable<Result<Admitted>> enter(QueueRequest request, Attempt attempt,
                                                 Cancellation& cancellation,
                                                 Admitted* seen = nullptr);

  // Signals that a worker may have time: a prefill is complete, a request has ended, a worker has
  // come or gone. Costs two atomic operations if no request waits.
  void changed();

  std::size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // Totals of a class, by its index in the configuration.
  Totals totals(std::size_t policy_class) const;

 private:
  class QueuedRequest;
  class Offer;
  class Place;
  struct FailFast {
    Ticket ticket;
    std::uint64_t since;  // the round at its arrival
  };

  Error told(Denial denial) const;

  std::expected<void, Denial> queue_up(const std::shared_ptr<QueuedRequest>& pending,
                                       const QueueRequest& request,
                                       std::optional<std::uint64_t> tried_at);
  std::optional<Denial> too_long(const QueuedRequest& pending, const QueueRequest& request,
                                 const Entry& entry) REQUIRES(mutex_);
  // Sets when it must have a worker, and its place behind those that it would make late.
  void put_in_time(const QueuedRequest& pending, const QueueRequest& request, Entry& entry) const
      REQUIRES(mutex_);
  // The expected wait, if its first token would then be too late.
  std::optional<Clock::duration> foreseen_late(const QueuedRequest& pending,
                                               const QueueRequest& request,
                                               const Entry& entry) const REQUIRES(mutex_);
  Denial denial_of(const config::QueueClass& its_class, const Due& due, Clock::duration wait,
                   Clock::time_point now) const REQUIRES(mutex_);
  // It can no longer be in time, and waits behind the others.
  void put_behind(QueuedRequest& pending, Clock::time_point now);
  // Whether it waits for a worker, and not for another request or not any more.
  void wants_worker(QueuedRequest& pending, bool wants, Clock::time_point now) REQUIRES(mutex_);
  void abort_all(QueuedRequest& pending);
  enum class Answer { Taken, Busy, Gone };
  void answer(QueuedRequest& pending, Answer answer, const WaitKey& awaits);

  void wake(Clock::time_point now) REQUIRES(mutex_);
  void offer_next(Clock::time_point now) REQUIRES(mutex_);
  void begin_round(Clock::time_point now) REQUIRES(mutex_);
  void refuse_fail_fast(Clock::time_point now) REQUIRES(mutex_);
  void forget(QueuedRequest& pending) REQUIRES(mutex_);

  void recheck_later();
  void recheck();

  const config::Queue config_;
  const Classes classes_;
  const boost::asio::any_io_executor home_;
  const QueueMetrics metrics_;
  const Now now_;

  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> changes_{0};
  std::vector<std::atomic<std::size_t>> waiting_of_class_;  // for a worker

  mutable locks::Mutex mutex_;
  ClassQueues queue_ GUARDED_BY(mutex_);
  Demand demand_ GUARDED_BY(mutex_);
  std::unordered_map<Ticket, std::shared_ptr<QueuedRequest>> pending_ GUARDED_BY(mutex_);
  // Requests that want a try but not to wait.
  std::vector<FailFast> fail_fast_ GUARDED_BY(mutex_);
  bool offering_ GUARDED_BY(mutex_) = false;  // a request has been offered its turn
  bool again_ GUARDED_BY(mutex_) = false;     // something changed meanwhile
  bool rechecking_ GUARDED_BY(mutex_) = false;
  std::uint64_t round_ GUARDED_BY(mutex_) = 0;
  std::uint64_t round_changes_ GUARDED_BY(mutex_) = 0;  // changes_ when the round began
};

}  // namespace baton::scheduling
