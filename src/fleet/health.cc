// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/health.h"

#include <algorithm>

namespace baton::fleet {
namespace {

// However long a worker asks to be left alone.
constexpr std::chrono::milliseconds kLongestPause{30'000};
constexpr std::uint32_t kMostDoublings = 20;

}  // namespace

std::string_view to_string(Condition condition) {
  switch (condition) {
    case Condition::New:
      return "new";
    case Condition::Up:
      return "ready";
    case Condition::Unreachable:
      return "unreachable";
    case Condition::Ejected:
      return "ejected";
    case Condition::HalfOpen:
      return "half_open";
    case Condition::OnTrial:
      return "on_trial";
    case Condition::Misconfigured:
      break;
  }
  return "misconfigured";
}

std::string Health::why() const {
  const locks::Lock lock(mutex_);
  return why_;
}

Health::News Health::succeeded(Time now) {
  last_success_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  // The usual case takes no lock.
  has_answered_.store(true, std::memory_order_relaxed);
  if (condition() == Condition::Up) {
    if (failures_.load(std::memory_order_relaxed) != 0) failures_ = 0;
    if (ejections_.load(std::memory_order_relaxed) != 0) ejections_ = 0;
    return std::nullopt;
  }
  const locks::Lock lock(mutex_);
  // One successful request does not correct a probe's finding, and a request that began before the
  // ejection proves nothing.
  if (condition() == Condition::Misconfigured || condition() == Condition::Ejected)
    return std::nullopt;
  failures_ = 0;
  ejections_ = 0;
  return enter(Condition::Up, "");
}

Health::News Health::failed(Failure failure, std::string_view why, Time now) {
  const locks::Lock lock(mutex_);
  if (condition() == Condition::Misconfigured) return std::nullopt;
  if (failure != Failure::Broken) {
    if (failure == Failure::Refused && has_answered_) process_ended_ = true;
    return enter(Condition::Unreachable, why);
  }
  if (condition() == Condition::OnTrial) return enter_ejected(why, now);
  if (condition() != Condition::Up && condition() != Condition::New) return std::nullopt;
  if (++failures_ < options_.failures) return std::nullopt;
  return enter_ejected(why, now);
}

Health::News Health::progressed(Time now) {
  last_success_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  has_answered_.store(true, std::memory_order_relaxed);
  if (condition() == Condition::Up) return std::nullopt;
  const locks::Lock lock(mutex_);
  const bool proof = condition() == Condition::OnTrial || condition() == Condition::New ||
                     condition() == Condition::Unreachable;
  return proof ? enter(Condition::Up, "") : std::nullopt;
}

void Health::pushed_back(std::chrono::milliseconds pause, Time now) {
  const auto length = std::min(pause, kLongestPause);
  overloaded_until_.store((now + length).time_since_epoch().count(), std::memory_order_relaxed);
}

bool Health::begin_trial() {
  Condition expected = Condition::HalfOpen;
  return condition_.compare_exchange_strong(expected, Condition::OnTrial,
                                            std::memory_order_acq_rel);
}

void Health::abandon_trial() {
  Condition expected = Condition::OnTrial;
  condition_.compare_exchange_strong(expected, Condition::HalfOpen, std::memory_order_acq_rel);
}

Health::News Health::answered(Time now) {
  const locks::Lock lock(mutex_);
  has_answered_.store(true, std::memory_order_relaxed);
  switch (condition()) {
    case Condition::New:
    case Condition::Unreachable:
    case Condition::Misconfigured:
      failures_ = 0;
      // A worker that was ejected before must still show that it serves.
      return enter(ejections_ > 0 ? Condition::HalfOpen : Condition::Up, "");
    case Condition::Ejected:
      if (now < out_until_) return std::nullopt;
      return enter(Condition::HalfOpen, why_);
    case Condition::Up:
    case Condition::HalfOpen:
    case Condition::OnTrial:
      break;
  }
  return std::nullopt;
}

Health::News Health::unreachable(Failure how, std::string_view why) {
  const locks::Lock lock(mutex_);
  // A worker that has never answered cannot have ended.
  if (how == Failure::Refused && has_answered_) process_ended_ = true;
  return enter(Condition::Unreachable, why);
}

Health::News Health::eject(std::string_view why, Time now) {
  const locks::Lock lock(mutex_);
  if (condition() == Condition::Ejected || condition() == Condition::Misconfigured)
    return std::nullopt;
  return enter_ejected(why, now);
}

Health::News Health::misconfigured(std::string_view why) {
  const locks::Lock lock(mutex_);
  return enter(Condition::Misconfigured, why);
}

bool Health::may_return(Time now) const {
  const locks::Lock lock(mutex_);
  return condition() == Condition::Ejected && now >= out_until_;
}

Health::News Health::enter(Condition next, std::string_view why) {
  const std::string reason(why);  // may be why_ itself
  const Condition before = condition_.exchange(next, std::memory_order_acq_rel);
  why_ = reason;
  if (before == next) return std::nullopt;
  return Change{before, next, reason};
}

Health::News Health::enter_ejected(std::string_view why, Time now) {
  const auto doubled =
      options_.backoff * (std::int64_t{1} << std::min(ejections_.load(), kMostDoublings));
  out_until_ = now + std::min(doubled, options_.backoff_max);
  ++ejections_;
  failures_ = 0;
  return enter(Condition::Ejected, why);
}

}  // namespace baton::fleet
