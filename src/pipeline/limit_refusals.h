// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "core/limit.h"
#include "telemetry/metrics.h"

#include <array>
#include <cstddef>

namespace baton::pipeline {

// Role. Counts requests refused or given up because of a limit, by limit: the one place that shows
//   which limits bite.
// Confinement. Any thread.
// Lifetime. Ends before its registry. Several of one registry count together.
class LimitRefusals {
 public:
  explicit LimitRefusals(telemetry::Registry& registry);

  void count(Limit limit) { counters_[static_cast<std::size_t>(limit)]->add(); }
  // Does nothing if the error is not about a limit.
  void count(const Error& error) {
    if (const auto limit = error.limit()) count(*limit);
  }

 private:
  std::array<telemetry::Counter*, kLimits> counters_;
};

}  // namespace baton::pipeline
