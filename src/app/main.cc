// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/command.h"

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app("Baton: one endpoint in front of vLLM, SGLang and TensorRT-LLM servers", "baton");
  app.require_subcommand(1);
  baton::sim::Options sim_options;
  const CLI::App* sim = baton::sim::add_command(app, sim_options);
  CLI11_PARSE(app, argc, argv);
  if (*sim) return baton::sim::run_command(sim_options);
  return 0;
}
