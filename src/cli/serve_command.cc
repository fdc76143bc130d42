// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/serve_command.h"

#include "app/descriptor_limit.h"
#include "app/inheritance.h"
#include "app/logging.h"
#include "app/next_process.h"
#include "app/predecessor.h"
#include "app/process_memory.h"
#include "app/router.h"
#include "app/sd_notify.h"
#include "config/load.h"
#include "core/ready_file.h"
#include "pipeline/tokenizers.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::cli {
namespace {

constexpr std::string_view kServeExamples = R"(Examples:
  baton serve --config fleet.yaml
  baton serve --worker demo=http://127.0.0.1:9001,engine=vllm,role=prefill \
              --worker demo=http://127.0.0.1:9002,engine=vllm,role=decode
  baton serve --config fleet.yaml --check

Signals:
  SIGTERM, SIGINT  finish running requests within shutdown_grace, then end
  SIGHUP           read the configuration file and certificates again
  SIGUSR2          start the program anew on the same sockets, and drain: see docs/upgrades.md

Every key of the configuration is explained in docs/configuration.md; a flag wins over the file.)";

std::expected<config::Config, std::vector<config::Problem>> load(const ServeOptions& options) {
  std::vector<config::Override> overrides;
  for (const auto& [path, value] : options.settings) overrides.push_back({path, value});
  for (const std::string& worker : options.workers) overrides.push_back({"worker", worker});
  if (!options.policy.empty()) overrides.push_back({"policy", options.policy});
  if (options.config_file.empty()) return config::parse("", "command line", overrides);
  return config::load(options.config_file, overrides);
}

int refuse(std::string_view what) {
  fmt::print(stderr, "baton: {}\n", what);
  return kCannotStart;
}

void log_addresses(const ServeOptions& options, const app::Router& router, telemetry::Logger& log) {
  log.info("serving",
           {{"address", router.address().to_string()},
            {"admin", router.admin_address() ? router.admin_address()->to_string() : "off"}});
  const auto tell = [&log](const std::string& file, const model::Endpoint& address) {
    if (file.empty()) return;
    if (const auto written = write_ready_file(file, address.to_string()); !written)
      log.error("ready_file", {{"error", written.error().message()}});
  };
  // The ready file is written last: a script that waits for it finds the admin file, too.
  if (router.admin_address()) tell(options.admin_ready_file, *router.admin_address());
  tell(options.ready_file, router.address());
}

}  // namespace

CLI::App* add_serve_command(CLI::App& root, ServeOptions& options) {
  CLI::App* command = root.add_subcommand("serve", "Run the router");
  command->add_option("-c,--config", options.config_file, "Configuration file (YAML)");
  command->add_option(
      "--worker", options.workers,
      "Add a worker: NAME=URL,engine=vllm|sglang|trtllm,role=prefill|decode|aggregated");
  command->add_option("--policy", options.policy,
                      "How workers are chosen, for models whose policy the file does not say");
  command->add_option("--ready-file", options.ready_file, "Write host:port here once serving");
  command->add_option("--admin-ready-file", options.admin_ready_file,
                      "Write the admin address here once serving");
  command->add_flag("--check", options.check_only, "Check the configuration and exit");
  for (const config::Key& key : config::keys()) {
    if (key.flag.empty()) continue;
    command
        ->add_option_function<std::string>(
            std::string(key.flag),
            [&options, path = std::string(key.path)](const std::string& value) {
              options.settings[path] = value;
            },
            fmt::format("{} [{}]", key.meaning, key.def))
        ->type_name(std::string(key.type))
        ->group("Configuration");
  }
  command->footer(std::string(kServeExamples));
  return command;
}

int run_serve_command(const ServeOptions& options) {
  auto config = load(options);
  if (!config) {
    for (const config::Problem& problem : config.error())
      fmt::print(stderr, "{}\n", problem.to_string());
    return refuse("the configuration cannot be used; nothing was started");
  }
  if (options.check_only) {
    telemetry::Registry metrics;
    pipeline::Tokenizers tokenizers(config->limits.token_cache_bytes, metrics);
    if (const auto loaded = tokenizers.configure(config->models); !loaded)
      return refuse(loaded.error().message());
    fmt::print("the configuration is good: {} model(s)\n", config->models.size());
    return 0;
  }
  app::raise_descriptor_limit();
  app::give_long_blocks_back();
  // Threads come later.
  app::Inheritance inherited = app::take_inheritance();
  std::unique_ptr<app::Predecessor> predecessor;
  if (inherited.predecessor)
    predecessor = std::make_unique<app::Predecessor>(*inherited.predecessor);
  const bool follows = predecessor != nullptr;
  telemetry::Logger log = app::make_logger(config->log);
  std::optional<app::Router> router;
  const auto serving = [&] {
    log_addresses(options, *router, log);
    // Otherwise the predecessor has said so: the service manager listens to the main process only.
    if (!follows) app::notify_service_manager("READY=1");
  };
  router.emplace(std::move(*config),
                 app::Router::Origin{options.config_file, [options] { return load(options); }},
                 app::Router::Succession{.inherited = std::move(inherited),
                                         .predecessor = std::move(predecessor),
                                         .command = app::own_command(),
                                         .serving = serving},
                 log);
  if (const auto started = router->start(); !started) {
    log.flush();
    return refuse(started.error().message());
  }
  router->run();
  router.reset();
  // Nothing is left that a signal could end, and it must not turn a good end into a bad one.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) std::signal(signal, SIG_IGN);
  return 0;
}

}  // namespace baton::cli
