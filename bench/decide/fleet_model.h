// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/index.h"
#include "routing/cost.h"
#include "routing/load_ledger.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::bench {

using kvindex::SequenceHash;
using kvindex::TokenId;

inline constexpr std::uint32_t kBlockSize = 16;
inline constexpr std::size_t kPromptTokens = 16'000;
inline constexpr std::size_t kSystemTokens = 1'024;
inline constexpr std::size_t kSystems = 16;
inline constexpr std::size_t kConversationTokens = 12'000;
inline constexpr std::size_t kConversationsPerWorker = 4;
inline constexpr std::size_t kHoldersOfConversation = 2;
inline constexpr std::size_t kActivePerWorker = 4;

using Hashes = std::shared_ptr<const std::vector<SequenceHash>>;

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

// As Baton decides: the index, the ledger, the cost of each worker, one booking.
class BatonDecider {
 public:
  using Booked = routing::LoadLedger::Entry;

  explicit BatonDecider(const Traffic& traffic);
  Booked preload(const std::vector<TokenId>& prompt);

  Hashes hash(const std::vector<TokenId>& prompt) const;
  void look_up(const Hashes& hashes);
  std::size_t choose(std::size_t tokens, const Hashes& hashes);
  Booked book(std::size_t worker, std::size_t tokens, const Hashes& hashes);

 private:
  kvindex::Index index_{kvindex::Index::Limits()};
  std::shared_ptr<routing::LoadLedger> ledger_ = std::make_shared<routing::LoadLedger>();
  std::vector<std::shared_ptr<routing::SeatLoad>> loads_;
  config::Cost options_;
  std::mt19937_64 random_{7};
  std::vector<kvindex::Match> matches_;
  std::vector<std::pair<routing::SeatKey, std::uint32_t>> shared_;
  std::vector<std::uint32_t> overlap_;  // by worker, of the prompt at hand
  std::vector<std::uint32_t> active_;
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
  std::size_t choose(std::size_t tokens, const Hashes& hashes);
  Booked book(std::size_t worker, std::size_t tokens, Hashes hashes);

 private:
  struct Worker {
    std::unordered_set<SequenceHash> blocks;
    std::unordered_map<SequenceHash, std::uint32_t> active;
    std::uint64_t prefill_tokens = 0;
    std::uint32_t overlap = 0;  // of the prompt at hand
    std::uint32_t shared = 0;
  };

  void end(std::size_t worker, std::size_t tokens, const Hashes& hashes);

  std::mutex mutex_;
  std::vector<Worker> workers_;
  config::Cost options_;
  std::mt19937_64 random_{7};
};

}  // namespace baton::bench
