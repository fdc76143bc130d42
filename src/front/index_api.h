// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "front/routes.h"
#include "overlap/caches.h"
#include "overlap/feeds.h"

#include <functional>
#include <vector>

namespace baton::front {

// What the index's API tells of. For the control thread.
struct IndexContext {
  const fleet::Fleet& fleet;
  const overlap::Caches& caches;
  std::function<std::vector<overlap::Feeds::Report>()> reports;
};

// What is known of the workers' KV caches: GET /v1/index, and of one prompt: POST /v1/index/match.
std::vector<Route> index_routes(IndexContext context);

}  // namespace baton::front
