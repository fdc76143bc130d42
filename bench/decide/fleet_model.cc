// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "decide/fleet_model.h"

#include "kvcache/index/block_hash.h"
#include "scheduling/policy/cost.h"
#include "unit/scheduling/book_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace baton::bench {
namespace {

constexpr kvcache::BlockShape kShape{.size = kBlockSize};

void append_tokens(std::vector<TokenId>& out, std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<TokenId>(random() % 128'000));
}

const kvcache::HashPlan kPlan{.shapes = {kShape}, .lora = {}};

Hashes hashes_of(const std::vector<TokenId>& tokens) {
  return std::make_shared<const kvcache::PromptBlocks>(
      kvcache::hash_prompt(kPlan, tokens, kvcache::PromptScope()));
}

const std::vector<SequenceHash>& sequence(const Hashes& hashes) {
  return hashes->by_shape.front().sequence;
}

// What an engine would call the blocks: Baton's own names serve as well.
std::vector<kvcache::NewBlock> blocks_of(const std::vector<TokenId>& tokens, std::size_t count) {
  const std::vector<SequenceHash> names = sequence(hashes_of(tokens));
  std::vector<kvcache::NewBlock> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    const auto content = std::span(tokens).subspan(i * kBlockSize, kBlockSize);
    blocks.push_back(
        {.engine = names[i], .block = kvcache::hash_block(content, kvcache::seed_of({}))});
  }
  return blocks;
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

BatonDecider::BatonDecider(const Traffic& traffic, model::Policy policy)
    : caches_(config::KvIndex(), metrics_, log_), set_(model::Role::Prefill, policy) {
  kvcache::KvCacheView::Table table;
  std::vector<kvcache::Slot> slots;
  const fleet::Worker::Siblings siblings{
      .pace = std::make_shared<scheduling::SiblingPace>(),
      .transfers = std::make_shared<scheduling::TransferPace>(),
      .loads = std::make_shared<PagedPool<scheduling::RankLoad>>()};
  for (std::size_t i = 0; i < traffic.workers; ++i) {
    model::WorkerSpec spec;
    spec.endpoint = {fmt::format("10.0.{}.{}", i / 250, i % 250 + 1), 8000};
    spec.role = model::Role::Prefill;
    auto worker =
        std::make_shared<fleet::Worker>(model::WorkerId{i + 1}, spec, config::Health{}, siblings);
    worker->answered();
    const kvcache::Holder holder{.worker = worker->id(), .rank = 0};
    slots.push_back(caches_.index().join(holder));
    auto cache =
        caches_.make({holder, worker->name(), worker->authority(), "m"}, slots.back(), kShape);
    cache->set_health(kvcache::FeedHealth::Live);
    table.caches.emplace(holder, std::move(cache));
    set_.add(std::move(worker));
  }
  table.plans["m"] = kPlan;
  caches_.publish(std::move(table));
  traffic.caches([&](std::size_t worker, const std::vector<kvcache::NewBlock>& blocks) {
    caches_.index().store(slots[worker], {}, blocks, kvcache::Tier::Device);
  });
}

BatonDecider::Booked BatonDecider::preload(const std::vector<TokenId>& prompt) {
  look_up(hash(prompt));
  return book(prompt.size());
}

Hashes BatonDecider::hash(const std::vector<TokenId>& prompt) const { return hashes_of(prompt); }

void BatonDecider::look_up(const Hashes& hashes) {
  watch_.emplace(caches_, hashes);
  known_ = watch_->known();
}

BatonDecider::Booked BatonDecider::book(std::size_t /*tokens*/) {
  scheduling::WorkerRequirements requirements;
  requirements.part = scheduling::Part::Prefill;
  requirements.prompt = known_;
  scheduling::Choice why;  // as `decisions` keeps it, which it does unless it is switched off
  auto booking = test::book_worker(set_, requirements, [this] { return random_(); }, &why);
  if (!booking) throw std::runtime_error(booking.error().message());
  return std::move(*booking);
}

void BatonDecider::remember(const Booked& booked) { watch_->computing(booked); }

NaiveDecider::NaiveDecider(const Traffic& traffic) : workers_(traffic.workers) {
  traffic.caches([&](std::size_t worker, const std::vector<kvcache::NewBlock>& blocks) {
    for (const kvcache::NewBlock& block : blocks) workers_[worker].blocks.insert(block.engine);
  });
}

NaiveDecider::Booked NaiveDecider::preload(const std::vector<TokenId>& prompt) {
  asked_ = hash(prompt);
  return book_on(random_() % workers_.size(), prompt.size());
}

Hashes NaiveDecider::hash(const std::vector<TokenId>& prompt) const { return hashes_of(prompt); }

void NaiveDecider::look_up(const Hashes& hashes) {
  const std::lock_guard hold(mutex_);
  asked_ = hashes;
  for (Worker& worker : workers_) {
    worker.overlap = worker.shared = 0;
    for (const SequenceHash hash : sequence(asked_)) {
      if (!worker.blocks.contains(hash)) break;
      ++worker.overlap;
    }
    for (const SequenceHash hash : sequence(asked_)) {
      if (!worker.active.contains(hash)) break;
      ++worker.shared;
    }
  }
}

NaiveDecider::Booked NaiveDecider::book(std::size_t tokens) {
  const std::lock_guard hold(mutex_);
  double least = std::numeric_limits<double>::infinity();
  for (const Worker& worker : workers_) {
    least = std::min(least, static_cast<double>(worker.prefill_tokens));
  }
  std::size_t best = 0;
  double cheapest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    const std::size_t own = sequence(asked_).size() - worker.shared;
    const double cost =
        scheduling::cost_of(options_, {.tokens = tokens, .block_size = kBlockSize},
                            {.prefill_tokens = static_cast<double>(worker.prefill_tokens),
                             .device = static_cast<double>(worker.overlap),
                             .decode_blocks = static_cast<double>(worker.active.size() + own)},
                            least)
            .total;
    if (cost >= cheapest) continue;
    cheapest = cost;
    best = i;
  }
  return book_on(best, tokens);
}

NaiveDecider::Booked NaiveDecider::book_on(std::size_t worker, std::size_t tokens) {
  Worker& chosen = workers_[worker];
  const std::size_t cached = std::size_t{chosen.overlap} * kBlockSize;
  const std::size_t fresh = tokens - std::min(tokens, cached);
  chosen.prefill_tokens += fresh;
  for (const SequenceHash hash : sequence(asked_)) ++chosen.active[hash];
  return {*this, worker, fresh, asked_};
}

void NaiveDecider::end(std::size_t worker, std::size_t tokens, const Hashes& hashes) {
  const std::lock_guard hold(mutex_);
  Worker& chosen = workers_[worker];
  chosen.prefill_tokens -= tokens;
  for (const SequenceHash hash : sequence(hashes)) {
    const auto found = chosen.active.find(hash);
    if (--found->second == 0) chosen.active.erase(found);
  }
}

}  // namespace baton::bench
