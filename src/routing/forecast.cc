// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "routing/forecast.h"

#include <algorithm>

namespace baton::routing {

Forecast forecast(const PromptFacts& prompt, const RankFacts& rank) {
  const double cached = std::min(rank.cached_tokens, prompt.tokens);
  const double best = std::min(prompt.best_cached, prompt.tokens);
  const double wasted = std::max(0.0, best - std::max(cached, prompt.in_demand));
  Forecast terms{.wait = std::max(0.0, rank.queue_seconds),
                 .compute = rank.speed.seconds(prompt.tokens - cached),
                 .transfer = rank.transfer_seconds,
                 .waste = kWasteWeight * rank.speed.seconds_per_token * wasted,
                 .preference = rank.preference,
                 .total = 0};
  terms.total = (terms.wait + terms.compute + terms.transfer + terms.waste) * terms.preference;
  return terms;
}

}  // namespace baton::routing
