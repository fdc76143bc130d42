// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "front/routes.h"
#include "net/cpu_pool.h"
#include "pipeline/tokenizers.h"

#include <vector>

namespace baton::front {

// POST /tokenize and /detokenize, in vLLM's shape, by Baton's own tokenizers.
std::vector<Route> tokenize_routes(const fleet::Fleet& fleet,
                                   const pipeline::Tokenizers& tokenizers, net::CpuPool& cpu);

}  // namespace baton::front
