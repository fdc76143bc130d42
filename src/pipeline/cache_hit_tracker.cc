// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/cache_hit_tracker.h"

#include <utility>

namespace baton::pipeline {
namespace {

std::optional<std::uint64_t> cached(const std::optional<engine::Usage>& usage) {
  if (!usage || !usage->cached_tokens || *usage->cached_tokens < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*usage->cached_tokens);
}

// TensorRT-LLM's server chooses among its ranks itself, and does not say which.
bool rank_is_known(const fleet::Worker& worker) {
  return worker.ranks() == 1 || worker.spec().engine != model::Engine::Trtllm;
}

}  // namespace

std::shared_ptr<const scheduling::KnownPrompt> CacheHitTracker::known() const {
  if (!blocks_) return nullptr;
  auto known = std::make_shared<scheduling::KnownPrompt>();
  known->tokens = blocks_->tokens;
  for (const kvcache::PromptBlocks::Hashes& hashes : blocks_->by_shape) {
    // The chain is the prompt's own: a booking keeps the prompt's hashes.
    known->shapes.push_back({hashes.shape.size, {blocks_, &hashes.sequence}});
  }
  known->hits = cache_view_.hits(*blocks_);
  return known;
}

void CacheHitTracker::computing(const fleet::Booking& booking) {
  holder_.reset();
  by_prefill_ = false;
  if (!blocks_ || answered_) return;  // it went on elsewhere after its first token
  holder_ = {booking.worker().id(), booking.rank().value_or(0)};
  const kvcache::KvCacheView::Told told = cache_view_.told(*blocks_, *holder_);
  by_events_ = told.source == kvcache::Trusted::Events;
  seen_ = {.told_before = told.tokens,
           .told_after = told.tokens,
           .reported = {},
           .blocks = {},
           .fills_blocks = told.of > told.blocks,
           .sent = kvcache::Clock::now()};
  most_ = told.most;
  const bool known = rank_is_known(booking.worker());
  if (known) cache_view_.sent(*holder_, *blocks_);
  // Engines' treatment of a key is not known well enough to judge the events by it.
  if (!known || blocks_->keyed) holder_.reset();
}

void CacheHitTracker::computed(const std::optional<engine::Usage>& usage) {
  if (!holder_ || !blocks_ || answered_) return;
  seen_.reported = cached(usage);
  seen_.told_after = cache_view_.told(*blocks_, *holder_).tokens;
  by_prefill_ = true;
}

void CacheHitTracker::answered() {
  if (std::exchange(answered_, true)) return;
  if (holder_ && blocks_ && !by_prefill_)
    seen_.told_after = cache_view_.told(*blocks_, *holder_).tokens;
  if (!holder_ || seen_.told_after >= most_) blocks_.reset();
}

void CacheHitTracker::finish(const std::optional<engine::Usage>& usage) {
  answered();
  if (!holder_) return;
  if (!by_prefill_) seen_.reported = cached(usage);
  // The engine may have had blocks without events, and then reports no new ones.
  if (seen_.reported && *seen_.reported >= most_) seen_.fills_blocks = false;
  seen_.blocks = std::move(blocks_);
  cache_view_.computed(*holder_, seen_);
}

std::optional<std::int64_t> CacheHitTracker::predicted() const {
  if (!holder_ || !by_events_) return std::nullopt;
  return static_cast<std::int64_t>(seen_.told_before);
}

}  // namespace baton::pipeline
