// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"

#include <optional>

namespace baton::scheduling {

// A request's own cost options; absent ones are as configured.
struct CostOverride {
  std::optional<double> overlap_score_credit;
  std::optional<double> prefill_load_scale;
  std::optional<double> temperature;
  std::optional<bool> assume_kv_reuse;
  std::optional<bool> track_prefill_tokens;
  std::optional<double> shared_cache_multiplier;

  bool empty() const { return *this == CostOverride(); }
  bool operator==(const CostOverride&) const = default;

  config::Cost over(config::Cost cost) const {
    cost.overlap_score_credit = overlap_score_credit.value_or(cost.overlap_score_credit);
    cost.prefill_load_scale = prefill_load_scale.value_or(cost.prefill_load_scale);
    cost.temperature = temperature.value_or(cost.temperature);
    cost.assume_kv_reuse = assume_kv_reuse.value_or(cost.assume_kv_reuse);
    cost.track_prefill_tokens = track_prefill_tokens.value_or(cost.track_prefill_tokens);
    cost.shared_cache_multiplier = shared_cache_multiplier.value_or(cost.shared_cache_multiplier);
    return cost;
  }
};

}  // namespace baton::scheduling
