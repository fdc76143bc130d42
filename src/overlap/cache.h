// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "kvindex/index.h"
#include "overlap/truth_meter.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::overlap {

using Clock = std::chrono::steady_clock;

// Whose word counts on what a cache holds.
enum class Trusted : std::uint8_t {
  Nothing,    // nobody's: it counts as empty
  Events,     // the engine's
  Decisions,  // our own: it is believed to hold what it was sent
};
std::string_view to_string(Trusted trusted);

// What has become of a cache's feed.
enum class FeedHealth : std::uint8_t {
  None,     // it has no feed
  Waiting,  // nothing has come yet, and nothing had to
  Live,
  Silent,  // nothing comes although something should
  Broken,  // what comes cannot be read, or the feed cannot be had
};
std::string_view to_string(FeedHealth health);

// Role. The KV cache of one rank of a worker, as far as Baton keeps book of it.
// Confinement. Any thread.
// Lifetime. Shared by whoever looks at it.
class Cache {
 public:
  struct Identity {
    kvindex::Holder holder;
    std::string worker;     // its name
    std::string authority;  // host:port
    std::string model;
  };
  Cache(Identity identity, kvindex::Slot slot, kvindex::BlockShape shape)
      : identity_(std::move(identity)), slot_(slot), shape_(shape) {}

  const Identity& identity() const { return identity_; }
  kvindex::Slot slot() const { return slot_; }
  kvindex::BlockShape shape() const { return shape_.load(std::memory_order_relaxed); }
  void set_shape(kvindex::BlockShape shape) { shape_.store(shape, std::memory_order_relaxed); }

  // Has brought near what shape() and trusted() look at: they will be asked in a moment.
  void fetch() const { __builtin_prefetch(&shape_); }

  FeedHealth health() const { return health_.load(std::memory_order_relaxed); }
  // What it was before.
  FeedHealth set_health(FeedHealth health) { return health_.exchange(health); }
  bool believed() const { return believed_.load(std::memory_order_relaxed); }
  Trusted trusted(config::IndexSource source) const;

  // A prompt was computed. What of it was cached counts where the engine said so; whether the
  // judgement of the feed is another one now.
  bool compare(const TruthMeter::Sample& sample);
  // A prompt that was sent then has been computed, and must have left new blocks in the cache: an
  // event has come since, or is due. Whether that is new.
  bool expect_events(Clock::time_point sent, Clock::time_point now);
  // Since when events have been due, of which the last came at `last`; nothing where none are.
  std::optional<Clock::time_point> overdue_since(std::optional<Clock::time_point> last);

  struct Truth {
    std::uint64_t samples = 0;
    double error = 0;
    std::uint64_t predicted_tokens = 0;
    std::uint64_t reported_tokens = 0;
  };
  Truth truth() const;

 private:
  const Identity identity_;
  const kvindex::Slot slot_;
  std::atomic<kvindex::BlockShape> shape_;
  std::atomic<FeedHealth> health_{FeedHealth::None};
  std::atomic<bool> believed_{true};
  mutable std::mutex mutex_;
  TruthMeter meter_;                    // under mutex_
  std::uint64_t predicted_tokens_ = 0;  // under mutex_
  std::uint64_t reported_tokens_ = 0;   // under mutex_
  struct Due {
    Clock::time_point sent;  // events that came later may be of it
    Clock::time_point since;
  };
  std::optional<Due> events_due_;  // under mutex_
};

}  // namespace baton::overlap
