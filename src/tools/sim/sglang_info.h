// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/engine_core.h"
#include "tools/sim/options.h"

#include <string>
#include <string_view>

namespace baton::sim {

// SGLang's descriptions of itself beside /server_info.

// GET /model_info, and its older name /get_model_info.
std::string model_info_body(const Options& options);
// GET /v1/loads; `query` is what follows the question mark.
Result<std::string> loads_body(const Options& options, const EngineCore& engine,
                               std::string_view query);
// GET /get_load, which releases before 0.5.23 have.
std::string old_loads_body(const Options& options, const EngineCore& engine);

}  // namespace baton::sim
