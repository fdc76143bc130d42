// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How a run gets its workers: when it is admitted, and whom it books.
#include "handoff/entrance.h"
#include "handoff/pool_gate.h"
#include "handoff/run.h"

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <utility>

namespace baton::handoff {
awaitable<Result<fleet::Booking>> Run::admit(Entrance::Choose choose) {
  const bool is_first = tries() == 1 && !admitted_;
  // Who was let through once need not queue again for another attempt.
  if (!is_first || !Entrance::may_wait(job_, selection_)) {
    if (is_first) {
      selection_.look_at_prompt();
      note_arrival();
    }
    co_return choose({});
  }
  const auto home = co_await boost::asio::this_coro::executor;
  const auto pool = selection_.pool();  // until its turn comes it may have been moved elsewhere
  Entrance entrance(job_, selection_,
                    PoolGate::of(*pool, job_.model->routing(), selection_.first_workers().policy(),
                                 job_.model->name(), home, handoff_.metrics_),
                    std::move(choose));
  scheduling::Request request = entrance.request();
  note_arrival();
  if (trail_) trail_->slo = entrance.slo();
  scheduling::Admitted seen;
  auto admitted = co_await entrance.gate().enter(
      std::move(request),
      [&entrance](const config::QueueClass& one, scheduling::Chance chance) {
        return entrance.attempt(one, chance);
      },
      cancellation_, &seen);
  if (!admitted) {
    if (entrance.slo() && admitted.error().code() == Errc::SloUnattainable)
      entrance.slo()->refused();
    Waited waited = entrance.waited(std::move(seen));
    waited.refused = admitted.error().message();
    note(std::move(waited));
    co_return fail(std::move(admitted.error()));
  }
  admitted_ = true;
  note(entrance.waited(std::move(*admitted)));
  leading_ = std::move(entrance.leading());
  co_return std::move(entrance.booked());
}

// After a look at the prompt: what is cached of it is no work.
void Run::note_arrival() {
  if (!trail_ || trail_->pool) return;
  trail_->pool = selection_.pool();
  trail_->pool->work().came(Entrance::prefill_seconds(job_, selection_), fleet::Clock::now());
}

void Run::note(Waited waited) {
  if (!trail_ || tries() > 1) return;
  trail_->page.waited(waited);
  trail_->waited = std::move(waited);
}

// A decode leg that is repeated or moved is no new attempt at the hand-off, but one more try.
std::size_t Run::tries() const { return 1 + machine_.retries() + machine_.migrations(); }

void Run::begin_attempt() {
  leading_ = {};
  outcome_ = nothing_answered();
  handed_off_ = prefill_dropped_ = false;
  transfer_ = {};
  ticket_ = std::make_unique<engine::HandoffTicket>();
  // The legs of an attempt share their id; a new attempt must not meet what is left of the last.
  ticket_->request_id = machine_.attempts() == 1
                            ? job_.request_id
                            : fmt::format("{}-r{}", job_.request_id, machine_.attempts() - 1);
  if (trail_) {
    trail_->prefill = {};
    trail_->bypassed = false;
  }
}

awaitable<void> Run::choose_prefill() {
  begin_attempt();
  selection_.serve_alone(false);
  selection_.begin_attempt(tries());
  if (machine_.attempts() == 1) {
    if (auto bypass = selection_.bypass(job_.counters)) {
      decode_booking_ = std::move(*bypass);
      bypassed_ = true;
      if (trail_) trail_->bypassed = true;
      tell({Event::NoPrefill});
      co_return;
    }
  }
  auto booking = co_await admit(
      [this](const std::optional<fleet::BusyLine>& busy) { return selection_.prefill(busy); });
  if (!booking) {
    // Asking for the impossible is no reason to serve it differently.
    const Errc code = booking.error().code();
    const bool nobody =
        code == Errc::NoWorkers || (code == Errc::NoEligibleWorker && decode_error_.has_value());
    // Why the last one failed says more than that nobody else is left.
    if (!prefill_error_ || !nobody) prefill_error_ = std::move(booking.error());
    tell(nobody ? Input{Event::NoPrefill}
                : Input{.event = Event::PrefillFailed, .failure = {.retryable = false}});
    co_return;
  }
  prefill_booking_ = std::move(*booking);
  const fleet::Worker& worker = prefill_booking_.worker();
  mode_ = worker.spec().mode();
  prefill_worker_ = prefill_booking_.shared_worker();
  prefill_rank_ = prefill_booking_.rank().value_or(0);
  auto peer = co_await handoff_.peers_.find(worker.id(), worker.spec(), prefill_rank_);
  if (!peer && *mode_ == model::HandoffMode::NixlPush && peer.error().code() == Errc::NoHandoff) {
    // Nobody has said how to find it: the first time one leg follows the other, and its answer tells.
    mode_ = model::HandoffMode::NixlPull;
    peer = engine::PrefillPeer{};
  }
  if (!peer) {
    const fleet::Booking given_up = std::move(prefill_booking_);
    selection_.given_back(peer.error().message());
    prefill_failed(std::move(peer.error()), given_up.worker());
    co_return;
  }
  ticket_->peer = std::move(*peer);
  // Where the engines find each other by this id, a client's word is not enough: two requests with
  // one id would share a cache.
  if (*mode_ == model::HandoffMode::NixlPush || *mode_ == model::HandoffMode::Mooncake)
    ticket_->request_id += fmt::format("-{:016x}", handoff_.random_());
  ticket_->disagg_request_id = handoff_.tickets_.next_disagg_request_id();
  ticket_->bootstrap_room = TicketSource::room_for(handoff_.random_(), prefill_booking_.rank(),
                                                   worker.spec().data_parallel_size);
  tell({.event = Event::PrefillChosen, .mode = *mode_});
}

awaitable<void> Run::choose_decode() {
  const bool alone = !machine_.handing_off();
  selection_.begin_attempt(tries());
  decode_dropped_ = streaming_ = false;
  if (alone && std::exchange(bypassed_, false)) {  // it is chosen already
    tell({Event::DecodeChosen});
    co_return;
  }
  if (alone) {
    begin_attempt();
    selection_.serve_alone(true);
  }
  auto booking = alone ? co_await admit([this](const std::optional<fleet::BusyLine>& busy) {
    return selection_.alone(busy);
  })
                       : selection_.decode();
  if (!booking) {
    // After a failure, that one is told: it says more than that nobody else is left.
    if (!decode_error_ || booking.error().code() != Errc::NoWorkers)
      decode_error_ = std::move(booking.error());
    tell({Event::NoDecode});
    co_return;
  }
  decode_booking_ = std::move(*booking);
  tell({Event::DecodeChosen});
}

}  // namespace baton::handoff
