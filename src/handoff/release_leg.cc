// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/release_leg.h"

#include "handoff/leg_failure.h"
#include "handoff/process_end.h"
#include "handoff/suspects.h"
#include "http_client/exchange.h"
#include "net/pause.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace baton::handoff {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};  // doubled each time
constexpr std::chrono::milliseconds kLongestPause{2000};

awaitable<void> run_release(std::shared_ptr<SessionEvents> /*session*/, ReleaseLeg leg) {
  co_await leg.run();
}

}  // namespace

ReleaseLeg::ReleaseLeg(SessionContext& session)
    : session_(session),
      mode_(*session.attempt.mode),
      pool_(session.scheduler.pool()),
      workers_(*session.scheduler.mode()),
      holder_(session.attempt.prefill_worker),
      rank_(session.attempt.prefill_rank),
      ticket_(std::make_shared<engine::HandoffTicket>(*session.attempt.ticket)),
      outcome_(session.attempt.outcome),
      transfer_(session.scheduler.transfer()),
      client_(session.client) {
  if (session.progress) progress_ = std::make_unique<const engine::Progress>(*session.progress);
}

awaitable<void> ReleaseLeg::run() {
  failed_ = session_.scheduler.failures().suspected_decodes();
  const auto begun = std::chrono::steady_clock::now();
  const auto& release_for = session_.tools.options.release_for;  // shorter, once the process ends
  // The holder of the blocks, or all workers that could fetch them, may be away for a while.
  for (auto pause = kFirstPause; std::chrono::steady_clock::now() < begun + release_for;
       pause = std::min(2 * pause, kLongestPause)) {
    co_await find_holder_again();
    if (co_await try_once()) co_return;
    co_await net::pause(pause);
  }
}

// If closing its leg frees the blocks too, a slow worker is waited for: a second leg would ask for
// blocks that another request may have by then.
awaitable<bool> ReleaseLeg::try_once() {
  auto booking = session_.scheduler.place_release(*pool_, workers_, transfer_, failed_);
  if (!booking) co_return false;
  HandoffTools& tools = session_.tools;
  const engine::Dialect& workers = engine::dialect_of(workers_);
  const std::chrono::milliseconds grace = tools.options.grace;
  const http_client::ExchangeTimeouts timeouts =
      workers.frees_blocks({.how = engine::DecodeEnd::How::Closed})
          ? tools.options.timeouts
          : http_client::ExchangeTimeouts{.first_byte = grace, .idle = grace};
  const fleet::Worker& worker = booking->worker();
  const LegMessages& messages = session_.messages;
  const LegBody message = co_await messages.decode_body(
      mode_, messages.call(worker, engine::Leg::Continue, *client_, progress_.get()), ticket_,
      outcome_, engine::DecodePurpose::Release);
  http_client::Exchange exchange(tools.pool, {worker.id(), worker.spec().endpoint}, timeouts);
  const auto sent_at = Suspects::Clock::now();
  std::string error_type;
  const auto sent = co_await messages.send(
      exchange,
      messages.head(worker, booking->rank(), client_->headers, message.body.size(),
                    ticket_->request_id, message.signature),
      message.body, &error_type);
  if (sent) {  // the one token is there, so the blocks have been taken
    co_await exchange.read_all(tools.options.response_bytes);
    co_return true;
  }
  if (sent.error().code() == Errc::ShuttingDown) co_return true;
  if (workers.frees_blocks(decode_end(exchange, worker, sent.error(), std::move(error_type))))
    co_return true;
  if (co_await process_ended(tools.pool, worker, sent.error(), exchange)) {
    const auto request = Suspects::request_of(client_->body->object().text());
    if (session_.request.counters.suspects.ended(request, worker.id(), sent_at,
                                                 Suspects::Clock::now()) >= Suspects::kTooMany)
      co_return true;
  }
  failed_.push_back(worker.id());
  // One that waits in vain for blocks that were surely held may hang; a second one shows that they
  // are no longer held.
  const int attempts = outcome_->handoff.empty() ? 1 : 2;
  co_return sent.error().code() == Errc::EngineTimeout && ++in_vain_ == attempts;
}

// Legs that are sent at once carry the prefill worker's id from an earlier question: it may have
// restarted just before, and hold the blocks under another id.
awaitable<void> ReleaseLeg::find_holder_again() {
  if (rules_of(mode_).order != LegOrder::Together) co_return;
  auto peer = co_await session_.tools.peers.find(holder_->id(), holder_->spec(), rank_);
  if (peer) ticket_->peer = std::move(*peer);
}

void Releases::release() {
  session_.count_waste();
  ReleaseLeg leg(session_);
  const bool hold = poison_.suspect() && session_.trace;
  if (hold) return held_.push_back(std::move(leg));
  send(std::move(leg));
}

void Releases::send_held() {
  auto held = std::exchange(held_, {});
  if (poison_.poison()) return;
  for (ReleaseLeg& leg : held) send(std::move(leg));
}

void Releases::send(ReleaseLeg leg) {
  const HandoffRequest& request = session_.request;
  request.counters.releases.add();
  if (telemetry::Logger* log = session_.tools.options.log) {
    log->debug("blocks_released", {{"id", request.request_id},
                                   {"model", request.model->name()},
                                   {"client_left", session_.gone.has_value()}});
  }
  session_.tools.tasks.spawn(run_release(session_.events.shared_from_this(), std::move(leg)));
}

}  // namespace baton::handoff
