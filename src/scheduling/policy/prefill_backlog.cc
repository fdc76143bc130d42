// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/prefill_backlog.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace baton::scheduling {
void PrefillBacklog::add(Prompt& prompt, Time now) {
  const locks::Lock lock(mutex_);
  const std::int64_t moment = at(now);
  // However late the oldest is, a new prompt has not begun.
  current_.oldest_since = std::max(current_.oldest_since, moment - current_.duration);
  prompt.previous_ = newest_;
  prompt.next_ = nullptr;
  (newest_ != nullptr ? newest_->next_ : oldest_) = &prompt;
  newest_ = &prompt;
  current_.tokens += prompt.tokens;
  const bool first_of_step = !std::exchange(current_.open, oldest_ != &prompt);
  if (prompt.duration && first_of_step) *prompt.duration += prompt.step;
  if (prompt.duration) {
    current_.duration += prompt.duration->count();
  } else {
    ++current_.unmodelled;
  }
  if (oldest_ == &prompt) start_oldest();
  publish();
}

void PrefillBacklog::remove(Prompt& prompt, Time now) {
  const locks::Lock lock(mutex_);
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
    // Its part of the time is no progress of the remaining prompts.
    current_.oldest_since = std::min(moment, current_.oldest_since + prompt.duration->count());
  }
  publish();
}

// The writer may wait for this core.
void PrefillBacklog::wait_for_writer() { std::this_thread::yield(); }

void PrefillBacklog::publish() {
  const std::uint32_t version = words_.version.load(std::memory_order_relaxed);
  words_.version.store(version + 1, std::memory_order_relaxed);
  words_.tokens.store(current_.tokens, std::memory_order_release);
  words_.duration.store(current_.duration, std::memory_order_release);
  words_.unmodelled.store(current_.unmodelled | (current_.open ? kOpen : 0),
                          std::memory_order_release);
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
  current_.open = false;
}

std::int64_t PrefillBacklog::at(Time now) {
  latest_ = std::max(latest_, nanoseconds_of(now));
  return latest_;
}

}  // namespace baton::scheduling
