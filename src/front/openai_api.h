// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "front/routes.h"
#include "pipeline/pipeline.h"

#include <cstdint>
#include <vector>

namespace baton::front {

// What clients call. `created` is the time models are listed with, in seconds since 1970.
std::vector<Route> openai_routes(pipeline::Pipeline& pipeline, fleet::Fleet& fleet,
                                 std::int64_t created);

}  // namespace baton::front
