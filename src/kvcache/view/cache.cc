// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/cache.h"

namespace baton::kvcache {

// Both write before they read the other's value, so that one of them sees both.
bool Cache::set_hidden(Hidden hidden) {
  hidden_.store(hidden);
  const bool met = (hidden.salts && salted_.load()) || (hidden.adapters && adapted_.load());
  return met && mix();
}

bool Cache::sent(Hidden apart) {
  // Whether a release leaves out salts and adapters may be known only later; that an engine leaves
  // out keys is known.
  if (apart.salts && !salted_.load(std::memory_order_relaxed)) salted_.store(true);
  if (apart.adapters && !adapted_.load(std::memory_order_relaxed)) adapted_.store(true);
  const Hidden hidden = hidden_.load();
  const bool untold = (apart.salts && hidden.salts) || (apart.adapters && hidden.adapters) ||
                      (apart.keys && hidden.keys);
  return untold && mix();
}

bool Cache::compare(const FeedAccuracy::Sample& sample) {
  const locks::Lock lock(mutex_);
  predicted_tokens_ += sample.least;
  reported_tokens_ += sample.reported;
  meter_.add(sample);
  const bool believed = meter_.believed();
  return change([believed](CacheTrust& trust) { trust.believed = believed; }).believed != believed;
}

bool Cache::expect_events(Clock::time_point sent, Clock::time_point now) {
  const locks::Lock lock(mutex_);
  if (events_due_) return false;
  events_due_ = Due{.sent = sent, .since = now};
  return true;
}

std::optional<Clock::time_point> Cache::overdue_since(std::optional<Clock::time_point> last) {
  const locks::Lock lock(mutex_);
  if (events_due_ && last && *last >= events_due_->sent) events_due_.reset();
  if (!events_due_) return std::nullopt;
  return events_due_->since;
}

Cache::Truth Cache::truth() const {
  const locks::Lock lock(mutex_);
  return {.samples = meter_.samples(),
          .error = meter_.error(),
          .predicted_tokens = predicted_tokens_,
          .reported_tokens = reported_tokens_};
}

}  // namespace baton::kvcache
