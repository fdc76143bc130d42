// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/register_command.h"

#include "app/logging.h"
#include "cli/serve_command.h"
#include "config/announcement.h"
#include "config/load.h"
#include "config/values.h"
#include "core/ready_file.h"
#include "fleet/etcd_source.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "tools/sidecar/registrar.h"

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <expected>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

namespace baton::cli {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kRegisterExamples =
    R"(Waits until the engine is healthy, asks it what it is (what it denies ends this with exit code 2), and
announces it in etcd for as long as it stays healthy. SIGTERM drains: no new requests, then, when
the running ones have ended, it is withdrawn.

Examples:
  Beside a vLLM server on this host, e.g. as a systemd unit bound to the engine's:
    baton register --etcd http://10.0.0.9:2379 --engine vllm --role decode \
        --engine-url http://127.0.0.1:8000 --advertise-url http://10.0.0.2:8000

  As a Kubernetes sidecar; the pod's address and uid come from the downward API:
    baton register --etcd https://etcd:2379 --etcd.ca /etc/etcd/ca.pem --engine sglang \
        --role prefill --engine-url http://127.0.0.1:30000 \
        --advertise-url http://$(POD_IP):30000 --instance $(POD_UID) --set topology=rack=r7

The announcement stands under PREFIX + model/role/instance, with a lease of --ttl. Whole manifests
and units: docs/register.md. Every worker key that --set takes: docs/configuration.md.)";

// The parts of the configuration that matter here, by the flags that they have in `baton serve`.
bool is_of_use(const config::Key& key) {
  return !key.flag.empty() && key.path != "etcd.linger" && key.path != "log.requests" &&
         (key.path.starts_with("etcd.") || key.path.starts_with("log."));
}

// Everything a command line says, checked.
struct Order {
  config::Etcd etcd;
  config::Log log;
  sidecar::RegistrarOptions registrar;
};

using Problems = std::vector<std::string>;

void add_problem(Problems& problems, std::string_view flag, std::string_view what) {
  problems.push_back(fmt::format("command line: {}: {}", flag, what));
}

void read_settings(const RegisterOptions& options, Order& order, Problems& problems) {
  std::vector<config::Override> overrides;
  for (const auto& [path, value] : options.settings) overrides.push_back({path, value});
  auto config = config::parse("", "command line", overrides);
  if (!config) {
    for (const config::Problem& problem : config.error()) problems.push_back(problem.to_string());
    return;
  }
  if (config->etcd) order.etcd = *std::move(config->etcd);
  order.log = config->log;
}

milliseconds read_duration(std::string_view flag, std::string_view text, milliseconds least,
                           Problems& problems) {
  const auto time =
      least.count() == 0 ? config::parse_duration_or_zero(text) : config::parse_duration(text);
  if (!time) {
    add_problem(problems, flag, time.error());
  } else if (*time < least) {
    add_problem(problems, flag,
                fmt::format("{} is too short; take at least {}ms", text, least.count()));
  }
  return time.value_or(least);
}

bool is_list(std::string_view worker_key) {
  return std::ranges::any_of(config::keys(), [worker_key](const config::Key& key) {
    return key.type == "list" && key.path == fmt::format("models[].workers[].{}", worker_key);
  });
}

// One key of the document; a dot leads into a map, commas separate the entries of a list.
void put(json& document, std::string_view key, std::string_view value) {
  json* map = &document;
  std::string_view rest = key;
  for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    map = &(*map)[std::string(rest.substr(0, dot))];
    if (!map->is_object()) *map = json::object();
    rest.remove_prefix(dot + 1);
  }
  json& target = (*map)[std::string(rest)];
  if (!is_list(key)) {
    target = value;
    return;
  }
  target = json::array();
  for (const auto part : std::views::split(value, ',')) target.push_back(std::string_view(part));
}

// The worker that the flags describe, in the form in which workers are announced.
json worker_document(const RegisterOptions& options, Problems& problems) {
  json document = json::object();
  document["url"] = options.advertise_url.empty() ? options.engine_url : options.advertise_url;
  for (const auto& [key, value] : options.worker) put(document, key, value);
  for (const std::string& text : options.further) {
    const auto equals = text.find('=');
    const std::string key = text.substr(0, equals);
    if (equals == text.npos || key.empty()) {
      add_problem(problems, "--set",
                  fmt::format("{} must be a key and a value, as taints=spot", config::shown(text)));
    } else if (key == "draining" || document.contains(key)) {
      add_problem(problems, fmt::format("--set {}", key),
                  "is said already, or not for you to say; remove it");
    } else {
      put(document, key, text.substr(equals + 1));
    }
  }
  return document;
}

void read_worker(const RegisterOptions& options, Order& order, Problems& problems) {
  auto engine = config::parse_worker_url(options.engine_url);
  if (!engine) return add_problem(problems, "--engine-url", engine.error());
  order.registrar.engine = *std::move(engine);

  json document = worker_document(options, problems);
  const bool knows_model = document.contains("model");
  if (!knows_model) document["model"] = "the engine's";
  order.registrar.introduction.asks_data_parallel_size = !document.contains("data_parallel_size");
  auto announcement = config::parse_announcement(
      document.dump(-1, ' ', false, json::error_handler_t::replace), "command line");
  if (!announcement) {
    for (const auto& problem : announcement.error()) problems.push_back(problem.to_string());
    return;
  }
  if (!knows_model) announcement->model.clear();
  order.registrar.introduction.announcement = *std::move(announcement);
}

std::expected<Order, Problems> read(const RegisterOptions& options) {
  Order order;
  Problems problems;
  read_settings(options, order, problems);
  read_worker(options, order, problems);
  sidecar::RegistrarOptions& registrar = order.registrar;
  registrar.prefix = order.etcd.prefix;
  // etcd gives no shorter leases.
  registrar.ttl =
      std::chrono::ceil<seconds>(read_duration("--ttl", options.ttl, seconds(2), problems));
  registrar.health_interval =
      read_duration("--health-interval", options.health_interval, milliseconds(100), problems);
  registrar.drain = read_duration("--drain", options.drain, milliseconds(0), problems);
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return order;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Role. The process: its one thread, its signals, and the registrar.
// Confinement. The main thread.
class Sidecar {
 public:
  Sidecar(Order order, std::string ready_file, telemetry::Logger& log)
      : log_(log),
        ready_file_(std::move(ready_file)),
        address_(order.registrar.introduction.announcement.spec.endpoint),
        tasks_(io_, [this](std::exception_ptr thrown) { report(thrown); }),
        registrar_(
            io_, deadlines_, tasks_, fleet::client_options(order.etcd), std::move(order.registrar),
            [this] { write_ready_file_once(); }, log),
        signals_(io_, SIGINT, SIGTERM) {
    std::signal(SIGPIPE, SIG_IGN);
  }

  int run() {
    if (is_loopback(address_.host)) {
      log_.warning("loopback_announced", {{"url", address_.to_string()}});
    }
    await_signal();
    tasks_.spawn(live());
    io_.run();
    return exit_code_;
  }

 private:
  boost::asio::awaitable<void> live() {
    const auto outcome = co_await registrar_.run();
    if (outcome) {
      exit_code_ = 0;
    } else {
      log_.error("engine_refused", {{"error", outcome.error()}});
    }
    end();
  }

  void await_signal() {
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (error) return;
      registrar_.leave();
      await_signal();
    });
  }

  void write_ready_file_once() {
    const std::string path = std::exchange(ready_file_, {});
    if (path.empty()) return;
    if (const auto written = write_ready_file(path, address_.to_string()); !written) {
      log_.error("ready_file", {{"error", written.error().message()}});
    }
  }

  void report(const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& problem) {
      log_.error("task_failed", {{"error", problem.what()}});
    }
    // The supervisor starts another process; the lease expires by itself.
    io_.stop();
  }

  void end() {
    boost::system::error_code ignored;
    signals_.cancel(ignored);
    deadlines_.stop();
  }

  telemetry::Logger& log_;
  std::string ready_file_;
  model::Endpoint address_;
  boost::asio::io_context io_{1};
  net::Deadlines deadlines_{io_};
  net::TaskGroup tasks_;
  sidecar::Registrar registrar_;
  boost::asio::signal_set signals_;
  int exit_code_ = kCannotStart;
};

}  // namespace

CLI::App* add_register_command(CLI::App& root, RegisterOptions& options) {
  CLI::App* command =
      root.add_subcommand("register", "Announce an engine server in etcd (a sidecar)");
  const auto worker = [&](const char* flag, const char* key, const char* help) {
    return command->add_option_function<std::string>(
        flag, [&options, key](const std::string& value) { options.worker[key] = value; }, help);
  };
  command
      ->add_option("--engine-url", options.engine_url,
                   "Where this finds the engine: http://host:port")
      ->required();
  command->add_option("--advertise-url", options.advertise_url,
                      "Where routers find it, as http://POD_IP:8000 [--engine-url]");
  worker("--engine", "engine", "Which engine it runs: vllm, sglang or trtllm")->required();
  worker("--role", "role", "Which part of a request it takes: prefill, decode or aggregated")
      ->required();
  worker("--model", "model", "What clients call the model [the first that the engine names]");
  worker("--namespace", "namespace",
         "Prefill and decode workers hand over only within one [default]");
  worker("--id", "id", "What requests and answers call the worker [host:port]");
  worker("--instance", "instance",
         "Which run of the engine this is; no other worker may have the same [made up]");
  command->add_option("--set", options.further,
                      "Another worker key of the configuration: key=value, as taints=spot,a100");
  command->add_option("--ttl", options.ttl, "How long etcd keeps the worker without a sign of life")
      ->capture_default_str();
  command
      ->add_option("--health-interval", options.health_interval,
                   "How often the engine is asked for its health")
      ->capture_default_str();
  command
      ->add_option("--drain", options.drain,
                   "After SIGTERM: how long its running requests may take to end")
      ->capture_default_str();
  command->add_option("--ready-file", options.ready_file,
                      "Write the advertised host:port here once registered");
  for (const config::Key& key : config::keys()) {
    if (!is_of_use(key)) continue;
    CLI::Option* option = command->add_option_function<std::string>(
        std::string(key.flag),
        [&options, path = std::string(key.path)](const std::string& value) {
          options.settings[path] = value;
        },
        fmt::format("{} [{}]", key.meaning, key.def));
    option->type_name(std::string(key.type))->group("Configuration, as of baton serve");
    if (key.path == "etcd.endpoints") option->required();
  }
  command->footer(std::string(kRegisterExamples));
  return command;
}

int run_register_command(const RegisterOptions& options) {
  auto order = read(options);
  if (!order) {
    for (const std::string& problem : order.error()) fmt::print(stderr, "{}\n", problem);
    fmt::print(stderr, "baton: the command line cannot be used; nothing was registered\n");
    return kCannotStart;
  }
  telemetry::Logger log = app::make_logger(order->log);
  return Sidecar(*std::move(order), options.ready_file, log).run();
}

}  // namespace baton::cli
