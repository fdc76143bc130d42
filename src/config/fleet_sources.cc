// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/fleet_sources.h"

#include "config/secret_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace baton::config {
namespace {

Parsed<EtcdServer> parse_etcd_server(std::string_view text) {
  auto url = parse_server_url(text);
  if (!url) return std::unexpected(std::move(url.error()));
  return EtcdServer{std::move(url->endpoint), url->tls};
}

Parsed<std::string> parse_prefix(std::string_view text) {
  // Without the last '/', /baton/workers would also mean /baton/workers-old/….
  if (!text.starts_with('/') || !text.ends_with('/')) {
    return std::unexpected(
        fmt::format("{} must begin and end with '/', as /baton/workers/", shown(text)));
  }
  return parse_name(text);
}

Parsed<std::string> read_password(std::string_view file) {
  auto path = parse_path(file);
  if (!path) return path;
  auto password = read_secret_file(*path);
  if (!password) return password;
  if (password->ends_with('\n')) password->pop_back();
  if (password->ends_with('\r')) password->pop_back();
  if (password->empty()) return std::unexpected("names a file without a password; write it there");
  if (password->find('\n') != password->npos) {
    return std::unexpected("names a file with several lines; it must hold the password alone");
  }
  return password;
}

Parsed<std::size_t> parse_failures(std::string_view text) { return parse_number(text, 1, 1000); }

std::vector<EtcdServer> read_servers(const Node& etcd, const Section& section, Problems& problems) {
  std::vector<EtcdServer> servers;
  const std::vector<Node>& nodes = section.list("endpoints");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", section.path_of("endpoints"), i);
    auto server = Section::read_scalar(nodes[i], at, parse_etcd_server, problems);
    if (!server) continue;
    if (std::ranges::find(servers, server->endpoint, &EtcdServer::endpoint) != servers.end()) {
      problems.add(nodes[i], at,
                   fmt::format("{} stands twice; remove one", server->endpoint.to_string()));
    }
    servers.push_back(*std::move(server));
  }
  const Node* const list = etcd.find("endpoints");
  if (list == nullptr || (list->kind == Node::Kind::List && nodes.empty())) {
    problems.add(list == nullptr ? etcd : *list, section.path_of("endpoints"),
                 "names no etcd server; write endpoints: [\"http://host:2379\"]");
  }
  return servers;
}

// Two keys of which neither means anything alone.
void check_pair(const Node& map, const Section& section, std::string_view one,
                std::string_view other, Problems& problems) {
  for (const auto& [given, missing] : {std::pair(one, other), std::pair(other, one)}) {
    const Node* const node = map.find(given);
    if (node == nullptr || map.find(missing) != nullptr) continue;
    problems.add(*node, section.path_of(given),
                 fmt::format("needs {}; add that or remove it", section.path_of(missing)));
  }
}

void read_etcd(const Node& root, const Section& parent, std::optional<Etcd>& etcd,
               Problems& problems) {
  const Section section = parent.section("etcd");
  const Node* const node = root.find("etcd");
  if (node == nullptr || node->kind != Node::Kind::Map) return;
  Etcd read;
  const std::size_t before = problems.count();
  read.endpoints = read_servers(*node, section, problems);
  const bool servers_known = problems.count() == before;
  section.read("prefix", read.prefix, parse_prefix);
  section.read("user", read.user, parse_name);
  section.read("password_file", read.password, read_password);
  section.read("ca", read.ca, parse_path);
  section.read("certificate", read.certificate, parse_path);
  section.read("key", read.key, parse_path);
  section.read("timeout", read.timeout, parse_duration);
  section.read("linger", read.linger, parse_duration_or_zero);
  check_pair(*node, section, "user", "password_file", problems);
  check_pair(*node, section, "certificate", "key", problems);
  const bool tls = std::ranges::any_of(read.endpoints, &EtcdServer::tls);
  for (const std::string_view key : {"ca", "certificate", "key"}) {
    const Node* const given = node->find(key);
    if (given == nullptr || tls || !servers_known) continue;
    problems.add(*given, section.path_of(key),
                 "has no effect without an https:// endpoint; write https:// or remove it");
  }
  etcd = std::move(read);
}

void read_health(const Node& root, const Section& parent, Health& health, Problems& problems) {
  const Section section = parent.section("health");
  const std::size_t before = problems.count();
  section.read("interval", health.interval, parse_duration);
  section.read("timeout", health.timeout, parse_duration);
  section.read("failures", health.failures, parse_failures);
  section.read("backoff", health.backoff, parse_duration);
  section.read("backoff_max", health.backoff_max, parse_duration);
  if (problems.count() != before || health.backoff <= health.backoff_max) return;
  const Node& map = *root.find("health");
  const Node* const backoff = map.find("backoff");
  const std::string_view key = backoff == nullptr ? "backoff_max" : "backoff";
  problems.add(*map.find(key), section.path_of(key),
               fmt::format("backoff ({}ms) is longer than backoff_max ({}ms); change one of them",
                           health.backoff.count(), health.backoff_max.count()));
}

void read_canary(const Node& root, const Section& parent, Canary& canary, Problems& problems) {
  const Section section = parent.section("canary");
  section.read("idle", canary.idle, parse_duration);
  section.read("timeout", canary.timeout, parse_duration);
  section.read("failures", canary.failures, parse_failures);
  const Node* const map = root.find("canary");
  if (map == nullptr || map->kind != Node::Kind::Map || map->find("idle") != nullptr) return;
  for (const std::string_view key : {"timeout", "failures"}) {
    const Node* const given = map->find(key);
    if (given == nullptr) continue;
    problems.add(*given, section.path_of(key),
                 "has no effect without canary.idle; add that, as idle: 30s, or remove it");
  }
}

void read_probe(const Node& root, const Section& parent, Probe& probe, Problems& problems) {
  const Section section = parent.section("probe");
  section.read("enabled", probe.enabled, parse_boolean);
  section.read("self_test", probe.self_test, parse_boolean);
  if (probe.enabled || !probe.self_test) return;
  problems.add(*root.find("probe")->find("self_test"), section.path_of("self_test"),
               "needs probe.enabled: true; enable that or remove it");
}

std::optional<IndexSource> index_source_of(std::string_view text) {
  if (text == "auto") return IndexSource::Auto;
  if (text == "events") return IndexSource::Events;
  if (text == "decisions") return IndexSource::Decisions;
  if (text == "off") return IndexSource::Off;
  return std::nullopt;
}

Parsed<IndexSource> parse_index_source(std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames{"auto", "events", "decisions", "off"};
  return parse_choice<IndexSource>(text, index_source_of, kNames);
}

Parsed<std::size_t> parse_blocks(std::string_view text) {
  return parse_number(text, 1'000, 1'000'000'000);
}

void read_kv_index(const Node& root, const Section& parent, KvIndex& index, Problems& problems) {
  const Section section = parent.section("kv_index");
  section.read("source", index.source, parse_index_source);
  section.read("blocks", index.blocks, parse_blocks);
  section.read("decision_ttl", index.decision_ttl, parse_duration);
  section.read("prediction_ttl", index.prediction_ttl, parse_duration_or_zero);
  section.read("silence", index.silence, parse_duration);
  section.read("snapshot", index.snapshot, parse_path);
  section.read("snapshot_interval", index.snapshot_interval, parse_duration);
  const Node* const map = root.find("kv_index");
  if (map == nullptr || !index.snapshot.empty()) return;
  if (const Node* const given = map->find("snapshot_interval")) {
    problems.add(*given, section.path_of("snapshot_interval"),
                 "has no effect without kv_index.snapshot; add that or remove it");
  }
}

}  // namespace

void read_fleet_sources(const Node& root, const Section& section, Config& config,
                        Problems& problems) {
  read_etcd(root, section, config.etcd, problems);
  read_health(root, section, config.health, problems);
  read_canary(root, section, config.canary, problems);
  read_probe(root, section, config.probe, problems);
  read_kv_index(root, section, config.kv_index, problems);
}

}  // namespace baton::config
