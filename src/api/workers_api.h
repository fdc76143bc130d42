// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "api/cache_summary.h"
#include "engine/shared/introspection.h"
#include "fleet/admin_source.h"
#include "fleet/fleet.h"
#include "http/routes.h"

#include <functional>
#include <optional>
#include <vector>

namespace baton::api {

// Data that the workers' API shows and changes. For the control thread.
struct WorkersContext {
  fleet::Fleet& fleet;
  fleet::AdminSource& admin;
  // A worker's description of itself; null until it has given one.
  std::function<const engine::Facts*(model::WorkerId)> facts;
  // Summary of its KV cache; nullopt if the cache is not tracked.
  std::function<std::optional<CacheSummary>(const fleet::Worker&)> cache;
};

// Workers, shown and changed: GET and POST /workers; GET, PATCH and DELETE /workers/{id}; POST and
// DELETE /workers/{id}/drain.
std::vector<http::Route> workers_routes(WorkersContext context);

}  // namespace baton::api
