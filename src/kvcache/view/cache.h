// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "kvcache/index/index.h"
#include "kvcache/view/cache_trust.h"
#include "kvcache/view/feed_accuracy.h"
#include "libs/locks/mutex.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::kvcache {

using Clock = std::chrono::steady_clock;

// Keys that set blocks apart in an engine's cache and are in none of its events. The size allows
// one load or store.
struct alignas(4) Hidden {
  bool salts = false;
  bool adapters = false;
  bool keys = false;  // see PromptScope
  bool operator==(const Hidden&) const = default;
};

// Role. The KV cache of one rank of a worker, as far as Baton knows it.
// Confinement. Any thread.
// Lifetime. Shared by its users.
class Cache {
 public:
  struct Identity {
    Holder holder;
    std::string worker;     // its name
    std::string authority;  // host:port
    std::string model;
  };
  // `trust`: where its trust is kept, if it is shared.
  Cache(Identity identity, Slot slot, BlockShape shape,
        SharedTrust trust = std::make_shared<std::atomic<CacheTrust>>())
      : identity_(std::move(identity)), slot_(slot), trust_(std::move(trust)) {
    set_shape(shape);
  }

  const Identity& identity() const { return identity_; }
  Slot slot() const { return slot_; }
  const SharedTrust& trust() const { return trust_; }
  BlockShape shape() const { return now().shape(); }
  void set_shape(BlockShape shape) {
    change([shape](CacheTrust& trust) {
      trust.block_size = shape.size;
      trust.bigram = shape.bigram;
    });
  }
  FeedHealth health() const { return now().health; }
  // Returns the old value.
  FeedHealth set_health(FeedHealth health) {
    return change([health](CacheTrust& trust) { trust.health = health; }).health;
  }
  // Why the feed does not count, in words; empty if it does, or need not.
  std::string reason() const {
    const locks::Lock lock(mutex_);
    return reason_;
  }
  void set_reason(std::string reason) {
    const locks::Lock lock(mutex_);
    reason_ = std::move(reason);
  }
  Hidden hidden() const { return hidden_.load(std::memory_order_relaxed); }
  // Returns whether it is mixed from now on, by prompts sent before that was known.
  bool set_hidden(Hidden hidden);
  // It is sent a prompt with such things to set it apart. Whether it is mixed from now on.
  bool sent(Hidden apart);
  // The cache holds blocks that its events do not tell from others. For good: no event says when
  // they have left it.
  bool mixed() const { return now().mixed; }
  // Whether that is new.
  bool mix() {
    return !change([](CacheTrust& trust) { trust.mixed = true; }).mixed;
  }
  bool believed() const { return now().believed; }
  Trusted trusted(config::IndexSource source) const { return now().trusted(source); }

  // A prompt was computed. Its cached part counts if the engine reported it. Returns whether the
  // judgement of the feed has changed.
  bool compare(const FeedAccuracy::Sample& sample);
  // A prompt that was sent then has been computed, and must have left new blocks in the cache: an
  // event has come since, or is due. Whether that is new.
  bool expect_events(Clock::time_point sent, Clock::time_point now);
  // Since when events have been due, of which the last came at `last`; nothing if none are.
  std::optional<Clock::time_point> overdue_since(std::optional<Clock::time_point> last);

  struct Truth {
    std::uint64_t samples = 0;
    double error = 0;
    std::uint64_t predicted_tokens = 0;
    std::uint64_t reported_tokens = 0;
  };
  Truth truth() const;

 private:
  CacheTrust now() const { return trust_->load(std::memory_order_relaxed); }
  // Returns the old value.
  template <class Change>
  CacheTrust change(Change apply) {
    CacheTrust before = now();
    CacheTrust after;
    do {
      after = before;
      apply(after);
    } while (!trust_->compare_exchange_weak(before, after));
    return before;
  }

  const Identity identity_;
  const Slot slot_;
  const SharedTrust trust_;
  std::atomic<Hidden> hidden_{Hidden()};
  std::atomic<bool> salted_{false};   // it was sent salted prompts
  std::atomic<bool> adapted_{false};  // and prompts for an adapter
  mutable locks::Mutex mutex_;
  std::string reason_ GUARDED_BY(mutex_);
  FeedAccuracy meter_ GUARDED_BY(mutex_);
  std::uint64_t predicted_tokens_ GUARDED_BY(mutex_) = 0;
  std::uint64_t reported_tokens_ GUARDED_BY(mutex_) = 0;
  struct Due {
    Clock::time_point sent;  // events that came later may be of it
    Clock::time_point since;
  };
  std::optional<Due> events_due_ GUARDED_BY(mutex_);
};

}  // namespace baton::kvcache
