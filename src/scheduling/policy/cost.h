// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace baton::scheduling {

// The properties of a request's leg that its cost depends on.
struct LegSize {
  std::uint64_t tokens = 0;  // of the prompt
  std::uint32_t block_size = 16;
  bool track_prefill = true;  // for this leg, whatever the options say: the caller has combined
                              // both
  bool decode_worker = false;
};

// Known facts of one candidate. Overlaps are in blocks, each tier's beyond the nearer ones.
struct CostFacts {
  std::optional<double> prefill_tokens =
      std::nullopt;  // still to compute there; absent: its load is unknown
  double device = 0;
  double host = 0;
  double disk = 0;           // and external
  double shared = 0;         // in the shared cache, beyond the device's
  double decode_blocks = 0;  // with this request; what is active there already counts once
  std::int64_t requests = 0;
  double preference = 1;  // as Constraints::preference gives it
};

// The terms of a cost; lower is better. `total` is `preference` times the sum of `prefill`,
// `decode_blocks` and `requests`.
struct CostTerms {
  double raw_prefill_blocks = 0;
  double decay = 1;
  double credit = 0;
  double prefill = 0;
  double decode_blocks = 0;
  double requests = 0;
  double preference = 1;
  double total = 0;
};

// The following are here, since they are asked of thousands of candidates for each prompt.

// Blocks the worker need not compute, those of slower tiers by their weight. Independent of the
// credit and of the shared cache.
inline double effective_overlap(const config::Cost& options, const CostFacts& facts) {
  return facts.device + options.host_cache_hit_weight * facts.host +
         options.disk_cache_hit_weight * facts.disk;
}

// The same in tokens; never more than the prompt has.
inline std::uint64_t cached_tokens(const config::Cost& options, const LegSize& leg,
                                   const CostFacts& facts) {
  const double cached = std::round(effective_overlap(options, facts) * leg.block_size);
  if (cached >= static_cast<double>(leg.tokens)) return leg.tokens;
  return static_cast<std::uint64_t>(std::max(0.0, cached));
}

namespace detail {

inline double raw_prefill_blocks(const config::Cost& options, const LegSize& leg,
                                 const CostFacts& facts) {
  if (!leg.track_prefill) return 0;
  const auto tokens = static_cast<double>(leg.tokens);
  if (!facts.prefill_tokens) return tokens / leg.block_size;
  // New plus cached tokens make the prompt again, unless an overlap is reported to be longer.
  const double cached = effective_overlap(options, facts) * leg.block_size;
  return (*facts.prefill_tokens + (cached > tokens ? std::round(cached) : tokens)) / leg.block_size;
}

// The busier a worker is than the least busy one, in prompts of this size, the less its cache
// draws.
inline double credit_decay(const config::Cost& options, const LegSize& leg, const CostFacts& facts,
                           double least_prefill_tokens) {
  if (!leg.track_prefill || !facts.prefill_tokens || options.overlap_score_credit_decay == 0) {
    return 1;
  }
  const double ahead = std::max(0.0, *facts.prefill_tokens - least_prefill_tokens) / leg.block_size;
  const double own = std::max(1.0, std::ceil(static_cast<double>(leg.tokens) / leg.block_size));
  return 1 / (1 + options.overlap_score_credit_decay * ahead / own);
}

}  // namespace detail

// `least_prefill_tokens`: the smallest of all eligible candidates.
inline CostTerms cost_of(const config::Cost& options, const LegSize& leg, const CostFacts& facts,
                         double least_prefill_tokens) {
  CostTerms terms;
  terms.raw_prefill_blocks = detail::raw_prefill_blocks(options, leg, facts);
  terms.decay = detail::credit_decay(options, leg, facts, least_prefill_tokens);
  terms.credit = options.overlap_score_credit * terms.decay * facts.device +
                 options.host_cache_hit_weight * facts.host +
                 options.disk_cache_hit_weight * facts.disk +
                 options.shared_cache_multiplier * facts.shared;
  // Without a prefill to shorten, a decode worker's cached blocks save blocks of its own.
  if (leg.decode_worker && !leg.track_prefill && options.overlap_score_credit > 0) {
    terms.decode_blocks = std::max(0.0, facts.decode_blocks - terms.credit);
  } else {
    terms.prefill =
        options.prefill_load_scale * std::max(0.0, terms.raw_prefill_blocks - terms.credit);
    terms.decode_blocks = facts.decode_blocks;
  }
  terms.requests = options.decode_active_request_weight * static_cast<double>(facts.requests);
  terms.preference = facts.preference;
  terms.total = (terms.prefill + terms.decode_blocks + terms.requests) * terms.preference;
  return terms;
}

}  // namespace baton::scheduling
