// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "routing/prefill_backlog.h"

#include <algorithm>
#include <thread>

namespace baton::routing {
namespace {

std::int64_t nanoseconds_of(Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

void PrefillBacklog::add(Prompt& prompt, Time now) {
  const std::lock_guard lock(mutex_);
  const std::int64_t moment = at(now);
  // However late the oldest is: what comes now has not begun.
  current_.oldest_since = std::max(current_.oldest_since, moment - current_.duration);
  prompt.previous_ = newest_;
  prompt.next_ = nullptr;
  (newest_ != nullptr ? newest_->next_ : oldest_) = &prompt;
  newest_ = &prompt;
  current_.tokens += prompt.tokens;
  if (prompt.duration) {
    current_.duration += prompt.duration->count();
  } else {
    ++current_.unmodelled;
  }
  if (oldest_ == &prompt) start_oldest();
  publish();
}

void PrefillBacklog::remove(Prompt& prompt, Time now) {
  const std::lock_guard lock(mutex_);
  const std::int64_t moment = at(now);
  const bool was_oldest = oldest_ == &prompt;
  (prompt.previous_ != nullptr ? prompt.previous_->next_ : oldest_) = prompt.next_;
  (prompt.next_ != nullptr ? prompt.next_->previous_ : newest_) = prompt.previous_;
  current_.tokens -= prompt.tokens;
  if (prompt.duration) {
    current_.duration -= prompt.duration->count();
  } else {
    --current_.unmodelled;
  }
  if (was_oldest) {
    start_oldest();
  } else if (prompt.duration) {
    // Part of the time went into this one and is no progress of those that stay.
    current_.oldest_since = std::min(moment, current_.oldest_since + prompt.duration->count());
  }
  publish();
}

double PrefillBacklog::tokens(Time now) const {
  const Summary seen = read();
  const auto all = static_cast<double>(seen.tokens);
  if (seen.oldest_duration == kUnmodelled) return all;
  const auto oldest = static_cast<double>(seen.oldest_tokens);
  if (seen.oldest_duration == 0) return all - oldest;
  const auto elapsed = std::max<std::int64_t>(0, nanoseconds_of(now) - seen.oldest_since);
  const double done =
      oldest * (static_cast<double>(elapsed) / static_cast<double>(seen.oldest_duration));
  return all - std::min(done, seen.unmodelled == 0 ? all : oldest);
}

double PrefillBacklog::seconds(Time now) const {
  const Summary seen = read();
  std::int64_t done = 0;
  if (seen.oldest_duration != kUnmodelled) {
    const auto elapsed = std::max<std::int64_t>(0, nanoseconds_of(now) - seen.oldest_since);
    const std::int64_t most = seen.unmodelled == 0 ? seen.duration : seen.oldest_duration;
    // Where all should be done and nothing is, it will be as late again: a rank that stands still
    // must not look idle.
    done = elapsed <= most ? elapsed : 2 * most - elapsed;
  }
  return std::chrono::duration<double>(std::chrono::nanoseconds(seen.duration - done)).count();
}

PrefillBacklog::Summary PrefillBacklog::read() const {
  // Each word is read with acquire and written with release: who sees a new one also sees that the
  // counter has moved.
  constexpr int kSpins = 100;
  for (int spins = 0;; ++spins) {
    if (spins >= kSpins) std::this_thread::yield();  // the writer may wait for this core
    const std::uint32_t version = words_.version.load(std::memory_order_acquire);
    if (version % 2 != 0) continue;
    const Summary seen{.tokens = words_.tokens.load(std::memory_order_acquire),
                       .duration = words_.duration.load(std::memory_order_acquire),
                       .unmodelled = words_.unmodelled.load(std::memory_order_acquire),
                       .oldest_tokens = words_.oldest_tokens.load(std::memory_order_acquire),
                       .oldest_duration = words_.oldest_duration.load(std::memory_order_acquire),
                       .oldest_since = words_.oldest_since.load(std::memory_order_acquire)};
    if (words_.version.load(std::memory_order_relaxed) == version) return seen;
  }
}

void PrefillBacklog::publish() {
  const std::uint32_t version = words_.version.load(std::memory_order_relaxed);
  words_.version.store(version + 1, std::memory_order_relaxed);
  words_.tokens.store(current_.tokens, std::memory_order_release);
  words_.duration.store(current_.duration, std::memory_order_release);
  words_.unmodelled.store(current_.unmodelled, std::memory_order_release);
  words_.oldest_tokens.store(current_.oldest_tokens, std::memory_order_release);
  words_.oldest_duration.store(current_.oldest_duration, std::memory_order_release);
  words_.oldest_since.store(current_.oldest_since, std::memory_order_release);
  words_.version.store(version + 2, std::memory_order_release);
}

void PrefillBacklog::start_oldest() {
  const bool modelled = oldest_ != nullptr && oldest_->duration;
  current_.oldest_tokens = oldest_ != nullptr ? oldest_->tokens : 0;
  current_.oldest_duration = modelled ? oldest_->duration->count() : kUnmodelled;
  current_.oldest_since = latest_;
}

std::int64_t PrefillBacklog::at(Time now) {
  latest_ = std::max(latest_, nanoseconds_of(now));
  return latest_;
}

}  // namespace baton::routing
