// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/policy/pace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace baton::scheduling {

// What of one prompt matters for the forecast, the same for all candidates. In tokens.
struct PromptFacts {
  double tokens = 0;
  double best_cached = 0;  // of its beginning, where most of it is cached
  double copy_share = 1;   // see copy_share()
};

// What is known of one candidate.
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

// When the first token is expected, and what the choice costs others. In seconds; lower is better.
// `wait`, `compute`, `transfer`, `stall` and `waste` are added up, and `total` is that times `preference`.
// `trust`: what part of wait and compute is forecast; the rest follows from load, see wait_by_load().
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

// A second spent on computing what another rank has is a second that all who come after wait longer,
// and a copy that takes the place of something else. Hence it weighs more than a second of waiting:
// so many more.
inline constexpr double kWasteWeight = 4;

// A worker that decodes as well makes no token, or makes it later, while it computes a prompt: a second for
// each request that runs there. They have begun to answer, so such a second weighs less than one before
// the first token.
inline constexpr double kStallWeight = 0.1;

// How long a copy in a cache is of use; from which share of the time of those who have it on one more
// is no waste at all; and how much of its computation those who come after may pay for. Not all: where
// somebody who has it is free, nobody computes it again.
inline constexpr double kCopySeconds = 60;
inline constexpr double kPressed = 0.15;
inline constexpr double kMostPaid = 0.98;

// What part of its price one more copy of a prompt's beginning is charged with. Who comes alone pays
// all of it. Where many come who begin so, each would pay a part; but only as far as those who have the
// copy are pressed for time: as long as they manage, another copy serves nobody. Where they are pressed
// hard it is less than nothing. Nobody would make such a copy for himself, because waiting for one who
// has it takes less time than computing it does; but all who come after would wait less. So they pay.
// `per_second`: how many come who begin so; `holder_seconds`: what one takes on a rank that has the
// beginning; `holders`: how many ranks have it.
double copy_share(double per_second, double holder_seconds, double holders);

// Where forecasts have missed: all ranks are taken for equally fast, and each request that runs for
// as much work as this prompt. So the rank with the fewest requests is the best one.
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

// Where a rank has more to do than this, a prompt had better wait in the router: what is sent is
// bound to its rank and its place in the engine's line, and better ones may turn up for both. Enough
// for the next prompt to be there before the rank runs dry.
inline constexpr double kAheadSeconds = 0.05;
// Prompts that share a step share its floor. So many floors of work may be there for the next one: fewer,
// and floors would be what the rank spends its time on.
inline constexpr double kAheadSteps = 8;

// Whether a rank takes one more prompt now. `queue_seconds`: until all it has is computed;
// `queue_tokens`: of prompts that it has not answered; `step_tokens`: it computes at most in one step;
// `trust`: see ForecastError.
inline bool has_room(double queue_seconds, double queue_tokens, double step_tokens,
                     const PrefillSpeed& speed, double trust = 1) {
  // What is not known to wait is not held back.
  if (queue_seconds * trust < kAheadSeconds) return true;
  const double shared = std::max(kAheadSeconds, kAheadSteps * speed.seconds_per_step);
  return queue_tokens < step_tokens && speed.seconds_of(queue_tokens) < shared;
}

// A second of waiting makes up for so much more to compute: whoever needs long is overtaken by those
// who need less, but not for ever.
inline constexpr double kPatience = 0.3;

// Who is sent first among those who wait: the one with the smallest. Does not change while it waits.
// `arrived_seconds` counts from any moment that is the same for all.
inline double turn(double compute_seconds, double arrived_seconds) {
  return compute_seconds + kPatience * arrived_seconds;
}

}  // namespace baton::scheduling
