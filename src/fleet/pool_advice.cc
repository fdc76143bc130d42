// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/pool_advice.h"

#include "scheduling/policy/batch_limit.h"

#include <cstdint>

namespace baton::fleet {
namespace {

// One that drains leaves: it counts no more.
RoleFacts facts_of(const WorkerSet& set, Time now) {
  RoleFacts facts;
  double ranks = 0;
  double known = 0;  // of the ranks
  double streams = 0;
  const auto members = set.members();
  for (const auto& worker : members->workers) {
    if (worker->draining()) continue;
    ++facts.registered;
    if (worker->tier(now) <= EligibilityTier::Spare) ++facts.available;
    ranks += worker->ranks();
    for (std::uint32_t rank = 0; rank < worker->ranks(); ++rank) {
      const std::int64_t most = worker->batch_limit(rank).most();
      if (most == scheduling::BatchLimit::kUnlimited) continue;
      ++known;
      streams += static_cast<double>(most);
    }
  }
  // Ranks that have not met their limit count like those that have.
  if (known > 0) facts.places = streams / known * ranks / static_cast<double>(facts.registered);
  return facts;
}

}  // namespace

PoolFacts facts_of(const Pool& pool, Time now) {
  return {.disaggregated = pool.disaggregated(),
          .prefill = facts_of(pool.workers(model::Role::Prefill), now),
          .decode = facts_of(pool.workers(model::Role::Decode), now),
          .aggregated = facts_of(pool.workers(model::Role::Aggregated), now)};
}

std::vector<Advice> advise(const Model& model, const Pool& pool, Time now) {
  return advise(pool.work().summary(now), model.routing().slo, facts_of(pool, now));
}

}  // namespace baton::fleet
