// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "overlap/event_poll.h"

#include "engine/fetch.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::overlap {
namespace {

using boost::asio::awaitable;
using kvevents::FeedState;
using std::chrono::milliseconds;

// The engine keeps a ring of events and drops the oldest: not so seldom that it overflows.
constexpr milliseconds kPause{100};
constexpr milliseconds kLongestPause{5'000};
constexpr unsigned kMostDoublings = 6;
constexpr milliseconds kPatience{5'000};
constexpr std::size_t kLargestAnswer = std::size_t{64} << 20;

}  // namespace

EventPoll::EventPoll(boost::asio::io_context& io, engine::UpstreamPool& pool,
                     telemetry::Logger& log, std::shared_ptr<const fleet::Worker> worker,
                     kvindex::Index& index, std::span<const kvindex::Slot> slots,
                     std::optional<std::uint32_t> block_size)
    : pool_(pool), log_(log), worker_(std::move(worker)), timer_(io) {
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    Rank one{.applier = std::make_unique<kvevents::Applier>(index, slots[rank], block_size),
             .status = {}};
    one.status.holder = {worker_->id(), static_cast<std::uint32_t>(rank)};
    ranks_.push_back(std::move(one));
  }
}

awaitable<void> EventPoll::run() {
  const auto alive = shared_from_this();
  while (!closed_) {
    timer_.expires_after(co_await ask());
    if (closed_) break;
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

void EventPoll::close() {
  closed_ = true;
  timer_.cancel();
}

awaitable<milliseconds> EventPoll::ask() {
  // Who cannot be reached is asked for its health elsewhere.
  const auto answer = co_await engine::fetch(
      pool_, {worker_->id(), worker_->spec().endpoint},
      {.method = "POST", .path = "/kv_cache_events", .largest_answer = kLargestAnswer},
      {.first_byte = kPatience, .idle = kPatience});
  if (closed_) co_return kPause;
  if (!answer) {
    failed(answer.error().message());
  } else if (answer->status != 200) {
    failed(fmt::format("POST /kv_cache_events was answered with {}; is event_buffer_max_size set?",
                       answer->status));
  } else {
    apply(answer->body);
  }
  co_return std::min(kLongestPause, kPause * (1U << std::min(failures_, kMostDoublings)));
}

void EventPoll::apply(const std::string& answer) {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& one = ranks_[rank];
    kvevents::FeedStatus& status = one.status;
    const auto polled = one.applier->apply_trtllm(answer, rank);
    status.tally = one.applier->tally();
    if (!polled) return failed(polled.error().message());
    status.shape = one.applier->shape();
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
  }
  failures_ = 0;
}

void EventPoll::failed(std::string_view why) {
  if (failures_++ == 0) {
    log_.warning("kv_poll_failed", {{"worker", worker_->name()}, {"error", why}});
  }
  for (Rank& one : ranks_) one.status.state = FeedState::Broken;
}

}  // namespace baton::overlap
