// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/queue/followers.h"
#include "scheduling/queue/gate.h"
#include "scheduling/queue/slo_record.h"
#include "core/result.h"
#include "fleet/fleet.h"
#include "handoff/decision_log.h"
#include "handoff/job.h"
#include "handoff/pool_gate.h"
#include "handoff/selection.h"
#include "scheduling/policy/seat_load.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace baton::handoff {

// What a request would wait for.
struct Waits {
  enum class For : std::uint8_t {
    Worker,   // that its best one has time
    Workers,  // that any has of those it may go to
    Request,  // that another one has computed what both begin with
  };
  For what = For::Workers;
  std::shared_ptr<const fleet::Worker> worker;  // For::Worker
  std::optional<std::uint32_t> rank;            // of several
  std::size_t ahead = 0;                        // of its class wait already
};

// Role. One request at the gate of its pool: what the gate is told of it, and what a try of it is.
// Confinement. The request's I/O thread.
// Lifetime. Of one visit; job and selection outlive it.
class Entrance {
 public:
  using Clock = std::chrono::steady_clock;
  using Choose = std::function<Result<fleet::Booking>(const std::optional<fleet::BusyLine>&)>;

  // Whether such a request may have to wait: else it goes by every gate.
  static bool may_wait(const Job& job, const Selection& selection);
  // What it would wait for now, without waiting; nothing where it would go at once.
  static std::optional<Waits> foresee(const Job& job, Selection& selection);
  // What its prompt takes the first of its workers, without what the best cache has of it.
  static double prefill_seconds(const Job& job, const Selection& selection);

  Entrance(const Job& job, Selection& selection, std::shared_ptr<PoolGate> gate, Choose choose,
           scheduling::Gate::Now now = Clock::now);

  scheduling::Gate& gate() const { return gate_->gate(); }
  scheduling::Request request();
  // See scheduling::Attempt.
  Result<scheduling::Tried> attempt(const config::QueueClass& one, scheduling::Chance chance);

  // What came of it, once it was let through.
  fleet::Booking& booked() { return *booked_; }
  scheduling::Leading& leading() { return leading_; }
  // Of its class, once request() was asked for; null: it has no objective.
  const std::shared_ptr<scheduling::SloRecord>& slo() const { return slo_; }
  Waited waited(scheduling::Admitted admitted) const;

 private:
  void set_due(scheduling::Request& request);
  // No decode worker would have a place for one more prompt when that is computed.
  bool lacks_places() const;
  std::optional<scheduling::Tried> leader();
  bool may_follow(scheduling::Chance chance) const;
  scheduling::Tried follow(scheduling::Following following);

  const Job& job_;
  Selection& selection_;
  const std::shared_ptr<PoolGate> gate_;
  const Choose choose_;
  const scheduling::Gate::Now now_;
  std::shared_ptr<scheduling::SloRecord> slo_;
  bool counted_ = false;  // among the prompts that came
  bool seen_ = false;     // the prompt has been looked at for the next try
  std::optional<fleet::Booking> booked_;
  scheduling::Leading leading_;
  std::optional<scheduling::Awaiting> awaiting_;
  std::optional<scheduling::Following> following_;
  std::optional<Clock::time_point> follows_since_;
  Clock::duration followed_{0};  // before that
};

}  // namespace baton::handoff
