// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/upstream_pool.h"
#include "fleet/worker.h"
#include "kvevents/applier.h"
#include "kvevents/feed.h"
#include "kvindex/index.h"
#include "telemetry/log.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace baton::overlap {

// Role. Asks one TensorRT-LLM server for its KV events again and again, and applies those of all its
//   ranks.
// Confinement. The control thread.
// Lifetime. Shared with the coroutine that asks; close() ends that. The index and the pool outlive
//   it.
class EventPoll : public std::enable_shared_from_this<EventPoll> {
 public:
  // `slots`: of its ranks, in order. Nobody else writes them until close().
  EventPoll(boost::asio::io_context& io, engine::UpstreamPool& pool, telemetry::Logger& log,
            std::shared_ptr<const fleet::Worker> worker, kvindex::Index& index,
            std::span<const kvindex::Slot> slots, std::optional<std::uint32_t> block_size);

  boost::asio::awaitable<void> run();
  void close();
  // Of a rank.
  const kvevents::FeedStatus& status(std::uint32_t rank) const { return ranks_[rank].status; }

 private:
  struct Rank {
    std::unique_ptr<kvevents::Applier> applier;
    kvevents::FeedStatus status;
  };

  // How long to wait before the next question.
  boost::asio::awaitable<std::chrono::milliseconds> ask();
  void apply(const std::string& answer);
  void failed(std::string_view why);

  engine::UpstreamPool& pool_;
  telemetry::Logger& log_;
  std::shared_ptr<const fleet::Worker> worker_;
  boost::asio::steady_timer timer_;
  std::vector<Rank> ranks_;
  unsigned failures_ = 0;  // in a row
  bool closed_ = false;
};

}  // namespace baton::overlap
