// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "front/routes.h"
#include "telemetry/metrics.h"

#include <functional>
#include <vector>

namespace baton::front {

// What operators and their machines call. `draining` says whether the process is about to end.
std::vector<Route> admin_routes(const fleet::Fleet& fleet, const telemetry::Registry& metrics,
                                std::function<bool()> draining);

}  // namespace baton::front
