// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/bench_command.h"
#include "cli/demo_command.h"
#include "cli/explain_command.h"
#include "cli/register_command.h"
#include "cli/serve_command.h"
#include "cli/tokenize_command.h"
#include "cli/usage_error.h"
#include "cli/workers_command.h"
#include "tools/sim/command.h"

#include <CLI/CLI.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  CLI::App app("Baton: one OpenAI endpoint in front of vLLM, SGLang and TensorRT-LLM servers",
               "baton");
  app.require_subcommand(1);
  app.set_version_flag("--version", BATON_VERSION);
  app.footer("Try it without a GPU: baton demo. Help on a command: baton COMMAND --help");

  baton::cli::ServeOptions serve_options;
  const CLI::App* serve = baton::cli::add_serve_command(app, serve_options);
  baton::cli::RegisterOptions register_options;
  const CLI::App* sidecar = baton::cli::add_register_command(app, register_options);
  baton::cli::DemoOptions demo_options;
  const CLI::App* demo = baton::cli::add_demo_command(app, demo_options);
  baton::cli::WorkersOptions workers_options;
  const CLI::App* workers = baton::cli::add_workers_command(app, workers_options);
  baton::cli::ExplainOptions explain_options;
  const CLI::App* explain = baton::cli::add_explain_command(app, explain_options);
  baton::cli::TokenizeOptions tokenize_options;
  const CLI::App* tokenize = baton::cli::add_tokenize_command(app, tokenize_options);
  baton::cli::BenchOptions bench_options;
  const CLI::App* bench = baton::cli::add_bench_command(app, bench_options);
  baton::sim::Options sim_options;
  const CLI::App* sim = baton::sim::add_command(app, sim_options);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);  // help or the version
    if (argc < 2) {
      std::fputs(app.help().c_str(), stdout);
    } else {
      std::fputs(baton::cli::usage_error(app, problem).c_str(), stderr);
    }
    return baton::cli::kCannotStart;
  }
  if (*serve) return baton::cli::run_serve_command(serve_options);
  if (*workers) return baton::cli::run_workers_command(workers_options);
  if (*explain) return baton::cli::run_explain_command(explain_options);
  if (*sidecar) return baton::cli::run_register_command(register_options);
  if (*tokenize) return baton::cli::run_tokenize_command(tokenize_options);
  if (*demo) return baton::cli::run_demo_command(demo_options);
  if (*bench) return baton::cli::run_bench_command(bench_options);
  return *sim ? baton::sim::run_command(sim_options) : 0;
}
