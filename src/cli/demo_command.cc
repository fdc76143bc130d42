// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/demo_command.h"

#include "app/router.h"
#include "cli/child_processes.h"
#include "cli/serve_command.h"
#include "config/load.h"
#include "telemetry/log.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace baton::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kStartTime{10};
constexpr std::chrono::milliseconds kLook{5};
constexpr std::string_view kModel = "demo";

// A folder of our own that goes when the demo does.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "baton-demo-XXXXXX").string();
    path_ = ::mkdtemp(name.data()) ? name : std::string();
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Simulated {
  std::string role;
  fs::path ready_file;
  fs::path events_file;  // where it says where its KV events come
};

// Slow enough to watch: an answer takes a few seconds.
std::vector<std::string> sim_arguments(const Simulated& sim) {
  return {"sim", "--engine", "vllm", "--role", sim.role, "--port", "0", "--ready-file",
          sim.ready_file.string(), "--model", std::string(kModel), "--decode-ms", "60",
          "--prefill-tokens-per-second", "2000", "--transfer-ms", "20",
          // Small enough that short questions fill some.
          "--block-size", "4", "--kv-events", "tcp://127.0.0.1:0", "--kv-ready-file",
          sim.events_file.string(), "--min-output", "40", "--max-output", "80",
          "--die-with-parent"};
}

Result<std::string> wait_for_address(const Simulated& sim, const fs::path& ready_file,
                                     ChildProcesses& children) {
  const auto deadline = std::chrono::steady_clock::now() + kStartTime;
  while (std::chrono::steady_clock::now() < deadline && !children.any_ended()) {
    std::ifstream file(ready_file);
    std::string address;
    if (std::getline(file, address)) return address;
    std::this_thread::sleep_for(kLook);
  }
  return fail(Errc::Internal, fmt::format("the simulated {} worker did not start", sim.role));
}

void tell(const app::Router& router) {
  const std::string address = router.address().to_string();
  fmt::print("\nBaton serves the model \"{}\" on http://{}\n", kModel, address);
  fmt::print("with 2 prefill and 2 decode workers, all simulated vLLM servers.\n\n");
  fmt::print("Watch an answer stream through a prefill and a decode worker:\n\n");
  fmt::print("  curl -N http://{}/v1/chat/completions -H 'Content-Type: application/json' \\\n",
             address);
  fmt::print(
      "    -d '{{\"model\":\"{}\",\"stream\":true,"
      "\"messages\":[{{\"role\":\"user\",\"content\":\"Hello, who are you?\"}}]}}'\n\n",
      kModel);
  if (router.admin_address()) {
    const std::string admin = router.admin_address()->to_string();
    fmt::print(
        "Then look at  http://{0}/metrics  (and /ready), at what the workers' KV caches hold,\n"
        "http://{0}/v1/index, and at the line below for each request: which workers it went to,\n"
        "and what each phase took.\n\n",
        admin);
  }
  fmt::print("Ctrl-C ends everything.\n\n");
  std::fflush(stdout);
}

int refuse_demo(std::string_view what) {
  fmt::print(stderr, "baton demo: {}\n", what);
  return kCannotStart;
}

// Starts the workers and adds them to `settings`. The folder they say their addresses through is
// gone afterwards.
Result<void> start_workers(ChildProcesses& children, std::vector<config::Override>& settings) {
  const ScratchFolder folder;
  if (folder.path().empty()) return fail(Errc::Internal, "cannot make a temporary folder");
  std::vector<Simulated> sims;
  for (const char* role : {"prefill", "prefill", "decode", "decode"}) {
    sims.push_back({role, folder.path() / fmt::format("worker-{}", sims.size()),
                    folder.path() / fmt::format("events-{}", sims.size())});
    if (auto started = children.start(sim_arguments(sims.back())); !started) return started;
  }
  for (const Simulated& sim : sims) {
    const auto address = wait_for_address(sim, sim.ready_file, children);
    if (!address) return fail(address.error());
    const auto events = wait_for_address(sim, sim.events_file, children);
    if (!events) return fail(events.error());
    settings.push_back({"worker", fmt::format("{}=http://{},engine=vllm,role={},kv_events={}",
                                              kModel, *address, sim.role, *events)});
  }
  return {};
}

}  // namespace

CLI::App* add_demo_command(CLI::App& root, DemoOptions& options) {
  CLI::App* command = root.add_subcommand("demo", "Run the router with a small simulated fleet");
  command->add_option("--listen", options.listen, "Address to serve on; port 0 picks a free one")
      ->capture_default_str();
  command->add_option("--admin", options.admin, "Address for health, readiness and metrics")
      ->capture_default_str();
  return command;
}

int run_demo_command(const DemoOptions& options) {
  ChildProcesses children;
  std::vector<config::Override> settings{{"listen", options.listen}, {"admin", options.admin}};
  if (const auto started = start_workers(children, settings); !started) {
    return refuse_demo(started.error().message());
  }
  auto config = config::parse("", "command line", settings);
  if (!config) return refuse_demo(config.error().front().to_string());

  // The simulators' tokens are their own, so they are asked for them.
  for (config::Model& model : config->models) model.tokens.by = model::Tokenize::Engine;

  telemetry::Logger log(telemetry::Format::Human, telemetry::Level::Info);
  app::Router router(std::move(*config), {}, {}, log);
  if (const auto started = router.start(); !started) {
    log.flush();
    return refuse_demo(started.error().message() + " (see baton demo --help)");
  }
  tell(router);
  router.run();
  return 0;
}

}  // namespace baton::cli
