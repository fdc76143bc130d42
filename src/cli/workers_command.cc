// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/workers_command.h"

#include "cli/admin_client.h"
#include "cli/serve_command.h"
#include "cli/workers_table.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace baton::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kWorkersRefused = 1;
constexpr std::chrono::seconds kRedraw{1};

constexpr std::string_view kWorkersExamples = R"(Examples:
  baton workers                                    the table: who serves what, in which state, and why
  baton workers --watch                            the same, drawn again every second
  baton workers --json | jq '.workers[].state'     all that is known, for programs
  baton workers add --model demo --url http://10.0.0.5:8000 --engine vllm --role decode
  baton workers drain 10.0.0.5:8000                no new requests; running ones end normally
  baton workers undrain 10.0.0.5:8000
  baton workers remove 10.0.0.5:8000

A worker is named by its number, its id or its host:port. Those that the configuration file or etcd announces
can be drained here, but are changed and removed there. A worker that was added here is gone once it is drained.

The calls behind this, and keys for them, are explained in docs/admin-api.md.)";

struct Flag {
  std::string_view key;
  std::string_view meaning;
};
constexpr std::array kAddFlags{
    Flag{"model", "What clients call the model"},
    Flag{"url", "Where the engine listens: http://HOST:PORT"},
    Flag{"engine", "vllm, sglang or trtllm"},
    Flag{"role", "prefill, decode or aggregated"},
    Flag{"id", "What to call the worker, instead of host:port"},
    Flag{"namespace", "Prefill and decode workers hand over only within one"},
    Flag{"instance", "Which run of the engine it is"},
};

int refuse_workers(int code, std::string_view what) {
  fmt::print(stderr, "baton workers: {}\n", what);
  return code;
}

// A number, true, a list … where it reads as one, otherwise text.
OrderedJson value_of(std::string_view text) {
  OrderedJson value = OrderedJson::parse(text, nullptr, false);
  return value.is_discarded() ? OrderedJson(text) : value;
}

std::string new_worker(const WorkersOptions& options) {
  OrderedJson worker = OrderedJson::object();
  for (const auto& [key, value] : options.keys) worker[key] = value;
  for (const std::string& setting : options.settings) {
    const std::size_t sign = setting.find('=');
    worker[setting.substr(0, sign)] = sign == std::string::npos
                                          ? OrderedJson(true)
                                          : value_of(std::string_view(setting).substr(sign + 1));
  }
  return worker.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

TableStyle style_of_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return {};
  winsize size{};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return {.colour = std::getenv("NO_COLOR") == nullptr, .width = size.ws_col};
}

Result<AdminClient::Answer> ask(AdminClient& client, const WorkersOptions& options) {
  if (options.action == "add") return client.ask("POST", "/workers", new_worker(options));
  const std::string path = "/workers/" + percent_encoded(options.worker);
  if (options.action == "drain") return client.ask("POST", path + "/drain");
  if (options.action == "undrain") return client.ask("DELETE", path + "/drain");
  if (options.action == "remove") return client.ask("DELETE", path);
  return client.ask("GET", "/workers");
}

// The worker's state after an action on it.
std::string outcome_of(const std::string& answer) {
  const OrderedJson worker = OrderedJson::parse(answer, nullptr, false);
  if (!worker.is_object()) return answer;
  try {
    return fmt::format("worker {} ({}) of {} is {}; {} requests run on it\n",
                       worker.value("number", std::uint64_t{0}), worker.value("name", ""),
                       worker.value("model", ""), worker.value("state", ""),
                       worker.value("in_flight", std::int64_t{0}));
  } catch (const OrderedJson::exception&) {  // another program's answer
    return answer;
  }
}

// The text to print.
Result<std::string> look(AdminClient& client, const WorkersOptions& options) {
  const auto answer = body_of(ask(client, options));
  if (!answer) return fail(answer.error());
  if (options.json) return *answer + "\n";
  if (options.action.empty()) return workers_table(*answer, style_of_terminal());
  return outcome_of(*answer);
}

// Runs until the process is ended or standard output fails.
void watch(AdminClient& client, const WorkersOptions& options) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  while (true) {
    const auto seen = look(client, options);
    // From the top of an empty screen, and only then: no flicker.
    if (terminal) fmt::print("\x1b[H\x1b[2J");
    fmt::print("{}", seen ? *seen : seen.error().message() + "\n");
    if (!terminal && !options.json) fmt::print("\n");
    if (std::fflush(stdout) != 0) return;
    std::this_thread::sleep_for(kRedraw);
  }
}

void add_actions(CLI::App& command, WorkersOptions& options) {
  const auto action = [&command, &options](const std::string& name, const std::string& meaning) {
    CLI::App* const one = command.add_subcommand(name, meaning);
    one->callback([&options, name] { options.action = name; });
    one->fallthrough();  // --admin and the like may follow it
    return one;
  };
  CLI::App* const add = action("add", "Add a worker, or change one that was added here");
  for (const Flag& flag : kAddFlags) {
    add->add_option_function<std::string>(
           fmt::format("--{}", flag.key),
           [&options, key = std::string(flag.key)](const std::string& value) {
             options.keys[key] = value;
           },
           std::string(flag.meaning))
        ->required(flag.key == "model" || flag.key == "url");
  }
  add->add_option("--set", options.settings,
                  "KEY=VALUE for any other worker key of docs/configuration.md, e.g. "
                  "bootstrap_port=8998 or taints='[\"h100\"]'");
  for (const auto& [name, meaning] :
       {std::pair{"drain", "Send a worker no new requests"},
        std::pair{"undrain", "Send a worker new requests again"},
        std::pair{"remove", "Take back a worker that was added here"}}) {
    action(name, meaning)
        ->add_option("worker", options.worker, "Its number, id or host:port")
        ->required();
  }
}

}  // namespace

CLI::App* add_workers_command(CLI::App& root, WorkersOptions& options) {
  CLI::App* command =
      root.add_subcommand("workers", "Show and change the workers of a running router");
  add_admin_flags(*command, options.access);
  command->add_flag("--json", options.json, "Print what the router answers, as JSON");
  command->add_flag("--watch", options.watch, "Draw the table again every second; Ctrl-C ends it");
  command->footer(std::string(kWorkersExamples));
  command->require_subcommand(0, 1);
  add_actions(*command, options);
  return command;
}

int run_workers_command(const WorkersOptions& options) {
  auto client = client_of(options.access);
  if (!client) return refuse_workers(kCannotStart, client.error().message());
  if (options.watch && !options.action.empty())
    return refuse_workers(kCannotStart, "--watch goes with the table only");
  if (options.watch) {
    watch(*client, options);
    return 0;
  }
  const auto text = look(*client, options);
  if (!text) return refuse_workers(kWorkersRefused, text.error().message());
  fmt::print("{}", *text);
  return 0;
}

}  // namespace baton::cli
