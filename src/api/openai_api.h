// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "http/routes.h"
#include "pipeline/pipeline.h"

#include <cstdint>
#include <vector>

namespace baton::api {

// Routes for clients. `created` is the time models are listed with, in seconds since 1970.
std::vector<http::Route> openai_routes(pipeline::Pipeline& pipeline, fleet::Fleet& fleet,
                                       std::int64_t created);

}  // namespace baton::api
