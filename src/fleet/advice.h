// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "fleet/work_history.h"
#include "model/worker.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// How many workers the load of the last minutes needs.
namespace baton::fleet {

// The workers of one role of a pool as they are now.
struct RoleFacts {
  std::size_t registered = 0;  // announced, and not draining
  std::size_t available = 0;   // of those, may have a request now
  // Streams that one of them decodes within the objective, all its ranks together; absent: unknown.
  std::optional<double> places = {};
};

struct PoolFacts {
  bool disaggregated = false;  // prompts are computed by prefill workers
  RoleFacts prefill = {};
  RoleFacts decode = {};
  RoleFacts aggregated = {};
};

struct Advice {
  model::Role role;
  std::size_t wanted = 1;
  std::size_t available = 0;
  std::size_t registered = 0;
  // Offered load / capacity of the available workers; above 1 if they are too few. Absent: none is
  // available, or the capacity is unknown.
  std::optional<double> utilization = {};
  std::string reason = {};  // for people
};

// No advice is above this.
inline constexpr std::size_t kMostWanted = 100'000;

// One per role that has registered workers. Without `slo`, prefill workers should be busy for 80 %
// of the time. If a fact is unknown, the advice is to keep the registered workers.
std::vector<Advice> advise(const WorkHistory::Summary& work, const std::optional<config::Slo>& slo,
                           const PoolFacts& pool);

}  // namespace baton::fleet
