// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/policy/pace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace baton::scheduling {

// The properties of a prompt that the forecast uses, equal for all candidates. In tokens.
struct PromptFacts {
  double tokens = 0;
  double best_cached = 0;  // of its beginning, where most of it is cached
  double copy_share = 1;   // see copy_share()
};

// Known facts of one candidate.
struct RankFacts {
  double queue_seconds = 0;  // of prefill it has still to do
  bool joins_step = false;   // the step that would compute it has others already
  double cached_tokens = 0;  // of the prompt's beginning; what is on its way there counts
  PrefillSpeed speed;
  double transfer_seconds = 0;  // from there to where it is decoded
  double preference = 1;        // as Constraints::preference gives it
  std::int64_t requests = 0;    // that run there
  bool decodes = false;         // it also decodes them, so that a prompt holds up all of them
  PrefillSpeed usual = {};      // of its kind; looked at where forecasts are not trusted
};

// The expected time to the first token, and the choice's cost for others. In seconds; lower is
// better. `total` is `preference` times the sum of `wait`, `compute`, `transfer`, `stall` and
// `waste`. `trust`: the forecast share of wait and compute; the rest follows from load, see
// wait_by_load().
struct Forecast {
  double wait = 0;
  double compute = 0;
  double transfer = 0;
  double stall = 0;
  double waste = 0;
  double preference = 1;
  double trust = 1;
  double total = 0;
};

// A second spent on computing what another rank holds delays all later requests, and the copy
// evicts other blocks. Hence such a second costs this much more than a second of waiting.
inline constexpr double kWasteWeight = 4;

// A worker that also decodes delays its tokens while it computes a prompt: one second for each
// running request. Their answers have begun, so such a second costs less than one before the first
// token.
inline constexpr double kStallWeight = 0.1;

// How long a cached copy stays useful; the holders' load from which another copy is no waste; and
// the largest share of its computation that later requests may pay. Not all of it: while a holder
// is idle, the prefix is not computed again.
inline constexpr double kCopySeconds = 60;
inline constexpr double kPressed = 0.15;
inline constexpr double kMostPaid = 0.98;

// The share of its price that another copy of a prefix is charged with. A prefix that comes once
// pays all of it. A frequent prefix would pay a part, but only as far as its holders are loaded:
// while they keep up, another copy is useless. Under high load the share is negative (a subsidy):
// waiting for a holder is shorter than computing, so no request would make the copy for its own
// sake, but all later ones would wait less, so they pay. `per_second`: arrivals with this prefix;
// `holder_seconds`: the time of one on a rank that holds the prefix; `holders`: the number of such
// ranks.
double copy_share(double per_second, double holder_seconds, double holders);

// Used when forecasts have missed: assumes equally fast ranks, and that each running request is as
// much work as this prompt. The rank with the fewest requests is then the best one.
inline double wait_by_load(const RankFacts& rank, double tokens) {
  return static_cast<double>(rank.requests) * rank.usual.seconds(tokens);
}

// `trust`: see ForecastError.
inline Forecast forecast(const PromptFacts& prompt, const RankFacts& rank, double trust = 1) {
  const double cached = std::min(rank.cached_tokens, prompt.tokens);
  const double wasted = std::max(0.0, std::min(prompt.best_cached, prompt.tokens) - cached);
  Forecast terms{.wait = std::max(0.0, rank.queue_seconds),
                 .compute = rank.joins_step ? rank.speed.seconds_of(prompt.tokens - cached)
                                            : rank.speed.seconds(prompt.tokens - cached),
                 .transfer = rank.transfer_seconds,
                 .stall = 0,
                 .waste = kWasteWeight * rank.speed.seconds_per_token * wasted * prompt.copy_share,
                 .preference = rank.preference,
                 .trust = trust,
                 .total = 0};
  if (trust < 1) {
    const double new_tokens = prompt.tokens - cached;
    terms.wait = std::lerp(wait_by_load(rank, prompt.tokens), terms.wait, trust);
    terms.compute = std::lerp(rank.usual.seconds(new_tokens), terms.compute, trust);
    terms.waste =
        std::lerp(kWasteWeight * rank.usual.seconds_per_token * wasted * prompt.copy_share,
                  terms.waste, trust);
  }
  if (rank.decodes) terms.stall = kStallWeight * static_cast<double>(rank.requests) * terms.compute;
  terms.total =
      (terms.wait + terms.compute + terms.transfer + terms.stall + terms.waste) * terms.preference;
  return terms;
}

// If a rank has more work than this, a prompt should wait in the router: a sent prompt is bound to
// its rank and its place in the engine's queue, and better ones may turn up for both. Enough for
// the next prompt to arrive before the rank runs dry.
inline constexpr double kAheadSeconds = 0.05;
// Prompts that share a step share its floor. Up to so many floors of work may be queued for the
// next step: with fewer, the rank would spend its time on floors.
inline constexpr double kAheadSteps = 8;

// Whether a rank takes one more prompt now. `queue_seconds`: until all it has is computed;
// `queue_tokens`: of prompts that it has not answered; `step_tokens`: it computes at most in one
// step; `trust`: see ForecastError.
inline bool has_room(double queue_seconds, double queue_tokens, double step_tokens,
                     const PrefillSpeed& speed, double trust = 1) {
  // A short queue, or one whose forecast is not trusted, does not hold the request back.
  if (queue_seconds * trust < kAheadSeconds) return true;
  const double shared = std::max(kAheadSeconds, kAheadSteps * speed.seconds_per_step);
  return queue_tokens < step_tokens && speed.seconds_of(queue_tokens) < shared;
}

// A second of waiting makes up for this much more computation: shorter requests overtake a longer
// one, but not for ever.
inline constexpr double kWaitWeight = 0.3;

// Order of waiting requests: the smallest value is sent first. It does not change while they wait.
// `arrived_seconds` counts from any moment that is the same for all.
inline double turn(double compute_seconds, double arrived_seconds) {
  return compute_seconds + kWaitWeight * arrived_seconds;
}

}  // namespace baton::scheduling
