// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <cstdint>
#include <span>

namespace baton::engine {

enum class LegOrder : std::uint8_t { PrefillFirst, Together };

// Treatment of a hand-off whose client leaves before the first token.
enum class WhenAbandoned : std::uint8_t {
  Complete,  // let the cache arrive or release it, then stop: cutting it would leave blocks pinned
  AwaitPrefill,  // the same, and the grace begins anew with the prefill's answer: without one, the
                 // decode worker would hold its blocks for ever; nor is a prefill closed because
                 // its decode leg failed, as a release of what it may keep could do the same
  DropDecode,    // close the decode leg at once; the prefill leg ends by itself, or after the grace
};

// One row per hand-off mode: all that scheduling and the hand-off state machine know of engines.
struct ModeRules {
  model::HandoffMode mode;
  LegOrder order;
  bool keeps_blocks;        // after its answer, a prefill worker holds them until they are fetched
  bool prefill_may_answer;  // a prefill that ends the request has the client's whole answer
  bool decode_may_prefill;  // a decode worker can serve a request without any hand-off
  bool release_in_doubt;    // a release that finds nothing to take does no harm
  WhenAbandoned when_abandoned;
};
std::span<const ModeRules> mode_table();
const ModeRules& rules_of(model::HandoffMode mode);

}  // namespace baton::engine
