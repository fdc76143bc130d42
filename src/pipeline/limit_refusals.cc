// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/limit_refusals.h"

#include <string>

namespace baton::pipeline {

LimitRefusals::LimitRefusals(telemetry::Registry& registry) : counters_{} {
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    counters_[i] = &registry.counter(
        "baton_limit_refusals_total",
        "Requests and connections refused or given up because of a limit, by limit.",
        {{"limit", std::string(to_string(static_cast<Limit>(i)))}});
  }
}

}  // namespace baton::pipeline
