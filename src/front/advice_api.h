// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "front/routes.h"

#include <vector>

namespace baton::front {

// How many workers the load of the last minutes needs: GET /v1/advice.
std::vector<Route> advice_routes(const fleet::Fleet& fleet);

}  // namespace baton::front
