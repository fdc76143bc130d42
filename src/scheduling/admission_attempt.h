// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "fleet/fleet.h"
#include "scheduling/decision_log.h"
#include "scheduling/policy/rank_load.h"
#include "scheduling/pool_queue.h"
#include "scheduling/queue/admission_queue.h"
#include "scheduling/queue/prefill_coalescer.h"
#include "scheduling/queue/slo_record.h"
#include "scheduling/request.h"
#include "scheduling/waits.h"
#include "scheduling/worker_selector.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace baton::scheduling {

// Role. One request before the queue of its pool: describes it to the queue, and tries to book a
//   worker for it.
// Confinement. The request's I/O thread.
// Lifetime. Until the request is admitted or refused; request and selector outlive it.
class AdmissionAttempt {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether such a request may have to wait: else it passes every queue.
  static bool may_wait(const ScheduledRequest& request, const WorkerSelector& selector);
  // Predicts the wait without waiting; nothing if the request would be sent at once.
  static std::optional<Waits> foresee(const ScheduledRequest& request, WorkerSelector& selector);
  // Prefill time of the prompt on one of the first workers, less the part that the best cache
  // holds.
  static double prefill_seconds(const ScheduledRequest& request, const WorkerSelector& selector);

  AdmissionAttempt(const ScheduledRequest& request, WorkerSelector& selector,
                   std::shared_ptr<PoolQueue> queue, AdmissionQueue::Now now = Clock::now);

  AdmissionQueue& queue() const { return queue_->admission(); }
  QueueRequest request();
  // See Attempt.
  Result<Tried> attempt(const config::QueueClass& one, Chance chance);

  // The results, once the request was admitted.
  fleet::Booking& booked() { return *booked_; }
  LeaderLease& lease() { return lease_; }
  // The record of the request's class, valid after request(); null: it has no objective.
  const std::shared_ptr<SloRecord>& slo() const { return slo_; }
  Waited waited(Admitted admitted) const;

 private:
  void set_due(QueueRequest& request);
  // No decode worker would have a place for one more prompt when that is computed.
  bool lacks_places() const;
  std::optional<Tried> leader();
  bool may_follow(Chance chance) const;
  Tried follow(FollowedPrefill following);

  const ScheduledRequest& request_;
  WorkerSelector& selector_;
  const std::shared_ptr<PoolQueue> queue_;
  const AdmissionQueue::Now now_;
  std::shared_ptr<SloRecord> slo_;
  bool seen_ = false;  // the prompt has been looked at for the next try
  std::optional<fleet::Booking> booked_;
  LeaderLease lease_;
  Awaiting awaiting_;
  std::optional<FollowedPrefill> following_;
  std::optional<Clock::time_point> follows_since_;
  Clock::duration followed_{0};  // before that
};

}  // namespace baton::scheduling
