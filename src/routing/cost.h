// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"

#include <cstdint>
#include <optional>

namespace baton::routing {

// What of one request's leg matters for its cost.
struct LegSize {
  std::uint64_t tokens = 0;  // of the prompt
  std::uint32_t block_size = 16;
  bool track_prefill = true;  // of this leg, whatever the options say: the caller has weighed both
  bool decode_worker = false;
};

// What is known of one candidate. Overlaps are in blocks, each tier's beyond the nearer ones.
struct SeatFacts {
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

// How a cost came about; lower is better. `prefill`, `decode_blocks` and `requests` are added up as
// they stand here, and `total` is that times `preference`.
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

// `least_prefill_tokens`: the smallest of all eligible candidates.
CostTerms cost_of(const config::Cost& options, const LegSize& leg, const SeatFacts& seat,
                  double least_prefill_tokens);

// Blocks the worker need not compute, those of slower tiers by their weight. Neither the credit nor
// the shared cache has a part in it.
double effective_overlap(const config::Cost& options, const SeatFacts& seat);

// The same in tokens; never more than the prompt has.
std::uint64_t cached_tokens(const config::Cost& options, const LegSize& leg, const SeatFacts& seat);

}  // namespace baton::routing
