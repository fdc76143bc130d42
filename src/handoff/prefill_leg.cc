// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/prefill_leg.h"

#include "engine/vllm/vllm_dialect.h"
#include "handoff/leg_failure.h"
#include "handoff/process_end.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>

namespace baton::handoff {
namespace {

// The engine's report of the tokens it had to compute.
std::optional<std::uint64_t> computed_tokens(const std::optional<engine::Usage>& usage) {
  if (!usage || !usage->cached_tokens || usage->prompt_tokens < *usage->cached_tokens)
    return std::nullopt;
  return static_cast<std::uint64_t>(usage->prompt_tokens - *usage->cached_tokens);
}

// Points to an exchange during its lifetime, also if its leg throws.
class Pointed {
 public:
  Pointed(http_client::Exchange*& pointer, http_client::Exchange& exchange)
      : pointer_(pointer), exchange_(exchange) {
    pointer_ = &exchange_;
  }
  Pointed(const Pointed&) = delete;
  Pointed& operator=(const Pointed&) = delete;
  ~Pointed() {
    if (pointer_ == &exchange_) pointer_ = nullptr;
  }

 private:
  http_client::Exchange*& pointer_;
  http_client::Exchange& exchange_;
};

}  // namespace

awaitable<void> PrefillLeg::run() {
  fleet::Booking booking = std::move(booking_);
  fleet::Worker& worker = booking.worker();
  if (dropped_) {  // before it began
    failed(leg_given_up(), worker);
    co_return;
  }
  HandoffTools& tools = session_.tools;
  // The client's flow may release its own meanwhile.
  const auto client = session_.client;
  const auto ticket = session_.attempt.ticket;
  const model::HandoffMode mode = *session_.attempt.mode;
  booking.sent();
  if (session_.trace) session_.trace->prefill.begin(booking);
  if (session_.request.observer) session_.request.observer->computing(booking);
  session_.attempt.lease.counted();
  http_client::Exchange exchange(tools.pool, {worker.id(), worker.spec().endpoint},
                                 tools.options.timeouts);
  exchange.on_sent([this] { note_sent(); });
  const Pointed pointed(exchange_, exchange);
  name_ = session_.name_leg(worker);
  const LegMessages& messages = session_.messages;
  const wire::SplicedBody body = co_await messages.prefill_body(
      mode, messages.call(worker, engine::Leg::Compute, *client, session_.progress.get(), name_),
      ticket);
  const bool by_room = mode == model::HandoffMode::Bootstrap;  // which implies the rank
  const auto rank = by_room ? std::nullopt : booking.rank();
  const auto sent_at = Suspects::Clock::now();
  const auto sent = co_await messages.send(
      exchange, messages.head(worker, rank, client->headers, body.size(), ticket->request_id),
      body);
  Result<engine::PrefillOutcome> outcome =
      sent ? engine::PrefillOutcome() : Result<engine::PrefillOutcome>(fail(sent.error()));
  if (sent) {
    note_sent();  // it may answer before it has taken all of the request
    session_.events.dispatch({Event::PrefillAccepted});
    outcome = co_await messages.read_prefill(exchange, mode, worker);
    if (outcome) answer_memory_ = exchange.take_memory();
  }
  exchange_ = nullptr;
  session_.events.wake();  // the flow may wait for its end
  if (outcome) {
    answered(booking, *std::move(outcome));
    co_return;
  }
  if (!dropped_ && co_await process_ended(tools.pool, worker, outcome.error(), exchange))
    poison_.ended_under(worker, sent_at);
  failed(std::move(outcome.error()), worker);
}

awaitable<void> PrefillLeg::run_beside(std::shared_ptr<PrefillLeg> leg) {
  std::exception_ptr thrown;
  try {
    co_await leg->run();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) co_return;
  // The client's flow waits for the leg; the task group reports the exception.
  leg->threw();
  std::rethrow_exception(thrown);
}

void PrefillLeg::drop() {
  dropped_ = true;
  if (!exchange_) return;
  exchange_->drop();
  session_.abort(session_.attempt.prefill_worker, name_);
}

void PrefillLeg::give_back(Error error) {
  const fleet::Booking given_up = std::move(booking_);
  session_.scheduler.give_back(error.message());
  failed(std::move(error), given_up.worker());
}

void PrefillLeg::note_sent() {
  sent_ = true;
  session_.events.wake();
}

void PrefillLeg::answered(fleet::Booking& booking, engine::PrefillOutcome outcome) {
  fleet::Worker& worker = booking.worker();
  Attempt& attempt = session_.attempt;
  const ModeRules& rules = rules_of(*attempt.mode);
  worker.succeeded();
  if (session_.trace) session_.trace->prefill.end();
  if (outcome.final_answer)
    final_answer_ = std::make_unique<std::string>(*std::exchange(outcome.final_answer, {}));
  attempt.outcome = std::make_shared<const engine::PrefillOutcome>(std::move(outcome));
  const engine::PrefillOutcome& answer = *attempt.outcome;
  booking.prefill_completed(computed_tokens(answer.usage));
  if (session_.scheduler.streams() && !attempt.streaming)
    attempt.transfer = fleet::Transfer(booking, session_.request.prompt_tokens);
  attempt.lease.done();
  if (session_.request.observer) session_.request.observer->computed(answer.usage);
  if (answer.peer && rules.mode != worker.spec().mode())
    session_.tools.peers.learn(worker.id(), booking.rank().value_or(0), *answer.peer);
  if (session_.gone && !rules.keeps_blocks) session_.count_waste();
  // It would compute every prompt for nothing.
  if (answer.unkept) worker.misconfigured(engine::kNoConnector);
  const bool kept = !answer.handoff.empty();
  if (final_answer_) {
    session_.events.dispatch({.event = Event::PrefillEnded, .kept = kept});
  } else {
    session_.events.dispatch(
        {kept || rules.order == LegOrder::Together ? Event::PrefillKept : Event::PrefillEmpty});
  }
}

void PrefillLeg::failed(Error error, fleet::Worker& worker) {
  session_.attempt.lease = {};
  const Failure failure = failure_of(error);
  if (!dropped_) {
    if (error.code() == Errc::EngineTimeout) session_.abort(session_.attempt.prefill_worker, name_);
    explain(std::move(error));
    if (failed_part(*error_, false) == FailedPart::Worker)
      session_.scheduler.prefill_failed(worker);
    log_failure(session_.tools.options.log, session_.request, "prefill", worker, *error_);
    count_failure(worker, *error_);
    session_.invalidate_peer_if_stale(*error_);
  }
  session_.events.dispatch({.event = Event::PrefillFailed, .failure = failure});
}

void PrefillLeg::threw() {
  session_.attempt.lease = {};
  explain(Error(Errc::Internal, "the prefill leg failed inside the router"));
  session_.events.dispatch({.event = Event::PrefillFailed, .failure = {.retryable = false}});
  session_.events.wake();
}

}  // namespace baton::handoff
