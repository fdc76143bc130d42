// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "http/routes.h"
#include "scheduling/decision_log.h"

#include <vector>

namespace baton::api {

// Why the last requests went where they did: GET /v1/decisions, and of one: GET /v1/decisions/{id}.
std::vector<http::Route> decisions_routes(const scheduling::DecisionLog& decisions);

}  // namespace baton::api
