// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "routing/pace.h"

namespace baton::routing {

// What of one prompt matters for the forecast, the same for all candidates. In tokens.
struct PromptFacts {
  double tokens = 0;
  double best_cached = 0;  // of its beginning, where most of it is cached
  // Of its beginning, what a prompt that is under way on any rank begins with too.
  double in_demand = 0;
};

// What is known of one candidate.
struct RankFacts {
  double queue_seconds = 0;  // of prefill it has still to do
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

// A copy of what others want too at this moment is no waste: it serves them next time. So a hot
// beginning spreads as soon as waiting for it takes longer than computing it once more.
Forecast forecast(const PromptFacts& prompt, const RankFacts& rank);

// Where a rank has more to do than this, a prompt had better wait in the router: what is sent is
// bound to its rank and its place in the engine's line, and better ones may turn up for both. Enough
// for the next prompt to be there before the rank runs dry.
inline constexpr double kAheadSeconds = 0.05;

// Whether a rank takes one more prompt now.
inline bool has_room(double queue_seconds) { return queue_seconds < kAheadSeconds; }

// A second of waiting makes up for so much more to compute: whoever needs long is overtaken by those
// who need less, but not for ever.
inline constexpr double kPatience = 0.3;

// Who is sent first among those who wait: the one with the smallest. Does not change while it waits.
// `arrived_seconds` counts from any moment that is the same for all.
inline double turn(double compute_seconds, double arrived_seconds) {
  return compute_seconds + kPatience * arrived_seconds;
}

}  // namespace baton::routing
