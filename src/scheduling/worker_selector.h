// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/random.h"
#include "core/result.h"
#include "fleet/fleet.h"
#include "scheduling/decision_log.h"
#include "scheduling/failure_history.h"
#include "scheduling/handoff_permissions.h"
#include "scheduling/policy/affinity.h"
#include "scheduling/policy/constraints.h"
#include "scheduling/policy/known_prompt.h"
#include "scheduling/prefill_bypass.h"
#include "scheduling/request.h"
#include "scheduling/worker_booking.h"

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace baton::scheduling {

// Role. Chooses among the workers that one request may go to: by its pins, its session and its
//   constraints, its prefill worker's demands on the decode worker, and its failure history.
// Confinement. One I/O thread.
// Lifetime. Owned by the request's Scheduler, whose ScheduledRequest outlives it.
// Invariants. Choosing is booking: the result counts on its worker until it is released.
// Size. Larger than most classes, as each choice needs what the one before left behind: namespace,
//   session, demands of the prefill worker, failures. Code that needs no such state is elsewhere: filter
//   and pick (SelectionPass), score (CandidateScorer), count (book), prefill_bypass.cc.
class WorkerSelector {
 public:
  WorkerSelector(const ScheduledRequest& request, const Random& random);

  // Permissions of the hand-off of this request.
  const HandoffPermissions& permissions() const { return permissions_; }

  // The workers that would be chosen now, without choosing.
  struct Preview {
    std::optional<model::HandoffMode> mode;  // absent: one worker does both
    std::optional<Bypassed> bypass;          // absent: that is no question
    bool bypasses = false;                   // that says yes
    std::optional<Choice> prefill;
    std::optional<Choice> decode;
  };
  Result<Preview> preview();
  // The choice among the first workers, as in prefill() or alone().
  std::expected<Choice, NotBooked> look_first(const std::optional<BusyThreshold>& busy);

  // A booked worker, or why none was and what the request could wait for.
  using Attempt = std::expected<fleet::Booking, NotBooked>;

  // The first worker of the request: prefill() with a hand-off, else alone().
  Attempt first(const std::optional<BusyThreshold>& busy) {
    return hands_off() ? prefill(busy) : alone(busy);
  }
  // A prefill worker that some decode worker can follow. `busy`: none that has crossed that line
  // (WorkersBusy if all have), here and for alone().
  Attempt prefill(const std::optional<BusyThreshold>& busy = {});
  // A decode worker for the hand-off of the prefill worker chosen last.
  Attempt decode();
  // A worker that does both.
  Attempt alone(const std::optional<BusyThreshold>& busy = {});
  // A decode worker that computes the prompt itself, if that is better than a hand-off. Decided and
  // booked in one step, so that two requests do not take the same place.
  std::optional<fleet::Booking> bypass(const BypassCounters& counters);
  // Sets the page that explains the choices.
  void explain_to(DecisionLog::Page page) { page_ = std::move(page); }
  DecisionLog::Page& page() { return page_; }
  void begin_attempt(std::size_t number) { attempt_ = number; }
  // Whether a prefill worker is asked first. One that is to be served alone after all, does not.
  bool hands_off() const { return permissions_.disaggregate && !alone_; }
  void serve_alone(bool alone) { alone_ = alone; }
  // The worker chosen last does not get it after all, nor its session that place.
  void given_back(std::string_view why);
  // The current knowledge of the prompt; refreshed for each choice.
  const KnownPrompt& prompt() const { return *known_; }
  void look_at_prompt();  // one look serves one choice
  // The answer comes token by token.
  bool streams() const;
  // The workers asked first: those that compute prompts.
  const fleet::WorkerSet& first_workers() const;
  const Pin* first_pin() const;
  // The rank of such a worker that served the session.
  std::optional<RankId> session_rank() const;
  // Any worker that can take over a prefill worker's pinned blocks in that mode; one that has
  // failed before, or does not answer now, rather than none.
  Result<fleet::Booking> releaser(fleet::Pool& pool, model::HandoffMode mode,
                                  const Constraints& transfer, const Excluded& excluded) const;
  // The pool of the worker chosen last.
  const std::shared_ptr<fleet::Pool>& pool() const { return pool_; }
  // The mode of the prefill worker chosen last.
  std::optional<model::HandoffMode> mode() const { return mode_; }
  const Constraints& transfer() const { return transfer_; }

  void prefill_failed(const fleet::Worker& worker);
  void decode_failed(const fleet::Worker& worker);
  // The decode worker reports it, and the prefill worker chosen last may be to blame.
  void handoff_failed(const fleet::Worker& decode, bool misled = false);
  const FailureHistory& failures() const { return failures_; }

 private:
  // The request's demands on its worker of that role, whatever part it does.
  WorkerRequirements requirements_for(model::Role role) const;
  WorkerRequirements prefill_requirements() const;
  WorkerRequirements alone_requirements() const;
  // Avoids the suspected workers, or, if no other can serve, only those that surely failed.
  void pass_over(WorkerRequirements& requirements, const fleet::WorkerSet& workers,
                 Excluded suspected, Excluded surely) const;
  // No prefill worker is there, and the request can be served without.
  bool passes_by_prefill(const Error& why) const;
  // The conditions on prompt and fleet under which a decode worker may compute the prompt itself.
  bool may_bypass();
  bool prefill_is_busy();
  Bypassed decide_bypass(bool prefill_busy, const fleet::Worker& worker,
                         const CandidateScore& weight) const;
  std::optional<Choice> preview_bypass(std::optional<Bypassed>& decision);
  WorkerRequirements decode_requirements() const;
  // Calls `take` (to book or to look) with the requirements and the session's rank.
  template <class Take>
  auto ask(model::Role role, WorkerRequirements requirements, Take take);
  Attempt book(model::Role role, WorkerRequirements requirements, AffinityTable::Lease& lease);
  std::expected<Choice, NotBooked> look(model::Role role, WorkerRequirements requirements);
  template <class Find>
  auto anywhere(Find find);
  void unbind(model::Role role);  // its session from where it is served
  void move_to(const std::shared_ptr<fleet::Pool>& pool, model::Role alone_role);
  // The prefill worker that `take` finds, passing over those no decode worker could follow.
  template <class Take>
  auto first_that_can_be_followed(const std::optional<BusyThreshold>& busy, Take take);
  template <class Take>
  auto followed(WorkerRequirements requirements, Take take);  // the same for one try

  const ScheduledRequest& request_;
  const Random& random_;
  std::shared_ptr<fleet::Pool> pool_;  // where it is served
  HandoffPermissions permissions_;
  std::shared_ptr<const KnownPrompt> known_;
  bool arrival_counted_ = false;  // see BookingOptions; once where the request can wait
  bool looked_ = false;           // and no worker has been chosen since
  bool alone_ = false;
  // Restores the session's binding from before the worker chosen last.
  std::function<void()> unbind_;
  DecisionLog::Page page_;
  std::size_t attempt_ = 1;
  model::Role alone_role_ = model::Role::Decode;
  std::optional<model::WorkerId> prefill_;  // chosen last
  std::optional<model::HandoffMode> mode_;  // its
  Constraints transfer_;                    // what it demands of the decode worker
  FailureHistory failures_;
  AffinityTable::Lease prefill_lease_;
  AffinityTable::Lease decode_lease_;
};

}  // namespace baton::scheduling
