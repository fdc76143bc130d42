// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "fleet/source.h"
#include "http/routes.h"
#include "pipeline/route_query.h"
#include "telemetry/metrics.h"

#include <functional>
#include <vector>

namespace baton::api {

// Data sources of the admin API.
struct AdminContext {
  fleet::Fleet& fleet;
  pipeline::RouteQuery& route_query;
  const telemetry::Registry& metrics;
  std::function<std::vector<fleet::SourceStatus>()> sources;
  std::function<bool()> draining;  // the process is about to end
};

// Routes for operators and their tools.
std::vector<http::Route> admin_routes(AdminContext context);

}  // namespace baton::api
