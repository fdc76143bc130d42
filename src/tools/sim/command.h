// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/options.h"

namespace CLI {
class App;
}

namespace baton::sim {

// Adds the subcommand `sim` with its flags to `app`. `options` is filled while the command line is
// parsed and must outlive the parsing.
CLI::App* add_command(CLI::App& app, Options& options);

// Those of them that say how long everything lasts, and how much is done at once.
void add_step_flags(CLI::App& sim, Options& options);
// Those that concern KV events.
void add_kv_flags(CLI::App& sim, Options& options);
// Those that only vLLM has.
void add_vllm_flags(CLI::App& sim, Options& options);

// Serves until SIGTERM or SIGINT; the process's exit code.
int run_command(Options options);

}  // namespace baton::sim
