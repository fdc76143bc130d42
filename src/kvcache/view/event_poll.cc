// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/event_poll.h"

#include "http_client/fetch.h"
#include "net/await.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

namespace baton::kvcache {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;

// The engine keeps a ring of events and drops the oldest: not so seldom that it overflows.
constexpr milliseconds kPause{100};
// Often enough that events are in time for their comparison with answers (KvCacheView::settle).
constexpr milliseconds kIdlePause{300};
constexpr milliseconds kLongestPause{5'000};
constexpr unsigned kMostDoublings = 6;
constexpr milliseconds kTimeout{5'000};
constexpr std::size_t kLargestAnswer = std::size_t{64} << 20;

}  // namespace

EventPoll::EventPoll(boost::asio::io_context& io, http_client::UpstreamPool& pool,
                     telemetry::Logger& log, Index& index)
    : pool_(pool), log_(log), index_(index), timer_(io), pause_(kPause) {}

void EventPoll::join(std::shared_ptr<const fleet::Worker> worker, std::span<const Slot> slots,
                     std::optional<std::uint32_t> block_size) {
  Listener listener{.worker = std::move(worker), .ranks = {}};
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    Rank one{.applier = std::make_unique<Applier>(index_, slots[rank], block_size), .status = {}};
    if (!listeners_.empty() && rank < listeners_.front().ranks.size()) {
      const Rank& other = listeners_.front().ranks[rank];
      one.applier->adopt(*other.applier);
      one.status = other.status;
      one.status.shape = one.applier->shape();
      one.status.tally = one.applier->tally();
    }
    one.status.holder = {listener.worker->id(), static_cast<std::uint32_t>(rank)};
    listener.ranks.push_back(std::move(one));
  }
  listeners_.push_back(std::move(listener));
}

void EventPoll::leave(model::WorkerId worker) {
  std::erase_if(listeners_,
                [&](const Listener& listener) { return listener.worker->id() == worker; });
  if (listeners_.empty()) close();
}

std::vector<FeedStatus> EventPoll::statuses() const {
  std::vector<FeedStatus> statuses;
  for (const Listener& listener : listeners_) {
    for (const Rank& rank : listener.ranks) statuses.push_back(rank.status);
  }
  return statuses;
}

const FeedStatus* EventPoll::status(Holder holder) const {
  const auto found = std::ranges::find(listeners_, holder.worker,
                                       [](const Listener& one) { return one.worker->id(); });
  if (found == listeners_.end() || holder.rank >= found->ranks.size()) return nullptr;
  return &found->ranks[holder.rank].status;
}

awaitable<void> EventPoll::run() {
  const auto alive = shared_from_this();
  while (!closed_) {
    try {
      co_await ask();
    } catch (const std::exception& failure) {  // out of memory or descriptors: it may pass
      // The answer's events may be lost, and cannot be fetched again.
      for (Listener& listener : listeners_) std::ranges::for_each(listener.ranks, drop);
      if (!closed_) failed(failure.what());
    }
    timer_.expires_after(pause());
    if (closed_) break;
    co_await timer_.async_wait(net::kAwait);
  }
}

void EventPoll::close() {
  closed_ = true;
  timer_.cancel();
}

milliseconds EventPoll::pause() const {
  if (failures_ == 0) return pause_;
  return std::min(kLongestPause, kPause * (1U << std::min(failures_, kMostDoublings)));
}

awaitable<void> EventPoll::ask() {
  const auto worker = listeners_.front().worker;
  const auto answer = co_await http_client::fetch(
      pool_, {worker->id(), worker->spec().endpoint},
      {.method = "POST", .path = "/kv_cache_events", .largest_answer = kLargestAnswer},
      {.first_byte = kTimeout, .idle = kTimeout});
  if (closed_) co_return;
  if (!answer && answer.error().code() == Errc::OutOfResources) {
    ++failures_;  // the engine keeps the events, and the index its blocks
  } else if (!answer) {
    // Nothing listens there: the next server at that address is another process.
    if (answer.error().cause() == std::errc::connection_refused) {
      for (Listener& listener : listeners_) std::ranges::for_each(listener.ranks, forget);
    }
    failed(answer.error().message());
  } else if (answer->status != 200) {
    failed(fmt::format("POST /kv_cache_events was answered with {}; is event_buffer_max_size set?",
                       answer->status));
  } else {
    apply(answer->body);
  }
}

void EventPoll::apply(const std::string& answer) {
  std::uint64_t events = 0;
  for (Listener& listener : listeners_) {
    const auto applied = apply(listener, answer);
    if (!applied) return failed(applied.error().message());
    events += *applied;
  }
  failures_ = 0;
  pause_ = events > 0 ? kPause : std::min(kIdlePause, 2 * pause_);
}

Result<std::uint64_t> EventPoll::apply(Listener& listener, const std::string& answer) {
  std::uint64_t events = 0;
  bool restarted = false;
  std::vector<Rank*> quiet;
  for (Rank& rank : listener.ranks) {
    FeedStatus& status = rank.status;
    const auto polled = rank.applier->apply_trtllm(answer, status.holder.rank);
    status.tally = rank.applier->tally();
    if (!polled) return fail(polled.error());
    if (rank.refused_size == 0 && rank.applier->refused_size() != 0) report_size(listener, rank);
    status.shape = rank.applier->shape();
    status.lost += polled->lost;
    status.gaps += polled->lost > 0 ? 1 : 0;
    status.restarts += polled->restarts;
    if (polled->events > 0) {
      status.last_batch = std::chrono::steady_clock::now();
      status.state = polled->lost > 0 ? FeedState::Gap : FeedState::Live;
    } else if (status.state == FeedState::Broken) {
      status.state = status.last_batch ? FeedState::Live : FeedState::Waiting;
    }
    if (polled->last_id) status.position = {.sequence = *polled->last_id, .payload_hash = 0};
    events += polled->events;
    restarted = restarted || polled->restarts > 0;
    if (polled->events == 0) quiet.push_back(&rank);
  }
  // One process has all ranks: those without an event are new as well.
  if (restarted) {
    for (Rank* rank : quiet) forget(*rank);
  }
  return events;
}

void EventPoll::report_size(const Listener& listener, Rank& rank) {
  rank.refused_size = rank.applier->refused_size();
  log_.warning("feed_block_size",
               {{"worker", listener.worker->name()},
                {"rank", std::int64_t{rank.status.holder.rank}},
                {"configured", std::int64_t{listener.worker->spec().block_size.value_or(0)}},
                {"told", static_cast<std::int64_t>(rank.refused_size)}});
}

void EventPoll::forget(Rank& rank) {
  if (rank.status.position) drop(rank);
}

void EventPoll::drop(Rank& rank) {
  rank.applier->forget();
  rank.status.shape.reset();
  rank.status.position.reset();
  ++rank.status.restarts;
}

void EventPoll::failed(std::string_view why) {
  if (failures_++ == 0) {
    log_.warning("kv_poll_failed", {{"worker", listeners_.front().worker->name()}, {"error", why}});
  }
  for (Listener& listener : listeners_) {
    for (Rank& rank : listener.ranks) rank.status.state = FeedState::Broken;
  }
}

}  // namespace baton::kvcache
