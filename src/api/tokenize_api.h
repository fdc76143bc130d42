// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "http/routes.h"
#include "net/cpu_pool.h"
#include "pipeline/limit_refusals.h"
#include "pipeline/tokenizers.h"

#include <vector>

namespace baton::api {

// POST /tokenize and /detokenize, in vLLM's shape, by Baton's own tokenizers.
// `limits` counts what is refused because of one.
std::vector<http::Route> tokenize_routes(const fleet::Fleet& fleet,
                                         const pipeline::Tokenizers& tokenizers, net::CpuPool& cpu,
                                         pipeline::LimitRefusals& limits);

}  // namespace baton::api
