// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/feed.h"
#include "kvcache/index/index.h"
#include "telemetry/log.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace baton::kvcache {

// Role. Reads feeds on a thread of its own: subscribes, notices gaps and restarts, asks for missing
//   batches, and applies events.
// Confinement. Any thread may call; the work is done on the feed's thread.
// Lifetime. The index and the log outlive it. Its destructor ends the thread.
// Invariants. A feed's slot is written by this thread alone while the feed is open.
class FeedThread {
 public:
  struct Options {
    std::chrono::milliseconds replay_timeout{2'000};  // without a reply, before it is given up
    std::chrono::milliseconds replay_pause{200};      // before it is tried again; doubles
    std::size_t replay_attempts = 8;
    std::size_t held_batches = 4'096;  // that came while a replay is under way
  };
  FeedThread(Index& index, telemetry::Logger& log, Options options);
  ~FeedThread();

  // Requires: the slot is the holder's, and has no other writer until close() has returned.
  void open(FeedSpec spec, Slot slot);
  // After it returns, nothing of the feed is applied any more. Applied events stay in the index.
  void close(Holder holder);
  std::vector<FeedStatus> statuses() const;
  // Statuses that have changed since the last call.
  std::vector<FeedStatus> changed();
  // Between two batches, on the feed's thread; returns when it is done. The index and the status
  // are of one moment; null: there is no such feed.
  void while_quiet(Holder holder, const std::function<void(const FeedStatus*)>& work);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::kvcache
