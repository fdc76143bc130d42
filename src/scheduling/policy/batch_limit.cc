// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/batch_limit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

namespace baton::scheduling {
namespace {

// A window has so many samples, or a few if it has lasted long. It lasts as long as a stream needs
// for one sample and a half if the objective is just kept, so that most streams are in it.
constexpr std::size_t kEnoughSamples = 8;
constexpr std::size_t kFew = 3;
constexpr std::chrono::seconds kLong{1};
constexpr double kWindowTokens = 1.5 * static_cast<double>(BatchLimit::kTokens);
// Longer gaps are no engine's.
constexpr double kLongestGap = 3'600;

// With fewer requests one was alone for most of the time: it shares its steps with no other.
constexpr double kAlone = 1.5;
// Share of the excess that is cut. A gap grows by no more than its batch does, so this is never too
// much; the rest is cut when it is seen again.
constexpr double kCut = 0.5;
// At most this share at once: the whole machine may have stood still for a moment.
constexpr double kMostCut = 0.3;

// A limit grows only if the batch comes near it: all places but one are taken, or this share of
// them. (Some may be kept for requests that prefill workers are computing.)
constexpr double kNearlyFull = 0.9;
// Shares of the objective, and the limit's growth in a window whose gap is below.
constexpr double kMuchRoom = 0.6;
constexpr double kMuchGrowth = 0.1;  // of the limit
constexpr double kRoom = 0.9;
constexpr double kLittleRoom = 0.97;
constexpr double kLittleGrowth = 0.25;
// Growth to a batch that missed the objective lately, and may do so again.
constexpr double kWary = 0.05;

// A limit grows by this factor for each such time without a window.
constexpr std::chrono::seconds kForgets{30};
constexpr double kForgotten = 1.1;
constexpr double kBoundless = 1e6;

Clock::duration in_clock(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void BatchLimit::observe(double requests, double gap_seconds, double target_seconds, Time now) {
  constexpr auto kSpan = static_cast<double>(kTokens);
  const double gap = std::clamp(gap_seconds, 0.0, kLongestGap);
  const locks::Lock lock(mutex_);
  forget_until(now);
  // A sample that began before the last change describes the old batch, which is dealt with
  // already.
  const Time begun = now - in_clock(kSpan * gap);
  if (begun < changed_) return;
  if (count_ > 0 && now - begun_ >= kForgets) count_ = 0;
  if (count_ == 0) begun_ = std::max(begun, now - in_clock(kSpan * target_seconds));
  samples_[count_++ % samples_.size()] = {.requests = requests, .gap = gap};
  const Clock::duration lasted = now - begun_;
  const bool enough = count_ >= kEnoughSamples || (count_ >= kFew && lasted >= kLong);
  if (enough && lasted >= in_clock(kWindowTokens * target_seconds))
    close_window(target_seconds, now);
}

void BatchLimit::forget(Time now) {
  if (most() == kUnlimited) return;
  const locks::Lock lock(mutex_);
  forget_until(now);
}

void BatchLimit::close_window(double target, Time now) {
  const auto window =
      std::span(samples_).first(std::min(std::exchange(count_, 0), samples_.size()));
  heard_ = now;
  double requests = 0;
  for (const Sample& one : window) requests += one.requests;
  requests /= static_cast<double>(window.size());
  // The lower of two medians: errors make a sample too long, not too short.
  const auto middle = window.begin() + static_cast<std::ptrdiff_t>((window.size() - 1) / 2);
  std::nth_element(window.begin(), middle, window.end(),
                   [](const Sample& a, const Sample& b) { return a.gap < b.gap; });
  const double gap = middle->gap;
  set(gap > target ? lowered(requests, gap, target) : raised(requests, gap, target), now);
}

// From the running requests, not from the limit: an overfull batch that is seen twice is cut once.
// Running streams go on, so it takes a while to become smaller.
double BatchLimit::lowered(double requests, double gap, double target) {
  if (requests < kAlone) return limit_;
  const double ran = std::ceil(requests);  // some of the time
  broke_ = ran;
  const double cut = std::max(1.0, std::min(kCut * ran * (1 - target / gap), kMostCut * ran));
  return std::max(1.0, std::min(limit_, ran - cut));
}

double BatchLimit::raised(double requests, double gap, double target) {
  const bool nearly_full = requests >= std::min(limit_ - 1, kNearlyFull * limit_);
  if (limit_ == kNone || !nearly_full) return limit_;
  if (requests >= broke_) broke_ = kNone;
  double growth = 0;
  if (gap < kMuchRoom * target) {
    growth = std::max(1.0, kMuchGrowth * limit_);
  } else if (gap < kRoom * target) {
    growth = 1;
  } else if (gap < kLittleRoom * target) {
    growth = kLittleGrowth;
  }
  // Gaps grow by no more than the batch does.
  const bool may_break = gap * (limit_ + growth) > target * requests;
  if (may_break && limit_ + 1 >= broke_) growth *= kWary;
  return limit_ + growth;
}

void BatchLimit::set(double limit, Time now) {
  limit_ = limit < kBoundless ? limit : kNone;
  const std::int64_t most = limit_ == kNone ? kUnlimited : static_cast<std::int64_t>(limit_);
  if (most_.exchange(most, std::memory_order_relaxed) != most) changed_ = now;
}

void BatchLimit::forget_until(Time now) {
  if (limit_ == kNone) return;
  const auto times = (now - heard_) / kForgets;
  if (times < 1) return;
  heard_ += times * kForgets;
  set(limit_ * std::pow(kForgotten, static_cast<double>(times)), now);
}

bool TokenGaps::sample(std::uint64_t tokens, Time now) {
  const std::int64_t requests = load_.requests();
  bool more = false;
  if (tokens_ > 0) {
    const std::int64_t before = limit_.most();
    const double seconds = std::chrono::duration<double>(now - since_).count();
    limit_.observe(static_cast<double>(requests_ + requests) / 2,
                   seconds / static_cast<double>(tokens - tokens_), target_, now);
    more = limit_.most() > before;
  }
  tokens_ = tokens;
  due_ = tokens + BatchLimit::kTokens;
  since_ = now;
  requests_ = requests;
  return more;
}

}  // namespace baton::scheduling
