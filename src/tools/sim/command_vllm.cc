// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Flags that vLLM's own server has.
#include "tools/sim/command.h"

#include <CLI/CLI.hpp>

namespace baton::sim {

void add_vllm_flags(CLI::App& sim, Options& options) {
  sim.add_option("--tool-call-parser", options.tool_call_parser,
                 "vLLM: any name; without it requests with tools are refused");
  sim.add_flag("--enable-auto-tool-choice", options.auto_tool_choice,
               "vLLM: whether tool_choice may be auto, which it is where nothing is said");
  sim.add_flag("--multimodal", options.multimodal,
               "vLLM: take images, audio and video, and answer as if they were not there");
  sim.add_option("--stream-interval", options.stream_interval,
                 "vLLM: tokens to a chunk, but for the first and the last")
      ->check(CLI::Range(1U, 1U << 20U))
      ->capture_default_str();
}

}  // namespace baton::sim
