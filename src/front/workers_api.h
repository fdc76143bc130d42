// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/admin_source.h"
#include "fleet/fleet.h"
#include "front/routes.h"

#include <vector>

namespace baton::front {

// Workers, shown and changed: GET and POST /workers; GET, PATCH and DELETE /workers/{id}; POST and
// DELETE /workers/{id}/drain. For the control thread.
std::vector<Route> workers_routes(fleet::Fleet& fleet, fleet::AdminSource& admin);

}  // namespace baton::front
