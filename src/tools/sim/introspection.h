// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/engine_core.h"
#include "tools/sim/options.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::sim {

// Descriptions that engines give of themselves, and those that only the simulator gives.

std::string models_body(const Options& options);
// GET /v1/models/NAME; an error's message is the body of a 404.
Result<std::string> sglang_model_body(const Options& options, std::string_view name);
// SGLang's and TensorRT-LLM's /server_info.
std::string server_info_body(const Options& options, std::uint16_t bootstrap_port);
// SGLang's bootstrap server, GET /route with all ranks -1.
std::string bootstrap_route_body(const Options& options);
// Mooncake's bootstrap server, GET /query: the ranks' names and where their blocks are.
std::string bootstrap_query_body(const Options& options, const EngineCore& engine);

// /sim/blocks: what each rank's prefix cache holds, and where its feed stands.
nlohmann::ordered_json blocks_of(const EngineCore& engine);
// /sim/state: a flat object.
nlohmann::ordered_json state_of(const EngineCore& engine, std::uint64_t connections);
// Prometheus text: the engine's own gauges and the state as sim_*.
std::string metrics_text(const Options& options, const EngineCore& engine,
                         std::uint64_t connections);
// TensorRT-LLM's /metrics: iteration statistics as JSON, with the state as sim_* beside them.
std::string iteration_stats_body(const EngineCore& engine, std::uint64_t connections);

}  // namespace baton::sim
