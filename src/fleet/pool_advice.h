// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/advice.h"
#include "fleet/model.h"
#include "fleet/pool.h"

#include <vector>

namespace baton::fleet {

// The workers of a pool as they are now, for advise(). Any thread.
PoolFacts facts_of(const Pool& pool, Time now);

// How many workers the pool, which is one of the model's, should have. Any thread.
std::vector<Advice> advise(const Model& model, const Pool& pool, Time now);

}  // namespace baton::fleet
