// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "front/routes.h"
#include "handoff/decision_log.h"

#include <vector>

namespace baton::front {

// Why the last requests went where they did: GET /v1/decisions, and of one: GET /v1/decisions/{id}.
std::vector<Route> decisions_routes(const handoff::DecisionLog& decisions);

}  // namespace baton::front
