// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "routing/pace.h"

#include <algorithm>

namespace baton::routing {

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
};

// When the first token is expected, and what the choice costs others. In seconds; lower is better.
// `wait`, `compute`, `transfer` and `waste` are added up, and `total` is that times `preference`.
struct Forecast {
  double wait = 0;
  double compute = 0;
  double transfer = 0;
  double waste = 0;
  double preference = 1;
  double total = 0;
};

// A second spent on computing what another rank has is a second that all who come after wait longer,
// and a copy that takes the place of something else. Hence it weighs more than a second of waiting:
// so many more.
inline constexpr double kWasteWeight = 4;

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

inline Forecast forecast(const PromptFacts& prompt, const RankFacts& rank) {
  const double cached = std::min(rank.cached_tokens, prompt.tokens);
  const double wasted = std::max(0.0, std::min(prompt.best_cached, prompt.tokens) - cached);
  Forecast terms{.wait = std::max(0.0, rank.queue_seconds),
                 .compute = rank.joins_step ? rank.speed.seconds_of(prompt.tokens - cached)
                                            : rank.speed.seconds(prompt.tokens - cached),
                 .transfer = rank.transfer_seconds,
                 .waste = kWasteWeight * rank.speed.seconds_per_token * wasted * prompt.copy_share,
                 .preference = rank.preference,
                 .total = 0};
  terms.total = (terms.wait + terms.compute + terms.transfer + terms.waste) * terms.preference;
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
// `queue_tokens`: of prompts that it has not answered; `step_tokens`: it computes at most in one step.
inline bool has_room(double queue_seconds, double queue_tokens, double step_tokens,
                     const PrefillSpeed& speed) {
  if (queue_seconds < kAheadSeconds) return true;
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

}  // namespace baton::routing
