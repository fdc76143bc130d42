// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/load.h"

#include "config/api_keys.h"
#include "config/document.h"
#include "config/fleet_sources.h"
#include "config/models.h"
#include "config/overrides.h"
#include "config/reader.h"
#include "config/wire_options.h"
#include "core/regular_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::config {
namespace {

// A smaller head has no room for an ordinary browser's or SDK's request.
Parsed<std::size_t> parse_header_size(std::string_view text) {
  auto size = parse_size(text);
  if (size && (*size < 1024 || *size > 16 * 1024 * 1024)) {
    return std::unexpected(fmt::format("{} is not from 1KiB to 16MiB", shown(text)));
  }
  return size;
}

Parsed<std::optional<std::size_t>> parse_memory(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "none") return std::size_t{0};
  auto size = parse_size(text);
  if (!size) return std::unexpected(size.error() + ", or auto or none");
  return *size;
}

// The slowest lets in one request in a quarter of an hour.
Parsed<double> parse_client_rate(std::string_view text) {
  constexpr double kSlowest = 0.001;
  auto rate = parse_fraction(text, 1'000'000);
  if (rate && *rate > 0 && *rate < kSlowest) {
    return std::unexpected(
        fmt::format("{} is neither 0 nor at least {} requests a second", shown(text), kSlowest));
  }
  return rate;
}

Parsed<LogFormat> parse_log_format(std::string_view text) {
  if (text == "json") return LogFormat::Json;
  if (text == "human") return LogFormat::Human;
  return std::unexpected(fmt::format("unknown {}; write json or human", shown(text)));
}

Parsed<LogLevel> parse_log_level(std::string_view text) {
  if (text == "debug") return LogLevel::Debug;
  if (text == "info") return LogLevel::Info;
  if (text == "warning") return LogLevel::Warning;
  if (text == "error") return LogLevel::Error;
  return std::unexpected(
      fmt::format("unknown {}; write debug, info, warning or error", shown(text)));
}

Parsed<ClientHandoffFields> parse_client_handoff_fields(std::string_view text) {
  if (text == "strip") return ClientHandoffFields::Strip;
  if (text == "refuse") return ClientHandoffFields::Refuse;
  return std::unexpected(fmt::format("unknown {}; write strip or refuse", shown(text)));
}

Parsed<int> parse_overload_status(std::string_view text) {
  if (text == "as_reported") return 0;
  if (text == "429") return 429;
  if (text == "503") return 503;
  return std::unexpected(fmt::format("unknown {}; write as_reported, 429 or 503", shown(text)));
}

void read_trust(const Node& root, const Section& section, Trust& trust, Problems& problems) {
  section.read("trust_routing_headers", trust.routing_headers, parse_boolean);
  const std::vector<Node>& sources = section.list("trusted_sources");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string at = fmt::format("trusted_sources[{}]", i);
    if (const auto one = Section::read_scalar(sources[i], at, parse_network, problems)) {
      trust.sources.push_back(*one);
    }
  }
  if (const Node* const list = root.find("trusted_sources")) {
    // An empty list would trust every source, which its author cannot mean.
    if (list->kind == Node::Kind::List && list->items.empty()) {
      problems.add(*list, "trusted_sources",
                   "is empty; name the sources, or remove it to trust every source");
    }
    if (!trust.routing_headers) {
      problems.add(*list, "trusted_sources",
                   "has no effect without trust_routing_headers: true; add that or remove it");
    }
  }
}

void read_timeouts(const Section& section, Timeouts& timeouts) {
  section.read("connect", timeouts.connect, parse_duration);
  section.read("first_byte", timeouts.first_byte, parse_duration);
  section.read("idle", timeouts.idle, parse_duration);
  section.read("request", timeouts.request, parse_duration_or_zero);
  section.read("client_header", timeouts.client_header, parse_duration);
  section.read("client_body", timeouts.client_body, parse_duration);
  section.read("client_idle", timeouts.client_idle, parse_duration);
  section.read("client_write", timeouts.client_write, parse_duration);
  section.read("handoff_grace", timeouts.handoff_grace, parse_duration);
}

void read_limits(const Section& section, Limits& limits) {
  section.read("header_bytes", limits.header_bytes, parse_header_size);
  section.read("body_bytes", limits.body_bytes, parse_size);
  section.read("response_bytes", limits.response_bytes, parse_size);
  section.read("memory", limits.memory, parse_memory);
  section.read("connections", limits.connections, number_within<1, 10'000'000>);
  section.read("idle_upstreams", limits.idle_upstreams, number_within<0, 100'000>);
  section.read("token_cache_bytes", limits.token_cache_bytes, parse_size);
}

void read_client_limits(const Section& section, ClientLimits& limits, Problems& problems) {
  section.read("client_connections", limits.connections, number_within<0, 1'000'000>);
  section.read("client_requests", limits.requests, number_within<0, 1'000'000>);
  section.read("client_rate", limits.rate, parse_client_rate);
  section.read("client_burst", limits.burst, number_within<0, 1'000'000>);
  if (limits.burst > 0 && section.find("client_rate") == nullptr) {
    problems.add(*section.find("client_burst"), section.path_of("client_burst"),
                 "has no effect without limits.client_rate; add that or remove it");
  }
}

void read_log(const Section& section, Log& log) {
  section.read("format", log.format, parse_log_format);
  section.read("level", log.level, parse_log_level);
  section.read("requests", log.requests, parse_boolean);
}

void read_tls(const Node& root, const Section& section, std::optional<Tls>& tls,
              Problems& problems) {
  const Node* const node = root.find("tls");
  if (node == nullptr || node->kind != Node::Kind::Map) return;
  Tls read;
  section.read("certificate", read.certificate, parse_path);
  section.read("key", read.key, parse_path);
  section.read("ciphers", read.ciphers, parse_name);
  for (const std::string_view needed : {"certificate", "key"}) {
    if (node->find(needed) != nullptr) continue;
    problems.add(*node, "tls",
                 fmt::format("has no {}; TLS needs both certificate and key", needed));
  }
  tls = std::move(read);
}

void check_admin(const Node& root, const Config& config, Problems& problems) {
  for (const std::string_view key : {"admin_keys", "admin_keys_file"}) {
    const Node* const given = root.find(key);
    if (given == nullptr || root.find("admin") != nullptr) continue;
    problems.add(*given, key, "has no effect without an admin address; add admin or remove it");
  }
  if (!config.admin || config.admin->port == 0 || *config.admin != config.listen) return;
  problems.add(*root.find("admin"), "admin",
               fmt::format("is the same address as listen ({}); give it a port of its own",
                           config.listen.to_string()));
}

// Requires one source of workers. A source that is given but wrong is reported elsewhere.
void check_sources(const Node& root, Problems& problems) {
  const auto given = [&](std::string_view key) {
    const Node* const node = root.find(key);
    return node != nullptr && (node->kind == Node::Kind::Scalar || !node->items.empty());
  };
  if (given("models") || given("etcd") || given("admin")) return;
  problems.add(Node{}, "models",
               "nothing to serve: list a model, use --worker NAME=URL, or give etcd.endpoints or "
               "an admin address from which workers come");
}

// `flag_gives_worker`: so that a wrong flag is not also reported as a missing one.
Config read_config(const Node& root, bool flag_gives_worker, Problems& problems) {
  Config config;
  const Section section(root, "", "", problems);
  if (root.kind == Node::Kind::Scalar || root.kind == Node::Kind::List) return config;
  section.read("listen", config.listen, parse_listen_address);
  section.read("admin", config.admin, parse_listen_address);
  section.read("threads", config.threads, number_within<0, 1024>);
  section.read("cpu_threads", config.cpu_threads, number_within<0, 1024>);
  section.read("shutdown_grace", config.shutdown_grace, parse_duration);
  section.read("restart_timeout", config.restart_timeout, parse_duration);
  read_tls(root, section.section("tls"), config.tls, problems);
  read_trust(root, section, config.trust, problems);
  section.read("client_handoff_fields", config.client_handoff_fields, parse_client_handoff_fields);
  config.strip_client_fields = read_stripped_fields(section, problems);
  config.strip_client_headers = read_stripped_headers(section, problems);
  read_trtllm_auth(section, config.trtllm_auth);
  section.read("response_headers", config.response_headers, parse_boolean);
  section.read("decisions", config.decisions, number_within<0, 1'000'000>);
  section.read("overload_status", config.overload_status, parse_overload_status);
  read_timeouts(section.section("timeouts"), config.timeouts);
  const Section limits = section.section("limits");
  read_limits(limits, config.limits);
  read_client_limits(limits, config.client_limits, problems);
  read_log(section.section("log"), config.log);
  config.api_keys = read_key_list(section, "api_keys", "to let all clients in", problems);
  config.admin_keys =
      read_key_list(section, "admin_keys", "to be asked from loopback only", problems);
  read_fleet_sources(root, section, config, problems);
  config.models = read_models(section, problems);
  check_admin(root, config, problems);
  if (!flag_gives_worker) check_sources(root, problems);
  return config;
}

}  // namespace

std::string Problem::to_string() const {
  std::string text = file;
  if (line > 0) text += fmt::format(":{}", line);
  if (!path.empty()) text += ": " + path;
  return text + ": " + message;
}

std::expected<Config, std::vector<Problem>> parse(std::string_view yaml, std::string_view file,
                                                  std::span<const Override> overrides) {
  auto root = read_document(yaml, file);
  if (!root) return std::unexpected(std::vector{std::move(root.error())});
  Problems problems(file);
  apply_overrides(*root, overrides, problems);
  const bool has_worker =
      std::ranges::find(overrides, "worker", &Override::path) != overrides.end();
  Config config = read_config(*root, has_worker, problems);
  if (problems.count() > 0) return std::unexpected(problems.take());
  return config;
}

std::expected<Config, std::vector<Problem>> load(const std::string& file,
                                                 std::span<const Override> overrides) {
  const auto cannot = [&](std::string_view why) {
    return std::unexpected(std::vector{Problem{
        file, 0, "", fmt::format("cannot be read: {}; check the path given to --config", why)}});
  };
  const auto text = read_regular_file(file, kMaxBytes);
  if (!text) return cannot(text.error().message());
  if (!*text) return cannot("No such file or directory");
  return parse(**text, file, overrides);
}

}  // namespace baton::config
