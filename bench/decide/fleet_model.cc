// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "decide/fleet_model.h"

#include "kvindex/block_hash.h"
#include "routing/pick.h"

#include <algorithm>
#include <chrono>

namespace baton::bench {
namespace {

constexpr kvindex::BlockShape kShape{.size = kBlockSize};

void append_tokens(std::vector<TokenId>& out, std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<TokenId>(random() % 128'000));
}

std::vector<SequenceHash> hashes_of(const std::vector<TokenId>& tokens) {
  return kvindex::sequence_hashes(tokens, kShape, kvindex::seed_of({}));
}

// What an engine would call the blocks: Baton's own names serve as well.
std::vector<kvindex::NewBlock> blocks_of(const std::vector<TokenId>& tokens, std::size_t count) {
  const std::vector<SequenceHash> names = hashes_of(tokens);
  std::vector<kvindex::NewBlock> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    const auto content = std::span(tokens).subspan(i * kBlockSize, kBlockSize);
    blocks.push_back(
        {.engine = names[i], .block = kvindex::hash_block(content, kvindex::seed_of({}))});
  }
  return blocks;
}

routing::LegSize leg_of(std::size_t tokens) {
  return {.tokens = tokens, .block_size = kBlockSize, .track_prefill = true};
}

routing::SeatFacts facts_of(double prefill_tokens, std::uint32_t overlap, std::size_t blocks,
                            std::uint32_t shared, double active) {
  return {.prefill_tokens = prefill_tokens,
          .device = static_cast<double>(overlap),
          .decode_blocks = active + static_cast<double>(blocks - shared)};
}

}  // namespace

std::vector<TokenId> Traffic::conversation(std::size_t number) const {
  std::vector<TokenId> tokens;
  append_tokens(tokens, 1 + number % kSystems, kSystemTokens);
  append_tokens(tokens, 1'000 + number, kConversationTokens);
  return tokens;
}

std::vector<TokenId> Traffic::prompt(std::size_t number) const {
  std::mt19937_64 random(number);
  std::vector<TokenId> tokens = conversation(random() % (workers * kConversationsPerWorker));
  append_tokens(tokens, 1'000'000'000 + number, kPromptTokens - tokens.size());
  return tokens;
}

template <class Store>
void Traffic::caches(Store store) const {
  std::mt19937_64 random(3);
  for (std::size_t system = 0; system < kSystems; ++system) {
    std::vector<TokenId> tokens;
    append_tokens(tokens, 1 + system, kSystemTokens);
    const auto blocks = blocks_of(tokens, kSystemTokens / kBlockSize);
    for (std::size_t worker = 0; worker < workers; ++worker) store(worker, blocks);
  }
  for (std::size_t i = 0; i < workers * kConversationsPerWorker; ++i) {
    const std::vector<TokenId> tokens = conversation(i);
    const std::size_t all = tokens.size() / kBlockSize;
    for (std::size_t k = 0; k < kHoldersOfConversation; ++k) {
      store(random() % workers, blocks_of(tokens, all / 2 + random() % (all / 2)));
    }
  }
}

BatonDecider::BatonDecider(const Traffic& traffic)
    : overlap_(traffic.workers), active_(traffic.workers) {
  std::vector<kvindex::Slot> slots;
  for (std::size_t i = 0; i < traffic.workers; ++i) {
    loads_.push_back(std::make_shared<routing::SeatLoad>());
    slots.push_back(index_.join({.worker = {i}, .rank = 0}));
  }
  traffic.caches([&](std::size_t worker, const std::vector<kvindex::NewBlock>& blocks) {
    index_.store(slots[worker], {}, blocks, kvindex::Tier::Device);
  });
}

BatonDecider::Booked BatonDecider::preload(const std::vector<TokenId>& prompt) {
  return book(random_() % loads_.size(), prompt.size(), hash(prompt));
}

Hashes BatonDecider::hash(const std::vector<TokenId>& prompt) const {
  return std::make_shared<const std::vector<SequenceHash>>(hashes_of(prompt));
}

void BatonDecider::look_up(const Hashes& hashes) {
  index_.match(*hashes, matches_);
  ledger_->shared(*hashes, shared_);
  std::ranges::fill(overlap_, 0);
  std::ranges::fill(active_, 0);
  for (const kvindex::Match& match : matches_) {
    overlap_[match.holder.worker.value] = match.blocks[0];
  }
  for (const auto& [seat, blocks] : shared_) active_[seat.worker.value] = blocks;
}

std::size_t BatonDecider::choose(std::size_t tokens, const Hashes& hashes) {
  double least = static_cast<double>(loads_[0]->prefill_tokens());
  for (const auto& load : loads_) {
    least = std::min(least, static_cast<double>(load->prefill_tokens()));
  }
  const auto chosen = routing::pick_cheapest(
      loads_.size(),
      [&](std::size_t i) {
        const routing::SeatLoad& load = *loads_[i];
        const routing::SeatFacts facts =
            facts_of(static_cast<double>(load.prefill_tokens()), overlap_[i], hashes->size(),
                     active_[i], load.decode_blocks());
        return routing::cost_of(options_, leg_of(tokens), facts, least).total;
      },
      [](std::size_t) { return true; }, [this] { return random_(); }, options_.temperature);
  return *chosen;
}

BatonDecider::Booked BatonDecider::book(std::size_t worker, std::size_t tokens,
                                        const Hashes& hashes) {
  const std::size_t cached = std::size_t{overlap_[worker]} * kBlockSize;
  routing::LegLoad load;
  load.prefill_tokens = tokens - std::min(tokens, cached);
  load.chain = hashes;
  load.blocks = hashes->size();
  load.block_size = kBlockSize;
  return ledger_->book({.worker = {worker}, .rank = 0}, loads_[worker], std::move(load),
                       std::chrono::steady_clock::now());
}

NaiveDecider::NaiveDecider(const Traffic& traffic) : workers_(traffic.workers) {
  traffic.caches([&](std::size_t worker, const std::vector<kvindex::NewBlock>& blocks) {
    for (const kvindex::NewBlock& block : blocks) workers_[worker].blocks.insert(block.engine);
  });
}

NaiveDecider::Booked NaiveDecider::preload(const std::vector<TokenId>& prompt) {
  return book(random_() % workers_.size(), prompt.size(), hash(prompt));
}

Hashes NaiveDecider::hash(const std::vector<TokenId>& prompt) const {
  return std::make_shared<const std::vector<SequenceHash>>(hashes_of(prompt));
}

void NaiveDecider::look_up(const Hashes& hashes) {
  const std::lock_guard hold(mutex_);
  for (Worker& worker : workers_) {
    worker.overlap = worker.shared = 0;
    for (const SequenceHash hash : *hashes) {
      if (!worker.blocks.contains(hash)) break;
      ++worker.overlap;
    }
    for (const SequenceHash hash : *hashes) {
      if (!worker.active.contains(hash)) break;
      ++worker.shared;
    }
  }
}

std::size_t NaiveDecider::choose(std::size_t tokens, const Hashes& hashes) {
  const std::lock_guard hold(mutex_);
  const auto prefill = [](const Worker& worker) { return worker.prefill_tokens; };
  const auto least =
      static_cast<double>(std::ranges::min_element(workers_, {}, prefill)->prefill_tokens);
  std::vector<double> costs;
  for (const Worker& worker : workers_) {
    const routing::SeatFacts facts =
        facts_of(static_cast<double>(worker.prefill_tokens), worker.overlap, hashes->size(),
                 worker.shared, static_cast<double>(worker.active.size()));
    costs.push_back(routing::cost_of(options_, leg_of(tokens), facts, least).total);
  }
  return static_cast<std::size_t>(std::ranges::min_element(costs) - costs.begin());
}

NaiveDecider::Booked NaiveDecider::book(std::size_t worker, std::size_t tokens, Hashes hashes) {
  const std::lock_guard hold(mutex_);
  Worker& chosen = workers_[worker];
  const std::size_t cached = std::size_t{chosen.overlap} * kBlockSize;
  const std::size_t fresh = tokens - std::min(tokens, cached);
  chosen.prefill_tokens += fresh;
  for (const SequenceHash hash : *hashes) ++chosen.active[hash];
  return {*this, worker, fresh, std::move(hashes)};
}

void NaiveDecider::end(std::size_t worker, std::size_t tokens, const Hashes& hashes) {
  const std::lock_guard hold(mutex_);
  Worker& chosen = workers_[worker];
  chosen.prefill_tokens -= tokens;
  for (const SequenceHash hash : *hashes) {
    const auto found = chosen.active.find(hash);
    if (--found->second == 0) chosen.active.erase(found);
  }
}

}  // namespace baton::bench
