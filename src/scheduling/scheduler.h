// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/random.h"
#include "core/result.h"
#include "fleet/fleet.h"
#include "scheduling/decision_log.h"
#include "scheduling/prefill_bypass.h"
#include "scheduling/queue/prefill_coalescer.h"
#include "scheduling/queue/slo_record.h"
#include "scheduling/request.h"
#include "scheduling/waits.h"
#include "scheduling/worker_selector.h"
#include "telemetry/metrics.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace baton::scheduling {

// A request's place on a worker: the booking counts there until it ends.
struct Placement {
  fleet::Booking booking;
  LeaderLease lease = {};  // other requests wait for the prompt that is computed here
};

// How a request was admitted, whether it got a place or not.
struct Admission {
  Waited waited;                           // in the queue of its pool
  std::shared_ptr<SloRecord> slo = {};     // of its class; null: it has no objective
  std::shared_ptr<fleet::Pool> pool = {};  // that it came to; null: it has not come to one yet
};

// The workers a request would go to now, and its wait.
struct Preview {
  WorkerSelector::Preview workers;
  std::optional<Waits> waits;  // nothing: it would be sent at once
};

// Role. The doorway of scheduling: everything between "the prompt is known" and "a worker is
//   booked". Admits the request to its pool, and books its workers one after the other: filter,
//   score, pick and count. Remembers which workers have failed the request, and passes over them.
// Confinement. One I/O thread.
// Lifetime. One for each request, which outlives it; so do the registry and the random source.
class Scheduler {
 public:
  Scheduler(const ScheduledRequest& request, const Random& random, telemetry::Registry& metrics)
      : request_(request), metrics_(metrics), selector_(request, random) {}

  // Predicts the placement. Nothing is booked, no turn is used up.
  static Result<Preview> preview(const ScheduledRequest& request, const Random& random);

  // Permissions for the hand-off of this request.
  const HandoffPermissions& permissions() const { return selector_.permissions(); }
  // Explanations of the choices are written there.
  void explain_to(DecisionLog::Page page) { selector_.explain_to(std::move(page)); }

  // The following attempts are the request's `number`th, from 1.
  void begin_attempt(std::size_t number);
  // The request's first worker: for prefill, or, if `alone`, for both parts. The request is
  // admitted first, once: it may wait in the queue of its pool.
  boost::asio::awaitable<Result<Placement>> place(bool alone, Cancellation& cancellation);
  // A decode worker for the prefill worker placed last.
  Result<Placement> place_decode();
  // A decode worker that computes the prompt itself, if that is better than a hand-off.
  std::optional<Placement> place_without_prefill(const BypassCounters& counters);
  // A worker that can take over blocks that a prefill worker of that mode pinned.
  Result<fleet::Booking> place_release(fleet::Pool& pool, model::HandoffMode mode,
                                       const Constraints& transfer,
                                       const Excluded& excluded) const {
    return selector_.releaser(pool, mode, transfer, excluded);
  }
  // The placement made last is not used, nor is its session bound to it.
  void give_back(std::string_view why) { selector_.given_back(why); }

  const Admission& admission() const { return admission_; }
  // The last placed prefill worker's pool, its mode, and its demands on decode workers.
  const std::shared_ptr<fleet::Pool>& pool() const { return selector_.pool(); }
  std::optional<model::HandoffMode> mode() const { return selector_.mode(); }
  const Constraints& transfer() const { return selector_.transfer(); }
  // The request's workers may also be in another namespace than those placed last.
  bool may_leave_namespace() const;
  // The answer comes token by token.
  bool streams() const { return selector_.streams(); }

  // A worker has failed the request: it is passed over from now on.
  void prefill_failed(const fleet::Worker& worker) { selector_.prefill_failed(worker); }
  void decode_failed(const fleet::Worker& worker) { selector_.decode_failed(worker); }
  // The decode worker reports that the hand-off failed; the prefill worker placed last may be to
  // blame. `misled`: stale data may have paired the two.
  void handoff_failed(const fleet::Worker& decode, bool misled) {
    selector_.handoff_failed(decode, misled);
  }
  const FailureHistory& failures() const { return selector_.failures(); }

 private:
  bool is_first() const { return attempt_ == 1 && !admitted_; }
  void note_arrival();
  boost::asio::awaitable<Result<Placement>> admit(Cancellation& cancellation);

  const ScheduledRequest& request_;
  telemetry::Registry& metrics_;
  WorkerSelector selector_;
  std::size_t attempt_ = 1;
  bool admitted_ = false;
  Admission admission_;
};

}  // namespace baton::scheduling
