// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/applier.h"
#include "kvcache/events/feed.h"
#include "kvcache/events/feed_thread.h"
#include "kvcache/events/framing.h"
#include "kvcache/events/readiness.h"
#include "kvcache/events/sequence.h"
#include "kvcache/events/sockets.h"
#include "libs/locks/mutex.h"
#include "telemetry/log.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>
#include <zmq.hpp>

namespace baton::kvcache {

// A feed's status for readers on any thread.
struct StatusCell {
  locks::Mutex mutex;
  FeedStatus status GUARDED_BY(mutex);
  bool noted GUARDED_BY(mutex) = false;  // it is in StatusChanges
};

// Role. The holders whose status has changed since the last take().
// Confinement. Any thread.
// Invariants. No holder is in it twice.
class StatusChanges {
 public:
  void note(StatusCell& cell, Holder holder) {
    {
      const locks::Lock lock(cell.mutex);
      if (std::exchange(cell.noted, true)) return;
    }
    const locks::Lock lock(mutex_);
    holders_.push_back(holder);
  }
  // Reset `noted` in a holder's cell before reading its status.
  std::vector<Holder> take() {
    const locks::Lock lock(mutex_);
    return std::exchange(holders_, {});
  }

 private:
  locks::Mutex mutex_;
  std::vector<Holder> holders_ GUARDED_BY(mutex_);
};

// State shared by the readers of a thread. Outlives them.
struct FeedContext {
  Index& index;
  telemetry::Logger& log;
  FeedThread::Options options;
  zmq::context_t zmq = make_context();
  Readiness readiness = {};
  StatusChanges changes = {};
};

// Role. One feed: applies its batches in order to the index, replays missing ones, and logs its
//   events. The owner of the socket passes in the published batches.
// Confinement. The feed's thread.
// Lifetime. The context and the cell outlive it.
// Invariants. One replay at a time, each over a connection of its own, so that late answers to an
//   earlier one are never seen. Whatever is answered, a replay ends in bounded time.
class FeedReader final : public Source, private Sequence::Sink {
 public:
  FeedReader(FeedContext& context, FeedSpec spec, Slot slot, StatusCell& cell);
  ~FeedReader() override;
  FeedReader(const FeedReader&) = delete;
  FeedReader& operator=(const FeedReader&) = delete;

  const FeedSpec& spec() const { return spec_; }

  // There is a socket, at that address.
  void opened(std::string_view endpoint, bool bound);
  // `attempts` to connect have failed.
  void refused(std::size_t attempts);
  void disconnected();
  // A connection to the publisher is open, the first one or another.
  void connected();
  void published(const Framed& batch);
  // Something came that is no batch at all.
  void garbled();
  // Publishes status() to other threads: after a number of calls of the above.
  void show();
  FeedStatus status() const;

  bool work() override;  // of the replay
  void on_time() override;

 private:
  using Clock = std::chrono::steady_clock;
  // Keeps frequent events from filling the log.
  struct LogRateLimiter {
    std::optional<Clock::time_point> last;
    bool passes(Clock::time_point now);
  };

  void apply(std::span<const std::byte> payload, Sequence::Origin origin) override;
  void forget() override;

  FeedState state() const;
  void follow_up();
  void report();
  void report_size();
  void tend_replay(Clock::time_point now);
  void ask(Clock::time_point now);
  void attempt_failed(Clock::time_point now);
  void stop_replay();
  void unreadable(std::string_view problem);

  FeedContext& context_;
  const FeedSpec spec_;
  StatusCell& cell_;
  Applier applier_;
  Sequence sequence_;

  std::optional<zmq::socket_t> replay_;
  std::optional<Sequence::Wanted> asked_;
  std::size_t attempts_ = 0;                     // that failed
  std::optional<Clock::time_point> last_asked_;  // when
  std::optional<Clock::time_point> ask_at_;      // next
  Clock::time_point reply_by_;                   // or it has failed
  Clock::time_point end_by_;                     // or it has failed, too
  bool reached_ = false;                         // the publisher, at least once
  std::uint64_t refusals_ = 0;                   // before that
  bool fresh_ = false;                           // connection, of which nothing has come yet
  std::optional<Clock::time_point> confirm_at_;

  std::optional<Clock::time_point> last_batch_;
  std::optional<std::chrono::duration<double>> lag_;
  bool broken_ = false;   // the last batch could not be read
  bool damaged_ = false;  // since one could not
  std::uint64_t unreadable_ = 0;
  std::uint64_t garbled_ = 0;
  std::uint64_t refused_size_ = 0;  // said so
  bool opened_ = false;             // said so
  bool lived_ = false;              // said so
  Sequence::Counts reported_;
  std::optional<Sequence::Counts> repairing_;  // as they were when a gap was found
  LogRateLimiter gap_limiter_;
  LogRateLimiter repaired_limiter_;
  LogRateLimiter lost_limiter_;
  LogRateLimiter restart_limiter_;
  LogRateLimiter silent_limiter_;
};

}  // namespace baton::kvcache
