// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "routing/pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace baton::routing {
namespace {

// How much a measurement still weighs after the next one: about the last twenty count.
constexpr double kFade = 0.95;
// The prior weighs as much as two measurements, and with each new one by this less.
constexpr double kPriorFade = 0.7;
constexpr double kPriorTokens = 2'000;
// Nothing counts for more than so many times of what was expected, but from the start.
constexpr double kOutlyingPrefill = 8;
constexpr std::uint64_t kStart = 5;
// Below this lengths differ too little to tell what a prompt costs from what its tokens cost.
constexpr double kSpread = 1e-3;
constexpr double kLeastPerToken = 1e-9;
// So many answers that follow each other closely are one measurement at most.
constexpr double kMostInGroup = 64;

double seconds_between(Time from, Time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

void SpeedFit::add(double prompts, double tokens, double seconds) {
  for (double* sum : {&prompts_, &tokens_, &seconds_, &prompts_prompts_, &prompts_tokens_,
                      &tokens_tokens_, &prompts_seconds_, &tokens_seconds_}) {
    *sum *= kFade;
  }
  prompts_ += prompts;
  tokens_ += tokens;
  seconds_ += seconds;
  prompts_prompts_ += prompts * prompts;
  prompts_tokens_ += prompts * tokens;
  tokens_tokens_ += tokens * tokens;
  prompts_seconds_ += prompts * seconds;
  tokens_seconds_ += tokens * seconds;
  ++measured_;
}

PrefillSpeed SpeedFit::speed(const PrefillSpeed& prior) const {
  SpeedFit all = *this;
  // The prior as two prompts: one of nothing, and one of the usual length.
  const double weight = std::pow(kPriorFade, static_cast<double>(measured_));
  const double usual = prompts_ > 0 && tokens_ > 0 ? tokens_ / prompts_ : kPriorTokens;
  for (const double tokens : {0.0, usual}) {
    const double seconds = prior.seconds(tokens);
    all.prompts_ += weight;
    all.tokens_ += weight * tokens;
    all.seconds_ += weight * seconds;
    all.prompts_prompts_ += weight;
    all.prompts_tokens_ += weight * tokens;
    all.tokens_tokens_ += weight * tokens * tokens;
    all.prompts_seconds_ += weight * seconds;
    all.tokens_seconds_ += weight * tokens * seconds;
  }
  const double product = all.prompts_prompts_ * all.tokens_tokens_;
  const double determinant = product - all.prompts_tokens_ * all.prompts_tokens_;
  if (determinant > kSpread * product) {
    const double per_prompt =
        (all.prompts_seconds_ * all.tokens_tokens_ - all.tokens_seconds_ * all.prompts_tokens_) /
        determinant;
    const double per_token =
        (all.tokens_seconds_ * all.prompts_prompts_ - all.prompts_seconds_ * all.prompts_tokens_) /
        determinant;
    if (per_prompt >= 0 && per_token >= kLeastPerToken) {
      return {.seconds_per_prompt = per_prompt, .seconds_per_token = per_token};
    }
  }
  // One number is all there is to tell.
  return {.seconds_per_prompt = 0,
          .seconds_per_token = std::max(kLeastPerToken, all.seconds_ / std::max(1.0, all.tokens_))};
}

void SiblingPace::add(double prompts, double tokens, double seconds) {
  const std::lock_guard lock(mutex_);
  fit_.add(prompts, tokens, seconds);
  speed_.store(fit_.speed(kUnmeasuredSpeed));
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
    close_group();
    blurred_ = false;
  } else {
    const bool same_step = seconds < std::chrono::duration<double>(kSameStep).count();
    if (!same_step || group_.prompts >= kMostInGroup) close_group();
    group_.prompts += 1;
    group_.tokens += static_cast<double>(tokens);
    group_.seconds += seconds;
  }
  since_ = std::max(since_, now);
  one_less();
}

void Pace::lost(Time now) {
  const std::lock_guard lock(mutex_);
  close_group();
  since_ = std::max(since_, now);
  blurred_ = true;
  one_less();
}

void Pace::one_less() {
  if (--outstanding_ > 0) return;
  close_group();
  blurred_ = false;
}

void Pace::close_group() {
  const Group group = std::exchange(group_, {});
  if (group.prompts == 0) return;
  double seconds = group.seconds;
  if (fit_.measured() >= kStart) {
    const PrefillSpeed expected = speed();
    seconds = std::min(seconds, kOutlyingPrefill * (group.prompts * expected.seconds_per_prompt +
                                                    group.tokens * expected.seconds_per_token));
  }
  const PrefillSpeed before = siblings_ ? siblings_->speed() : kUnmeasuredSpeed;
  fit_.add(group.prompts, group.tokens, seconds);
  if (siblings_) siblings_->add(group.prompts, group.tokens, seconds);
  published_->store(fit_.speed(before));
}

}  // namespace baton::routing
