// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker_set.h"
#include "kvcache/index/index.h"
#include "kvcache/view/kv_cache_view.h"
#include "pipeline/cache_hit_tracker.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::bench {

using kvcache::SequenceHash;
using kvcache::TokenId;

inline constexpr std::uint32_t kBlockSize = 16;
inline constexpr std::size_t kPromptTokens = 16'000;
inline constexpr std::size_t kSystemTokens = 1'024;
inline constexpr std::size_t kSystems = 16;
inline constexpr std::size_t kConversationTokens = 12'000;
inline constexpr std::size_t kConversationsPerWorker = 1;
inline constexpr std::size_t kHoldersOfConversation = 2;
inline constexpr std::size_t kActivePerWorker = 4;

using Hashes = std::shared_ptr<const kvcache::PromptBlocks>;

// Prompts of 16,000 tokens: a system prompt that every worker has, a conversation that two have, each
// up to somewhere, and something new.
struct Traffic {
  explicit Traffic(std::size_t workers) : workers(workers) {}

  std::vector<TokenId> prompt(std::size_t number) const;
  // Calls store(worker, hashes) for everything that workers hold.
  template <class Store>
  void caches(Store store) const;

  std::size_t workers;

 private:
  std::vector<TokenId> conversation(std::size_t number) const;
};

// As Baton does it: what workers hold by their events, and a policy that weighs prompts.
class BatonDecider {
 public:
  using Booked = fleet::Booking;

  BatonDecider(const Traffic& traffic, model::Policy policy);
  Booked preload(const std::vector<TokenId>& prompt);

  Hashes hash(const std::vector<TokenId>& prompt) const;
  void look_up(const Hashes& hashes);
  Booked book(std::size_t tokens);
  // What was sent where will be there: part of sending, not of the choice.
  void remember(const Booked& booked);

 private:
  telemetry::Registry metrics_;
  telemetry::Logger log_{telemetry::Format::Json, telemetry::Level::Error};
  kvcache::KvCacheView caches_;
  fleet::WorkerSet set_;
  std::mt19937_64 random_{7};
  std::optional<pipeline::CacheHitTracker> watch_;  // of the prompt at hand
  std::shared_ptr<const scheduling::KnownPrompt> known_;
};

// What one would write first: each worker has a set of the blocks it holds and a table of those in
// use; the prompt is walked through both, worker for worker.
class NaiveDecider {
 public:
  class Booked {
   public:
    Booked(NaiveDecider& decider, std::size_t worker, std::size_t tokens, Hashes hashes)
        : decider_(&decider), worker_(worker), tokens_(tokens), hashes_(std::move(hashes)) {}
    Booked(Booked&& other) noexcept
        : decider_(std::exchange(other.decider_, nullptr)),
          worker_(other.worker_),
          tokens_(other.tokens_),
          hashes_(std::move(other.hashes_)) {}
    Booked& operator=(Booked&&) = delete;
    ~Booked() {
      if (decider_ != nullptr) decider_->end(worker_, tokens_, hashes_);
    }

   private:
    NaiveDecider* decider_;
    std::size_t worker_;
    std::size_t tokens_;
    Hashes hashes_;
  };

  explicit NaiveDecider(const Traffic& traffic);
  Booked preload(const std::vector<TokenId>& prompt);

  Hashes hash(const std::vector<TokenId>& prompt) const;
  void look_up(const Hashes& hashes);
  Booked book(std::size_t tokens);
  void remember(const Booked& /*booked*/) {}

 private:
  struct Worker {
    std::unordered_set<SequenceHash> blocks;
    std::unordered_map<SequenceHash, std::uint32_t> active;
    std::uint64_t prefill_tokens = 0;
    std::uint32_t overlap = 0;  // of the prompt at hand
    std::uint32_t shared = 0;
  };

  Booked book_on(std::size_t worker, std::size_t tokens);
  void end(std::size_t worker, std::size_t tokens, const Hashes& hashes);

  std::mutex mutex_;
  std::vector<Worker> workers_;
  Hashes asked_;  // the prompt at hand
  config::Cost options_;
  std::mt19937_64 random_{7};
};

}  // namespace baton::bench
