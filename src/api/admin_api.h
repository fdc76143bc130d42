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

// What the admin API tells of.
struct AdminContext {
  fleet::Fleet& fleet;
  pipeline::RouteQuery& route_query;
  const telemetry::Registry& metrics;
  std::function<std::vector<fleet::SourceStatus>()> sources;
  std::function<bool()> draining;  // the process is about to end
};

// What operators and their machines call.
std::vector<http::Route> admin_routes(AdminContext context);

}  // namespace baton::api
