// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The part of a session that asks the scheduler for workers.
#include "handoff/session.h"

#include <fmt/format.h>

#include <utility>

namespace baton::handoff {

awaitable<Result<scheduling::Placement>> HandoffSession::place(bool alone) {
  auto placed = co_await scheduler_.place(alone, cancellation_);
  if (trace_) trace_->admission = scheduler_.admission();
  co_return placed;
}

// A decode leg that is repeated or moved is no new attempt at the hand-off, but one more try.
std::size_t HandoffSession::tries() const { return 1 + machine_.retries() + machine_.migrations(); }

void HandoffSession::begin_attempt() {
  lease_ = {};
  outcome_ = nothing_answered();
  handed_off_ = prefill_dropped_ = false;
  transfer_ = {};
  ticket_ = std::make_unique<engine::HandoffTicket>();
  // The legs of an attempt share their id; a new attempt must not meet leftovers of the last.
  ticket_->request_id = machine_.attempts() == 1
                            ? request_.request_id
                            : fmt::format("{}-r{}", request_.request_id, machine_.attempts() - 1);
  if (trace_) {
    trace_->prefill = {};
    trace_->bypassed = false;
  }
}

awaitable<void> HandoffSession::choose_prefill() {
  begin_attempt();
  scheduler_.begin_attempt(tries());
  if (machine_.attempts() == 1) {
    if (auto placed = scheduler_.place_without_prefill(request_.counters.bypasses)) {
      decode_booking_ = std::move(placed->booking);
      bypassed_ = true;
      if (trace_) trace_->bypassed = true;
      dispatch({Event::NoPrefill});
      co_return;
    }
  }
  auto placed = co_await place(false);
  if (!placed) {
    // Asking for the impossible is no reason to serve it differently.
    const Errc code = placed.error().code();
    const bool nobody =
        code == Errc::NoWorkers || (code == Errc::NoEligibleWorker && decode_error_.has_value());
    // The last failure says more than that no worker is left.
    if (!prefill_error_ || !nobody) prefill_error_ = std::move(placed.error());
    dispatch(nobody ? Input{Event::NoPrefill}
                    : Input{.event = Event::PrefillFailed, .failure = {.retryable = false}});
    co_return;
  }
  prefill_booking_ = std::move(placed->booking);
  lease_ = std::move(placed->lease);
  const fleet::Worker& worker = prefill_booking_.worker();
  mode_ = worker.spec().mode();
  prefill_worker_ = prefill_booking_.shared_worker();
  prefill_rank_ = prefill_booking_.rank().value_or(0);
  auto peer = co_await handoff_.peers_.find(worker.id(), worker.spec(), prefill_rank_);
  if (!peer && *mode_ == model::HandoffMode::NixlPush && peer.error().code() == Errc::NoHandoff) {
    // Its address is unknown: the first time one leg follows the other, and its answer tells.
    mode_ = model::HandoffMode::NixlPull;
    peer = engine::PrefillPeer{};
  }
  if (!peer) {
    const fleet::Booking given_up = std::move(prefill_booking_);
    scheduler_.give_back(peer.error().message());
    prefill_failed(std::move(peer.error()), given_up.worker());
    co_return;
  }
  ticket_->peer = std::move(*peer);
  // Engines that meet by this id need a unique one, whatever the client sent: two requests with one
  // id would share a cache.
  if (*mode_ == model::HandoffMode::NixlPush || *mode_ == model::HandoffMode::Mooncake)
    ticket_->request_id += fmt::format("-{:016x}", handoff_.random_());
  ticket_->disagg_request_id = handoff_.tickets_.next_disagg_request_id();
  ticket_->bootstrap_room = TicketSource::room_for(handoff_.random_(), prefill_booking_.rank(),
                                                   worker.spec().data_parallel_size);
  dispatch({.event = Event::PrefillChosen, .mode = *mode_});
}

awaitable<void> HandoffSession::choose_decode() {
  const bool alone = !machine_.handing_off();
  scheduler_.begin_attempt(tries());
  decode_dropped_ = streaming_ = false;
  if (alone && std::exchange(bypassed_, false)) {  // it is chosen already
    dispatch({Event::DecodeChosen});
    co_return;
  }
  if (alone) begin_attempt();
  auto placed = alone ? co_await place(true) : scheduler_.place_decode();
  if (!placed) {
    // After a failure, report that one: it says more than that no worker is left.
    if (!decode_error_ || placed.error().code() != Errc::NoWorkers)
      decode_error_ = std::move(placed.error());
    dispatch({Event::NoDecode});
    co_return;
  }
  decode_booking_ = std::move(placed->booking);
  if (alone) lease_ = std::move(placed->lease);
  dispatch({Event::DecodeChosen});
}

}  // namespace baton::handoff
