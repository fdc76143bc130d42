// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace baton::scheduling {
namespace {

// How much a measurement still weighs after the next one: about the last twenty count.
constexpr double kFade = 0.95;
// The prior weighs as much as two measurements, with each new one by this less, and at last this much.
constexpr double kPriorFade = 0.7;
constexpr double kPriorRest = 0.03;
constexpr double kPriorTokens = 2'000;
// Nothing counts for more than so many times of what was expected: a first request compiles, a machine
// stands still for a moment. A rank that is as slow in earnest is known for it after a few.
constexpr double kOutlyingPrefill = 8;
constexpr std::uint64_t kStart = 5;
constexpr double kLeastPerToken = 1e-9;
// So many answers that follow each other closely are one measurement at most.
constexpr std::uint64_t kMostInStep = 512;

double seconds_between(Time from, Time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

void SpeedFit::add(double tokens, double seconds) {
  for (double* sum : {&count_, &tokens_, &seconds_, &tokens_tokens_, &tokens_seconds_})
    *sum *= kFade;
  count_ += 1;
  tokens_ += tokens;
  seconds_ += seconds;
  tokens_tokens_ += tokens * tokens;
  tokens_seconds_ += tokens * seconds;
  ++measured_;
}

PrefillSpeed SpeedFit::speed(const PrefillSpeed& prior) const {
  SpeedFit all = *this;
  // The prior as two steps: one of nothing, and one of the usual length.
  const double weight = std::max(kPriorRest, std::pow(kPriorFade, static_cast<double>(measured_)));
  const double usual = std::max(kPriorTokens, count_ > 0 ? tokens_ / count_ : 0);
  for (const double tokens : {0.0, usual}) {
    const double seconds = prior.seconds(tokens);
    all.count_ += weight;
    all.tokens_ += weight * tokens;
    all.seconds_ += weight * seconds;
    all.tokens_tokens_ += weight * tokens * tokens;
    all.tokens_seconds_ += weight * tokens * seconds;
  }
  const double determinant = all.count_ * all.tokens_tokens_ - all.tokens_ * all.tokens_;
  const double per_step =
      (all.seconds_ * all.tokens_tokens_ - all.tokens_seconds_ * all.tokens_) / determinant;
  const double per_token =
      (all.tokens_seconds_ * all.count_ - all.seconds_ * all.tokens_) / determinant;
  // Where the best line has a negative part, the best one without that part.
  if (per_step < 0) {
    return {
        .seconds_per_step = 0,
        .seconds_per_token = std::max(kLeastPerToken, all.tokens_seconds_ / all.tokens_tokens_)};
  }
  if (per_token < kLeastPerToken)
    return {.seconds_per_step = all.seconds_ / all.count_, .seconds_per_token = kLeastPerToken};
  return {.seconds_per_step = per_step, .seconds_per_token = per_token};
}

void SiblingPace::add(double tokens, double seconds, Time now) {
  const std::lock_guard lock(mutex_);
  fit_.add(tokens, seconds);
  speed_.store(fit_.speed(kUnmeasuredSpeed), now);
}

Pace::Pace(std::shared_ptr<SiblingPace> siblings, std::shared_ptr<PublishedSpeed> published)
    : siblings_(std::move(siblings)), published_(std::move(published)) {}

void Pace::sent(Time now) {
  const std::lock_guard lock(mutex_);
  if (outstanding_++ == 0) since_ = now;
}

void Pace::computed(Time now, std::uint64_t tokens) {
  const std::lock_guard lock(mutex_);
  const double seconds = seconds_between(since_, now);
  if (blurred_) {
    close_step();
    blurred_ = false;
  } else {
    const double soon = std::max(std::chrono::duration<double>(kSameStep).count(),
                                 kSameStepShare * step_.until_first);
    if (seconds >= soon || step_.prompts >= kMostInStep) close_step();
    if (step_.prompts++ == 0) step_.until_first = seconds;
    step_.tokens += static_cast<double>(tokens);
    step_.seconds += seconds;
  }
  since_ = std::max(since_, now);
  one_less();
}

void Pace::lost(Time now) {
  const std::lock_guard lock(mutex_);
  close_step();
  since_ = std::max(since_, now);
  blurred_ = true;
  one_less();
}

void Pace::one_less() {
  if (--outstanding_ > 0) return;
  close_step();
  blurred_ = false;
}

void Pace::close_step() {
  const Step step = std::exchange(step_, {});
  if (step.prompts == 0) return;
  const PrefillSpeed usual = siblings_ ? siblings_->speed() : kUnmeasuredSpeed;
  // As measured here, however long ago: only what is forecast ages. At first what is usual counts, too.
  double expected = published_->load().value_or(usual).seconds(step.tokens);
  if (fit_.measured() < kStart) expected = std::max(expected, usual.seconds(step.tokens));
  const double seconds = std::min(step.seconds, kOutlyingPrefill * expected);
  fit_.add(step.tokens, seconds);
  if (siblings_) siblings_->add(step.tokens, seconds, since_);
  published_->store(fit_.speed(usual), since_);
}

}  // namespace baton::scheduling
