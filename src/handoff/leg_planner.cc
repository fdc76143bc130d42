// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/leg_planner.h"

#include <fmt/format.h>

#include <utility>

namespace baton::handoff {

using model::HandoffMode;

// A decode leg that is repeated or moved is no new attempt at the hand-off, but one more try.
std::size_t LegPlanner::tries() const {
  return 1 + session_.machine.retries() + session_.machine.migrations();
}

void LegPlanner::begin_attempt() {
  session_.begin_attempt();
  prefill_.begin_attempt();
}

awaitable<void> LegPlanner::choose_prefill() {
  begin_attempt();
  session_.scheduler.begin_attempt(tries());
  if (session_.machine.attempts() == 1 && bypasses_prefill()) {
    session_.events.dispatch({Event::NoPrefill});
    co_return;
  }
  auto placed = co_await place(false);
  if (!placed) {
    no_prefill(std::move(placed.error()));
    co_return;
  }
  Attempt& attempt = session_.attempt;
  prefill_.book(std::move(placed->booking));
  attempt.lease = std::move(placed->lease);
  const fleet::Booking& booking = prefill_.booking();
  const fleet::Worker& worker = booking.worker();
  attempt.mode = worker.spec().mode();
  attempt.prefill_worker = booking.shared_worker();
  attempt.prefill_rank = booking.rank().value_or(0);
  auto peer = co_await session_.tools.peers.find(worker.id(), worker.spec(), attempt.prefill_rank);
  if (!peer && *attempt.mode == HandoffMode::NixlPush && peer.error().code() == Errc::NoHandoff) {
    // Its address is unknown: the first time one leg follows the other, and its answer tells.
    attempt.mode = HandoffMode::NixlPull;
    peer = engine::PrefillPeer{};
  }
  if (!peer) {
    prefill_.give_back(std::move(peer.error()));
    co_return;
  }
  attempt.ticket->peer = std::move(*peer);
  draw_ids(booking);
  session_.events.dispatch({.event = Event::PrefillChosen, .mode = *attempt.mode});
}

bool LegPlanner::bypasses_prefill() {
  auto placed = session_.scheduler.place_without_prefill(session_.request.counters.bypasses);
  if (!placed) return false;
  decode_.book(std::move(placed->booking));
  bypassed_ = true;
  if (session_.trace) session_.trace->bypassed = true;
  return true;
}

void LegPlanner::no_prefill(Error why) {
  // Asking for the impossible is no reason to serve it differently.
  const Errc code = why.code();
  const bool none = code == Errc::NoWorkers || (code == Errc::NoEligibleWorker && decode_.error());
  // The last failure says more than that no worker is left.
  if (!prefill_.error() || !none) prefill_.explain(std::move(why));
  session_.events.dispatch(
      none ? Input{Event::NoPrefill}
           : Input{.event = Event::PrefillFailed, .failure = {.retryable = false}});
}

void LegPlanner::draw_ids(const fleet::Booking& prefill) {
  HandoffTools& tools = session_.tools;
  engine::HandoffTicket& ticket = *session_.attempt.ticket;
  const HandoffMode mode = *session_.attempt.mode;
  // Engines that meet by this id need a unique one, whatever the client sent: two requests with one
  // id would share a cache.
  if (mode == HandoffMode::NixlPush || mode == HandoffMode::Mooncake)
    ticket.request_id += fmt::format("-{:016x}", tools.random());
  ticket.disagg_request_id = tools.tickets.next_disagg_request_id();
  ticket.bootstrap_room = TicketSource::room_for(tools.random(), prefill.rank(),
                                                 prefill.worker().spec().data_parallel_size);
}

awaitable<void> LegPlanner::choose_decode() {
  const bool alone = !session_.machine.handing_off();
  session_.scheduler.begin_attempt(tries());
  decode_.begin();
  if (alone && std::exchange(bypassed_, false)) {  // it is chosen already
    session_.events.dispatch({Event::DecodeChosen});
    co_return;
  }
  if (alone) begin_attempt();
  auto placed = alone ? co_await place(true) : session_.scheduler.place_decode();
  if (!placed) {
    // After a failure, report that one: it says more than that no worker is left.
    if (!decode_.error() || placed.error().code() != Errc::NoWorkers)
      decode_.explain(std::move(placed.error()));
    session_.events.dispatch(
        {.event = Event::NoDecode, .elsewhere = session_.scheduler.may_leave_namespace()});
    co_return;
  }
  decode_.book(std::move(placed->booking));
  if (alone) session_.attempt.lease = std::move(placed->lease);
  session_.events.dispatch({Event::DecodeChosen});
}

awaitable<Result<scheduling::Placement>> LegPlanner::place(bool alone) {
  auto placed = co_await session_.scheduler.place(alone, cancellation_);
  if (session_.trace) session_.trace->admission = session_.scheduler.admission();
  co_return placed;
}

}  // namespace baton::handoff
