// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "http/routes.h"

#include <vector>

namespace baton::api {

// How many workers the load of the last minutes needs: GET /v1/advice.
std::vector<http::Route> advice_routes(const fleet::Fleet& fleet);

}  // namespace baton::api
