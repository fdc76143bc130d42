// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How a session has unneeded blocks fetched, so that the prefill worker frees them.
#include "engine/shared/dialect.h"
#include "handoff/session.h"
#include "http_client/exchange.h"
#include "net/pause.h"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace baton::handoff {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};  // doubled each time
constexpr std::chrono::milliseconds kLongestPause{2000};

}  // namespace

void HandoffSession::release() {
  count_waste();
  Release release{.mode = *mode_,
                  .pool = scheduler_.pool(),
                  .workers = *scheduler_.mode(),
                  .holder = prefill_worker_,
                  .rank = prefill_rank_,
                  .ticket = *ticket_,
                  .outcome = outcome_,
                  .transfer = scheduler_.transfer(),
                  .material = material(),
                  .headers = request_.headers,
                  .progress = progress_ ? std::optional(*progress_) : std::nullopt};
  // It would be one worker more that has to do with a request that may end it.
  if (suspect_ && trace_) return held_releases_.push_back(std::move(release));
  send_release(std::move(release));
}

void HandoffSession::send_held_releases() {
  for (Release& release : std::exchange(held_releases_, {})) send_release(std::move(release));
}

void HandoffSession::send_release(Release release) {
  request_.counters.releases.add();
  if (handoff_.options_.log) {
    handoff_.options_.log->debug("blocks_released", {{"id", request_.request_id},
                                                     {"model", request_.model->name()},
                                                     {"client_left", gone_.has_value()}});
  }
  handoff_.tasks_.spawn([](std::shared_ptr<HandoffSession> run, Release what) -> awaitable<void> {
    co_await run->release_leg(std::move(what));
  }(shared_from_this(), std::move(release)));
}

awaitable<void> HandoffSession::release_leg(Release release) {
  ReleaseTries tries{.failed = scheduler_.failures().suspected_decodes()};
  const auto begun = std::chrono::steady_clock::now();
  // The holder of the blocks, or all workers that could fetch them, may be away for a while.
  for (auto pause = kFirstPause; std::chrono::steady_clock::now() < begun + handoff_.release_for();
       pause = std::min(2 * pause, kLongestPause)) {
    co_await find_holder_again(release);
    if (co_await try_release(release, tries)) co_return;
    co_await net::pause(pause);
  }
}

// If closing its leg frees the blocks too, a slow worker is waited for: a second leg would ask for
// blocks that another request may have by then.
awaitable<bool> HandoffSession::try_release(const Release& release, ReleaseTries& tries) {
  auto booking =
      scheduler_.place_release(*release.pool, release.workers, release.transfer, tries.failed);
  if (!booking) co_return false;
  const engine::Dialect& workers = engine::dialect_of(release.workers);
  const std::chrono::milliseconds grace = handoff_.options_.grace;
  const http_client::ExchangeTimeouts timeouts =
      workers.frees_blocks({.how = engine::DecodeEnd::How::Closed})
          ? handoff_.options_.timeouts
          : http_client::ExchangeTimeouts{.first_byte = grace, .idle = grace};
  const fleet::Worker& worker = booking->worker();
  const engine::ClientCall wanted = call(worker, engine::Leg::Continue, release.material,
                                         release.progress ? &*release.progress : nullptr);
  const Parcel parcel = co_await decode_parcel(release.mode, wanted, release.ticket,
                                               release.outcome, engine::DecodePurpose::Release);
  http_client::Exchange exchange(handoff_.pool_, {worker.id(), worker.spec().endpoint}, timeouts);
  const auto sent_at = Suspects::Clock::now();
  std::string error_type;
  const auto sent = co_await send(exchange, worker, booking->rank(), release.headers, parcel.body,
                                  release.ticket.request_id, parcel.signature, &error_type);
  if (sent) {  // the one token is there, so the blocks have been taken
    co_await exchange.read_all(handoff_.options_.response_bytes);
    co_return true;
  }
  if (sent.error().code() == Errc::ShuttingDown) co_return true;
  if (workers.frees_blocks(end_of(exchange, worker, sent.error(), std::move(error_type))))
    co_return true;
  if (co_await has_ended(worker, sent.error(), exchange)) {
    const auto request = Suspects::request_of(release.material.body->object().text());
    if (request_.counters.suspects.ended(request, worker.id(), sent_at, Suspects::Clock::now()) >=
        Suspects::kTooMany)
      co_return true;
  }
  tries.failed.push_back(worker.id());
  // One that waits in vain for blocks that were surely held may hang; a second one shows that they
  // are no longer held.
  const int patience = release.outcome->handoff.empty() ? 1 : 2;
  co_return sent.error().code() == Errc::EngineTimeout && ++tries.in_vain == patience;
}

// Legs that are sent at once carry the prefill worker's id from an earlier question: it may have
// restarted just before, and hold the blocks under another id.
awaitable<void> HandoffSession::find_holder_again(Release& release) {
  if (rules_of(release.mode).order != LegOrder::Together) co_return;
  const fleet::Worker& holder = *release.holder;
  auto peer = co_await handoff_.peers_.find(holder.id(), holder.spec(), release.rank);
  if (peer) release.ticket.peer = std::move(*peer);
}

}  // namespace baton::handoff
