// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/scheduler.h"

#include "scheduling/admission_attempt.h"
#include "scheduling/pool_queue.h"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace baton::scheduling {
namespace {

using boost::asio::awaitable;

Result<Placement> placement(WorkerSelector::Attempt booked) {
  if (!booked) return fail(std::move(booked.error()));
  return Placement{.booking = std::move(*booked)};
}

}  // namespace

Result<Preview> Scheduler::preview(const ScheduledRequest& request, const Random& random) {
  WorkerSelector selector(request, random);
  auto workers = selector.preview();
  if (!workers) return fail(std::move(workers.error()));
  Preview preview{.workers = std::move(*workers), .waits = {}};
  if (!preview.workers.bypasses) preview.waits = AdmissionAttempt::foresee(request, selector);
  return preview;
}

void Scheduler::begin_attempt(std::size_t number) {
  attempt_ = number;
  selector_.begin_attempt(number);
}

awaitable<Result<Placement>> Scheduler::place(bool alone, Cancellation& cancellation) {
  selector_.serve_alone(alone);
  // A request that was admitted once does not queue again for another attempt.
  if (is_first() && AdmissionAttempt::may_wait(request_, selector_))
    co_return co_await admit(cancellation);
  if (is_first()) {
    selector_.look_at_prompt();
    note_arrival();
  }
  co_return placement(selector_.first({}));
}

awaitable<Result<Placement>> Scheduler::admit(Cancellation& cancellation) {
  const auto home = co_await boost::asio::this_coro::executor;
  const auto pool = selector_.pool();  // by its turn the request may have moved to another one
  AdmissionAttempt attempt(
      request_, selector_,
      PoolQueue::of(*pool, request_.model->routing(), selector_.first_workers().policy(),
                    request_.model->name(), home, metrics_));
  QueueRequest queued = attempt.request();
  note_arrival();
  admission_.slo = attempt.slo();
  Admitted seen;
  auto admitted = co_await attempt.queue().enter(
      std::move(queued),
      [&attempt](const config::QueueClass& one, Chance chance) {
        return attempt.attempt(one, chance);
      },
      cancellation, &seen);
  if (!admitted) {
    if (attempt.slo() && admitted.error().code() == Errc::SloUnattainable)
      attempt.slo()->refused(seen.waited.count() > 0);
    admission_.waited = attempt.waited(std::move(seen));
    admission_.waited.refused = admitted.error().message();
    selector_.page().waited(admission_.waited);
    co_return fail(std::move(admitted.error()));
  }
  admitted_ = true;
  admission_.waited = attempt.waited(std::move(*admitted));
  selector_.page().waited(admission_.waited);
  co_return Placement{.booking = std::move(attempt.booked()), .lease = std::move(attempt.lease())};
}

Result<Placement> Scheduler::place_decode() { return placement(selector_.decode()); }

bool Scheduler::may_leave_namespace() const {
  const Hints& hints = *request_.hints;
  return !hints.prefill && !hints.decode && request_.model->pools()->size() > 1;
}

std::optional<Placement> Scheduler::place_without_prefill(const BypassCounters& counters) {
  auto booking = selector_.bypass(counters);
  if (!booking) return std::nullopt;
  return Placement{.booking = std::move(*booking)};
}

// The pool's history of work, which advice is made of.
void Scheduler::note_arrival() {
  if (admission_.pool) return;
  admission_.pool = selector_.pool();
  admission_.pool->work().came(AdmissionAttempt::prefill_seconds(request_, selector_),
                               fleet::Clock::now());
}

}  // namespace baton::scheduling
