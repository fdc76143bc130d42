// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/pace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace baton::scheduling {
namespace {

// Remaining weight of a measurement after the next one: about the last twenty count.
constexpr double kFade = 0.95;
// The prior starts with the weight of two measurements, fades with each new one, and ends at this.
constexpr double kPriorFade = 0.7;
constexpr double kPriorRest = 0.03;
constexpr double kPriorTokens = 2'000;
// A measurement counts for at most this multiple of the expectation: a first request compiles, a
// machine may stall for a moment. A few measurements still show a rank that really is that slow.
constexpr double kOutlyingPrefill = 8;
constexpr std::uint64_t kStart = 5;
constexpr double kLeastPerToken = 1e-9;
// A rank that throttles or recovers: so many measurements in a row that are off by this factor in the
// same direction show it, and then the earlier ones keep this share of their weight.
constexpr double kChanged = 2;
constexpr int kSurelyChanged = 3;
constexpr double kDistrust = 0.1;
constexpr std::uint64_t kKnown = 20;  // steps; before, the prior fades anyway
// A full step leaves more than this fraction of its completed work behind.
constexpr std::uint64_t kFewLeft = 8;
// Full steps are measured once they have completed this multiple of their largest prompt, or after
// so many steps or seconds.
constexpr double kManyPrompts = 4;
constexpr double kMostSteps = 16;
constexpr double kMostSeconds = 2;
// At most so many closely following answers are one measurement.
constexpr std::uint64_t kMostInStep = 512;

double seconds_between(Time from, Time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

void SpeedFit::add(const Measured& measured) {
  fade(std::pow(kFade, measured.steps));
  const auto [tokens, seconds, steps, floors] = measured;
  steps_ += steps;
  floors_ += floors;
  tokens_ += tokens;
  // Many steps count as if each had been like their average.
  floors_floors_ += floors * floors / steps;
  floors_tokens_ += floors * tokens / steps;
  floors_seconds_ += floors * seconds / steps;
  tokens_tokens_ += tokens * tokens / steps;
  tokens_seconds_ += tokens * seconds / steps;
  measured_ += static_cast<std::uint64_t>(steps);
}

void SpeedFit::fade(double kept) {
  for (double* sum : {&steps_, &floors_, &tokens_, &floors_floors_, &floors_tokens_,
                      &floors_seconds_, &tokens_tokens_, &tokens_seconds_})
    *sum *= kept;
}

void SpeedFit::distrust() { fade(kDistrust); }

PrefillSpeed SpeedFit::speed(const PrefillSpeed& prior) const {
  // The prior as two measurements: of a floor alone, and of an average step.
  const double weight = std::max(kPriorRest, std::pow(kPriorFade, static_cast<double>(measured_)));
  const double floors = steps_ > 0 ? floors_ / steps_ : 1;
  const double tokens = std::max(kPriorTokens, steps_ > 0 ? tokens_ / steps_ : 0);
  const double seconds = floors * prior.seconds_per_step + prior.seconds_of(tokens);
  const double floors_floors = floors_floors_ + weight * (1 + floors * floors);
  const double floors_tokens = floors_tokens_ + weight * floors * tokens;
  const double floors_seconds =
      floors_seconds_ + weight * (prior.seconds_per_step + floors * seconds);
  const double tokens_tokens = tokens_tokens_ + weight * tokens * tokens;
  const double tokens_seconds = tokens_seconds_ + weight * tokens * seconds;
  const double determinant = floors_floors * tokens_tokens - floors_tokens * floors_tokens;
  const double per_step =
      (floors_seconds * tokens_tokens - tokens_seconds * floors_tokens) / determinant;
  const double per_token =
      (tokens_seconds * floors_floors - floors_seconds * floors_tokens) / determinant;
  // If the best fit has a negative part, use the best fit without that part.
  if (per_step < 0) {
    return {.seconds_per_step = 0,
            .seconds_per_token = std::max(kLeastPerToken, tokens_seconds / tokens_tokens)};
  }
  if (per_token < kLeastPerToken)
    return {.seconds_per_step = floors_seconds / floors_floors,
            .seconds_per_token = kLeastPerToken};
  return {.seconds_per_step = per_step, .seconds_per_token = per_token};
}

void SiblingPace::add(const SpeedFit::Measured& measured, Time now) {
  const locks::Lock lock(mutex_);
  fit_.add(measured);
  speed_.store(fit_.speed(kUnmeasuredSpeed), now);
}

Pace::Pace(std::shared_ptr<SiblingPace> siblings, std::shared_ptr<PublishedSpeed> published)
    : siblings_(std::move(siblings)), published_(std::move(published)) {}

void Pace::sent(Time now) {
  const locks::Lock lock(mutex_);
  if (outstanding_++ == 0) since_ = now;
  // Prompts that reach an idle rank at once may be in its first step.
  if (!answered_ && now - since_ <= kSameStep) there_ = outstanding_;
}

void Pace::computed(Time now, std::uint64_t tokens) {
  const locks::Lock lock(mutex_);
  const double seconds = seconds_between(since_, now);
  if (blurred_) {
    close_step();
    forget_window();
    blurred_ = false;
    // From here on the time belongs to the following prompts; the order behind is not known.
    there_ = outstanding_ - 1;
  } else {
    const double soon = std::max(std::chrono::duration<double>(kSameStep).count(),
                                 kSameStepShare * step_.until_first);
    if (seconds >= soon || step_.prompts >= kMostInStep) close_step();
    if (step_.prompts++ == 0) {
      step_.until_first = seconds;
      step_.there_at_first = outstanding_;
    }
    shares_steps_ = shares_steps_ || (step_.prompts > 1 && now - since_ < kSameStep);
    step_.tokens += static_cast<double>(tokens);
    step_.largest = std::max(step_.largest, static_cast<double>(tokens));
    step_.seconds += seconds;
  }
  answered_ = true;
  since_ = std::max(since_, now);
  one_less();
}

void Pace::lost(Time now) {
  const locks::Lock lock(mutex_);
  close_step();
  forget_window();
  since_ = std::max(since_, now);
  blurred_ = true;
  one_less();
}

void Pace::one_less() {
  if (--outstanding_ > 0) return;
  close_step();
  window_ = {};
  blurred_ = begun_full_ = answered_ = false;
  there_ = 0;
}

void Pace::close_step() {
  const Step step = std::exchange(step_, {});
  if (step.prompts == 0) return;
  const std::uint64_t left = there_ - std::min(there_, step.prompts);
  there_ = step.there_at_first - std::min(step.there_at_first, step.prompts);
  window_.steps += 1;
  window_.prompts += step.prompts;
  window_.tokens += step.tokens;
  window_.largest = std::max(window_.largest, step.largest);
  window_.seconds += step.seconds;
  // One or two among many came in the moment in which the step began.
  const bool full = left > step.prompts / kFewLeft;
  if (!full) {
    if (begun_full_) {
      window_ = {};  // an unknown part of it was computed before
    } else {
      close_window(window_.steps);
    }
  } else if (window_.tokens >= kManyPrompts * window_.largest || window_.steps >= kMostSteps ||
             window_.seconds >= kMostSeconds) {
    // As long as no two were ever answered together the engine may compute them one by one, each
    // with a floor of its own.
    close_window(shares_steps_ ? 0 : static_cast<double>(window_.prompts));
  }
  if (window_.steps == 0) begun_full_ = full;
}

void Pace::close_window(double floors) {
  const Window all = std::exchange(window_, {});
  const PrefillSpeed usual = siblings_ ? siblings_->speed() : kUnmeasuredSpeed;
  const auto expect = [&all](const PrefillSpeed& speed) {
    return all.steps * speed.seconds_per_step + speed.seconds_of(all.tokens);
  };
  // The measured speed, whatever its age: only forecasts age. At first the usual speed counts, too.
  double expected = expect(published_->load().value_or(usual));
  if (fit_.measured() < kStart) expected = std::max(expected, expect(usual));
  const SpeedFit::Measured measured{.tokens = all.tokens,
                                    .seconds = std::min(all.seconds, kOutlyingPrefill * expected),
                                    .steps = all.steps,
                                    .floors = floors};
  if (expected > 0 && fit_.measured() >= kKnown) notice_change(measured.seconds / expected);
  fit_.add(measured);
  if (siblings_) siblings_->add(measured, since_);
  published_->store(fit_.speed(usual), since_);
}

void Pace::notice_change(double ratio) {
  if (ratio > kChanged) {
    outliers_ = std::max(outliers_, 0) + 1;
  } else if (ratio < 1 / kChanged) {
    outliers_ = std::min(outliers_, 0) - 1;
  } else {
    outliers_ = 0;
  }
  if (std::abs(outliers_) >= kSurelyChanged) fit_.distrust();
}

void Pace::forget_window() {
  window_ = {};
  begun_full_ = true;
}

}  // namespace baton::scheduling
