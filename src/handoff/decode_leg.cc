// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/decode_leg.h"

#include "handoff/leg_failure.h"
#include "handoff/process_end.h"

#include <boost/asio/this_coro.hpp>

namespace baton::handoff {

void DecodeLeg::begin() { dropped_ = session_.attempt.streaming = false; }

awaitable<void> DecodeLeg::run() {
  if (dropped_) {  // before it began
    failed(leg_given_up());
    co_return;
  }
  HandoffTools& tools = session_.tools;
  const bool alone = !session_.machine.handing_off();
  const fleet::Worker& worker = booking_.worker();
  booking_.sent();
  if (session_.trace) session_.trace->decode.begin(booking_);
  if (alone && session_.request.observer) session_.request.observer->computing(booking_);
  if (alone) session_.attempt.lease.counted();
  if (alone && !session_.scheduler.streams())
    prefill_unseen(co_await boost::asio::this_coro::executor);
  exchange_ = std::make_unique<http_client::Exchange>(
      tools.pool, http_client::Target{worker.id(), worker.spec().endpoint}, tools.options.timeouts);
  session_.attempt.handed_off = !alone;
  accepted_ = false;
  sent_at_ = Suspects::Clock::now();
  const auto client = session_.client;
  const auto ticket = session_.attempt.ticket;
  name_ = session_.name_leg(worker);
  const LegBody message = co_await body(alone, *client);
  const LegMessages& messages = session_.messages;
  std::string error_type;
  auto sent = co_await messages.send(
      *exchange_,
      messages.head(worker, booking_.rank(), client->headers, message.body.size(),
                    ticket->request_id, message.signature),
      message.body, &error_type);
  if (!sent) {
    co_await look_for_end(sent.error());
    failed(std::move(sent.error()), std::move(error_type));
    co_return;
  }
  accepted_ = true;
  session_.events.dispatch({Event::DecodeAccepted});
  if (dropped_) failed(leg_given_up());  // in the moment its answer came
}

awaitable<LegBody> DecodeLeg::body(bool alone, const ClientMessage& client) const {
  const fleet::Worker& worker = booking_.worker();
  const engine::ClientCall wanted =
      session_.messages.call(worker, alone ? engine::Leg::Compute : engine::Leg::Continue, client,
                             session_.progress.get(), name_);
  const Attempt& attempt = session_.attempt;
  return alone ? session_.messages.plain_body(wanted, worker.spec().engine)
               : session_.messages.decode_body(*attempt.mode, wanted, attempt.ticket,
                                               attempt.outcome, engine::DecodePurpose::Answer);
}

void DecodeLeg::prefill_unseen(const boost::asio::any_io_executor& home) {
  session_.attempt.lease.done();  // the requests that wait for it need not
  // It would count as work until the whole answer is there, and hold up those that wait for the
  // worker.
  unseen_ = std::make_unique<boost::asio::steady_timer>(home, booking_.prefill_due());
  unseen_->async_wait(
      [this, weak = session_.events.weak_from_this()](boost::system::error_code error) {
        if (const auto session = weak.lock(); session && !error) booking_.prefill_completed();
      });
}

void DecodeLeg::drop() {
  dropped_ = true;
  if (!exchange_) return;
  exchange_->drop();
  session_.abort(booking_.shared_worker(), name_);
}

void DecodeLeg::first_token() {
  booking_.worker().progressed();
  booking_.prefill_completed();
  if (session_.attempt.handed_off) session_.attempt.transfer.arrived();
  session_.attempt.lease.done();
}

void DecodeLeg::finished() {
  if (exchange_) booking_.worker().succeeded();
}

awaitable<void> DecodeLeg::look_for_end(const Error& error) {
  // A stream that has begun is migrated: as a rule, it is the prompt that ends a worker.
  if (session_.attempt.streaming || dropped_ || !exchange_) co_return;
  const auto worker = booking_.shared_worker();
  const Suspects::Time sent_at = sent_at_;
  if (co_await process_ended(session_.tools.pool, *worker, error, *exchange_))
    poison_.ended_under(*worker, sent_at);
}

bool DecodeLeg::frees_blocks(const engine::DecodeEnd& end) const {
  const auto& prefill = session_.attempt.prefill_worker;
  return session_.machine.handing_off() && prefill &&
         engine::dialect_of(prefill->spec().mode()).frees_blocks(end);
}

void DecodeLeg::failed(Error error, std::string error_type) {
  using How = engine::DecodeEnd::How;
  session_.attempt.transfer = {};  // the next one would be given its time, too
  Failure failure = failure_of(error);
  if (exchange_) {
    auto end = decode_end(*exchange_, booking_.worker(), error, std::move(error_type));
    if (accepted_ && !session_.scheduler.streams() && end.how == How::Broken)
      end.how = How::Answered;
    failure.freed = frees_blocks(end);
  }
  const bool awaits_cache = session_.machine.handing_off() && !session_.attempt.streaming;
  const FailedPart part = failed_part(error, awaits_cache);
  failure.either = part == FailedPart::Pair && !dropped_;
  // A kept connection may have died of the request, and only the next one was refused.
  if (exchange_ && exchange_->replayed()) failure.untouched = false;
  if (!dropped_) {
    explain(std::move(error));
    scheduling::Scheduler& scheduler = session_.scheduler;
    fleet::Worker& worker = booking_.worker();
    if (error_->code() == Errc::EngineTimeout) session_.abort(booking_.shared_worker(), name_);
    log_failure(session_.tools.options.log, session_.request, "decode", worker, *error_);
    // A failure that may be another worker's fault, or the request's own, counts once.
    if (!scheduler.failures().suspects_decode(worker.id())) count_failure(worker, *error_);
    if (part == FailedPart::Pair) {
      scheduler.handoff_failed(worker, session_.attempt.ticket->peer.remembered);
    } else if (part == FailedPart::Worker) {
      scheduler.decode_failed(worker);
    }
  }
  end();
  if (!dropped_) session_.invalidate_peer_if_stale(*error_);
  session_.events.dispatch({.event = Event::DecodeFailed, .failure = failure});
}

void DecodeLeg::abandon() {
  using How = engine::DecodeEnd::How;
  if (!exchange_) return;
  if (!dropped_) session_.abort(booking_.shared_worker(), name_);
  const auto how = exchange_->sent_whole() ? How::Closed : How::Unsent;
  session_.events.dispatch(
      {.event = Event::DecodeFailed, .failure = {.freed = frees_blocks({.how = how})}});
}

void DecodeLeg::end() {
  exchange_.reset();
  booking_ = {};
}

}  // namespace baton::handoff
