// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/engine_core.h"
#include "tools/sim/options.h"

#include <string>

namespace baton::sim {

// vLLM's own metrics, in Prometheus' text: those that routers, gateways and dashboards read.
void add_vllm_metrics(std::string& out, const Options& options, const EngineCore& engine);

}  // namespace baton::sim
