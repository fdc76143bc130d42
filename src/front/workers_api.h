// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/introspection.h"
#include "fleet/admin_source.h"
#include "fleet/fleet.h"
#include "front/routes.h"

#include <functional>
#include <vector>

namespace baton::front {

// Workers, shown and changed: GET and POST /workers; GET, PATCH and DELETE /workers/{id}; POST and
// DELETE /workers/{id}/drain. For the control thread. `facts`: what a worker said of itself; null
// where it has not said anything yet.
using FactsOf = std::function<const engine::Facts*(model::WorkerId)>;
std::vector<Route> workers_routes(fleet::Fleet& fleet, fleet::AdminSource& admin, FactsOf facts);

}  // namespace baton::front
