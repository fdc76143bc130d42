// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "fleet/worker.h"
#include "http_client/upstream_pool.h"
#include "kvcache/events/applier.h"
#include "kvcache/events/feed.h"
#include "kvcache/index/index.h"
#include "model/worker.h"
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

namespace baton::kvcache {

// Role. Polls one TensorRT-LLM server for its KV events, and applies them for all of its workers,
//   one per model: an answer empties the server's buffer, so no other client may ask.
// Confinement. The control thread.
// Lifetime. Shared with the coroutine that asks; close() ends that. The index and the pool outlive
//   it.
// Invariants. All listeners have heard the same. It asks less often while nothing happens.
class EventPoll : public std::enable_shared_from_this<EventPoll> {
 public:
  EventPoll(boost::asio::io_context& io, http_client::UpstreamPool& pool, telemetry::Logger& log,
            Index& index);

  // `slots`: of its ranks, in order. They have no other writer until it has left. Events that other
  // workers of the server have heard already hold for it, too.
  void join(std::shared_ptr<const fleet::Worker> worker, std::span<const Slot> slots,
            std::optional<std::uint32_t> block_size);
  // The last one's leaving closes it.
  void leave(model::WorkerId worker);

  // Requires: a worker has joined.
  boost::asio::awaitable<void> run();
  void close();
  bool closed() const { return closed_; }
  std::vector<FeedStatus> statuses() const;
  // Null if the holder does not listen.
  const FeedStatus* status(Holder holder) const;

 private:
  struct Rank {
    std::unique_ptr<Applier> applier;
    FeedStatus status;
    std::uint64_t refused_size = 0;  // said so
  };
  struct Listener {
    std::shared_ptr<const fleet::Worker> worker;
    std::vector<Rank> ranks;
  };

  boost::asio::awaitable<void> ask();
  // Before the next question.
  std::chrono::milliseconds pause() const;
  void apply(const std::string& answer);
  // How many events it had.
  Result<std::uint64_t> apply(Listener& listener, const std::string& answer);
  void report_size(const Listener& listener, Rank& rank);
  // The server was replaced: its blocks are gone.
  static void forget(Rank& rank);
  // The same, also if no answer was applied to its end yet.
  static void drop(Rank& rank);
  void failed(std::string_view why);

  http_client::UpstreamPool& pool_;
  telemetry::Logger& log_;
  Index& index_;
  boost::asio::steady_timer timer_;
  std::vector<Listener> listeners_;
  std::chrono::milliseconds pause_;
  unsigned failures_ = 0;  // in a row
  bool closed_ = false;
};

}  // namespace baton::kvcache
