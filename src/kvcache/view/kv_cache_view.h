// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/paged_pool.h"
#include "core/published.h"
#include "kvcache/index/decision_memory.h"
#include "kvcache/index/index.h"
#include "kvcache/view/cache.h"
#include "kvcache/view/cache_trust.h"
#include "kvcache/view/prompt_blocks.h"
#include "libs/locks/mutex.h"
#include "scheduling/policy/known_prompt.h"
#include "scheduling/policy/rank_load.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::kvcache {

struct HolderHash {
  std::size_t operator()(const Holder& holder) const {
    return scheduling::RankKeyHash()({holder.worker, holder.rank});
  }
};

// How much of a prompt a worker's rank holds.
struct Overlap {
  Holder holder;
  std::uint32_t block_size = 0;
  // Blocks from the beginning of the prompt that Baton believes to be in a tier or nearer ones.
  std::array<std::uint32_t, kTiers> blocks{};
  std::uint32_t told = 0;  // by its events alone, in any tier
  Trusted source = Trusted::Nothing;
};

// Role. The believed contents of the workers' KV caches: how much of a prompt each holds, by the
//   engines' events or by where prompts were sent, and whether that was right.
// Confinement. Any thread. Only the control thread, through Feeds, adds and removes caches.
// Lifetime. Outlives requests and feeds.
class KvCacheView {
 public:
  KvCacheView(const config::KvIndex& settings, telemetry::Registry& metrics,
              telemetry::Logger& log);

  const config::KvIndex& settings() const { return settings_; }
  // How to hash prompts of the model; without shapes if no hashes are needed.
  HashPlan plan(std::string_view model) const;
  // The caches that hold, or are believed to hold, the beginning of the prompt. Unordered.
  std::vector<Overlap> match(const PromptBlocks& prompt) const;
  // The same for the scheduler, and cheaper.
  std::vector<scheduling::KnownPrompt::Hit> hits(const PromptBlocks& prompt) const;
  // The prefix in one holder's cache, by its events.
  struct Told {
    std::uint32_t blocks = 0;  // that it has
    std::uint32_t of = 0;      // blocks of the prompt
    std::uint64_t tokens = 0;  // that it could take out of its cache
    std::uint64_t most = 0;    // tokens that it could if it had all blocks
    Trusted source = Trusted::Nothing;
  };
  Told told(const PromptBlocks& prompt, Holder holder) const;
  // The prompt is being sent there to be computed.
  void sent(Holder holder, const PromptBlocks& prompt);

  // A prompt was computed. In tokens: the hit by its cache's events before and after, and the hit
  // reported by the engine, if any.
  struct Computed {
    std::uint64_t told_before = 0;
    std::uint64_t told_after = 0;
    std::optional<std::uint64_t> reported = {};
    // For a second look, when the cache's later events have come.
    std::shared_ptr<const PromptBlocks> blocks = {};
    bool fills_blocks = false;  // it must have left new ones
    Clock::time_point sent = {};
  };
  void computed(Holder holder, const Computed& what);
  // Makes deferred comparisons, and forgets finished ones. To be called now and then.
  void settle(Clock::time_point now);
  // Holders whose events have become due, or cannot be used any more, since the last call.
  std::vector<Holder> take_expecting();

  Index& index() { return index_; }
  const Index& index() const { return index_; }
  std::vector<std::shared_ptr<Cache>> all() const;
  std::shared_ptr<Cache> find(Holder holder) const;

  // For Feeds, on the control thread.
  std::shared_ptr<Cache> make(Cache::Identity identity, Slot slot, BlockShape shape) {
    return std::make_shared<Cache>(std::move(identity), slot, shape, trusts_.make());
  }
  struct Table {
    std::map<Holder, std::shared_ptr<Cache>> caches;
    std::map<std::string, HashPlan, std::less<>> plans;  // by model
  };
  void publish(Table table);
  // Its decisions go; its events are the feed's business.
  void forget(Holder holder);

 private:
  // A table of holders by number: thousands are looked up for each prompt, mostly in order.
  struct Known {
    struct Entry {
      Holder holder;
      std::shared_ptr<Cache> cache;
      const std::atomic<CacheTrust>* trust;  // the cache's
    };
    std::vector<Entry> caches;  // by number
    boost::unordered_flat_map<Holder, std::uint32_t, HolderHash> numbers;
    std::map<std::string, HashPlan, std::less<>> plans;  // by model

    // Null: there is none. `guess`: the number to try first.
    const Entry* find(Holder holder, std::size_t guess) const {
      if (guess < caches.size() && caches[guess].holder == holder) return &caches[guess];
      return look_up(holder);
    }
    const Entry* look_up(Holder holder) const;
  };
  struct Deferred {
    Holder holder;
    Computed what;
    Clock::time_point since;
  };
  template <class Row>
  std::vector<Row> collect(const PromptBlocks& prompt) const;
  void compare(Cache& cache, const FeedAccuracy::Sample& sample);
  void add_metrics(telemetry::Registry& metrics);

  const config::KvIndex settings_;
  telemetry::Logger& log_;
  Index index_;
  mutable DecisionMemory decisions_;    // for caches without events
  mutable DecisionMemory predictions_;  // of those with: what is about to be stored
  PagedPool<std::atomic<CacheTrust>> trusts_;
  Published<Known> known_;
  locks::Mutex mutex_;
  std::deque<Deferred> deferred_ GUARDED_BY(mutex_);  // oldest first
  // Holders to be checked: their events are due, or they have become mixed.
  std::vector<Holder> expecting_ GUARDED_BY(mutex_);  // each once, unless events came between
};

}  // namespace baton::kvcache
