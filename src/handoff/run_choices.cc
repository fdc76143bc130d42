// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How a run gets its workers: when it is admitted, and whom it books.
#include "handoff/pool_gate.h"
#include "handoff/run.h"

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::handoff {
namespace {

// What the best cache of those workers has of the prompt.
std::uint64_t most_cached_tokens(const fleet::KnownPrompt& prompt,
                                 const fleet::WorkerSet& workers) {
  const auto members = workers.members();
  std::uint64_t most = 0;
  for (const fleet::KnownPrompt::Hit& hit : prompt.hits) {
    if (!members->find(hit.seat)) continue;
    const std::uint64_t blocks = std::uint64_t{hit.device} + hit.host + hit.disk;
    most = std::max(most, blocks * hit.block_size);
  }
  return std::min(most, prompt.tokens);
}

admission::Chain chain_of(const fleet::KnownPrompt& prompt, std::uint64_t cached) {
  const fleet::KnownPrompt::Shape& shape = prompt.shapes.front();
  return {.hashes = *shape.chain,
          .cached = cached / shape.block_size,
          .block_tokens = shape.block_size};
}

// Anybody of the pool may have it.
bool goes_anywhere(const routing::Hints& hints) {
  return !hints.prefill && !hints.decode && !hints.allowed && hints.constraints.required.empty();
}

}  // namespace

awaitable<Result<fleet::Booking>> Run::admit(Choose choose) {
  const config::Queue& queue = job_.model->routing().queue;
  const model::Policy policy = selection_.first_workers().policy();
  const bool waits = !queue.classes.empty() || queue.follow_tokens.value_or(0) > 0 ||
                     policy == model::Policy::Ttft;
  // Who was let through once need not queue again for another attempt.
  if (!waits || tries() > 1) co_return choose({});
  const auto home = co_await boost::asio::this_coro::executor;
  PoolGate& pool =
      PoolGate::of(*selection_.pool(), queue, policy, job_.model->name(), home, handoff_.metrics_);
  selection_.look_at_prompt();
  const fleet::KnownPrompt& prompt = selection_.prompt();
  std::uint64_t cached = most_cached_tokens(prompt, selection_.first_workers());
  Waited waited;
  const auto patience = job_.patience ? job_.patience->at_most : std::nullopt;
  const bool hasty = patience && patience->count() == 0;
  if (pool.followers() && !hasty && goes_anywhere(*job_.hints) && !prompt.shapes.empty() &&
      prompt.shapes.front().chain) {
    using Clock = admission::Followers::Clock;
    auto joined = co_await pool.followers()->join(
        chain_of(prompt, cached), patience ? Clock::now() + *patience : Clock::time_point::max(),
        cancellation_);
    if (!joined) co_return fail(std::move(joined.error()));
    leading_ = std::move(joined->leading);
    waited.followed = joined->waited;
    if (joined->followed) {
      selection_.look_at_prompt();
      cached = most_cached_tokens(selection_.prompt(), selection_.first_workers());
    }
  }
  if (!pool.gate()) {
    note(std::move(waited));
    co_return choose({});
  }
  admission::Request request = admission_request(cached);
  std::optional<fleet::Booking> booked;
  std::optional<routing::Awaiting> awaiting;
  auto admitted = co_await pool.gate()->enter(
      std::move(request),
      [&](const config::QueueClass& one) -> Result<admission::Attempted> {
        awaiting.reset();  // it does not wait for itself
        awaiting.emplace();
        auto booking = choose(fleet::BusyLine{.tokens = one.busy_tokens,
                                              .share = one.busy_share,
                                              .late = one.late,
                                              .awaiting = &*awaiting});
        if (booking) {
          booked = std::move(*booking);
          return admission::Attempted::Taken;
        }
        if (booking.error().code() == Errc::WorkersBusy) return admission::Attempted::Busy;
        return fail(std::move(booking.error()));
      },
      cancellation_);
  if (!admitted) co_return fail(std::move(admitted.error()));
  waited.policy_class = std::move(admitted->policy_class);
  waited.queued = admitted->waited;
  waited.ahead = admitted->ahead;
  note(std::move(waited));
  co_return std::move(*booked);
}

admission::Request Run::admission_request(std::uint64_t cached) const {
  const routing::Hints& hints = *job_.hints;
  const fleet::KnownPrompt& prompt = selection_.prompt();
  const auto named = hints.metadata.find("policy-class");
  const routing::Pin* const pin = selection_.first_pin();
  // Where one of these finds all busy, all of them do; but for those who wait for their best one.
  const bool plain = !job_.model->routing().queue.classes.empty() && goes_anywhere(hints) &&
                     hints.session_id.empty();
  return {.policy_class = named == hints.metadata.end() ? std::string() : named->second,
          .strict_priority = hints.strict_priority.value_or(0),
          .priority_jump = static_cast<double>(std::max(0, hints.priority.value_or(0))),
          .tenant = hints.tenant.empty() ? job_.client : hints.tenant,
          .prompt_tokens = prompt.tokens,
          .cached_tokens = cached,
          .lane = pin != nullptr ? pin->worker : std::string(plain ? "*" : ""),
          .compute_seconds = compute_seconds(prompt.tokens - std::min(cached, prompt.tokens)),
          .workers = std::max<std::size_t>(1, selection_.first_workers().size()),
          .patience = job_.patience};
}

// For so many new tokens, as fast as the first of its workers is.
double Run::compute_seconds(std::uint64_t tokens) const {
  const auto members = selection_.first_workers().members();
  if (members->workers.empty()) return 0;
  return members->workers.front()->pace(0).speed().seconds(static_cast<double>(tokens));
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
  outcome_ = {};
  handed_off_ = prefill_dropped_ = false;
  ticket_ = std::make_unique<engine::HandoffTicket>();
  // The legs of an attempt share their id; a new attempt must not meet what is left of the last.
  ticket_->request_id = machine_.attempts() == 1
                            ? job_.request_id
                            : fmt::format("{}-r{}", job_.request_id, machine_.attempts() - 1);
  if (trail_) trail_->prefill = {};
}

awaitable<void> Run::choose_prefill() {
  begin_attempt();
  selection_.begin_attempt(tries());
  if (machine_.attempts() == 1) {
    if (auto bypass = selection_.bypass(job_.counters)) {
      decode_booking_ = std::move(*bypass);
      bypassed_ = true;
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
  prefill_worker_ = worker.id();
  const std::uint32_t rank = prefill_booking_.rank().value_or(0);
  auto peer = co_await handoff_.peers_.find(worker.id(), worker.spec(), rank);
  if (!peer && *mode_ == model::HandoffMode::NixlPush && peer.error().code() == Errc::NoHandoff) {
    // Nobody has said how to find it: the first time one leg follows the other, and its answer tells.
    mode_ = model::HandoffMode::NixlPull;
    peer = engine::PrefillPeer{};
  }
  if (!peer) {
    const fleet::Booking given_up = std::move(prefill_booking_);
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
  if (alone) begin_attempt();
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
