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

// What the workers' API tells of and changes. For the control thread.
struct WorkersContext {
  fleet::Fleet& fleet;
  fleet::AdminSource& admin;
  // What a worker said of itself; null where it has not said anything yet.
  std::function<const engine::Facts*(model::WorkerId)> facts;
  // What is known of its KV cache; nothing where nobody keeps book of it.
  std::function<std::optional<CacheSummary>(const fleet::Worker&)> cache;
};

// Workers, shown and changed: GET and POST /workers; GET, PATCH and DELETE /workers/{id}; POST and
// DELETE /workers/{id}/drain.
std::vector<http::Route> workers_routes(WorkersContext context);

}  // namespace baton::api
