// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace baton::config {
namespace {

using model::Engine;
using model::HandoffMode;
using model::Role;
using model::WorkerSpec;

// Prefix of the taints derived from `topology`; a configured taint of that name would contradict
// it.
constexpr std::string_view kTopologyTaint = "baton.topology/";

Parsed<Engine> parse_engine(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"vllm", "sglang", "trtllm"};
  return parse_choice<Engine>(text, model::parse_engine, kNames);
}

Parsed<Role> parse_role(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"prefill", "decode", "aggregated"};
  return parse_choice<Role>(text, model::parse_role, kNames);
}

Parsed<HandoffMode> parse_handoff(std::string_view text) {
  constexpr std::array<std::string_view, 6> kNames{
      "nixl_pull", "nixl_push", "mooncake", "bootstrap", "context_first", "generation_first"};
  return parse_choice<HandoffMode>(text, model::parse_handoff_mode, kNames);
}

Parsed<model::Enforcement> parse_enforcement(std::string_view text) {
  constexpr std::array<std::string_view, 2> kNames{"required", "preferred"};
  return parse_choice<model::Enforcement>(text, model::parse_enforcement, kNames);
}

template <std::uint32_t kMost>
Parsed<std::uint32_t> parse_count(std::string_view text) {
  const auto value = parse_number(text, 1, kMost);
  if (!value) return std::unexpected(value.error());
  return static_cast<std::uint32_t>(*value);
}

Parsed<std::uint64_t> parse_total(std::string_view text) {
  return parse_number(text, 1, 1'000'000'000'000);
}

Parsed<std::string> parse_taint(std::string_view text) {
  if (text.starts_with(kTopologyTaint)) {
    return std::unexpected(fmt::format("{} is said by topology: [{}]", shown(text),
                                       text.substr(kTopologyTaint.size())));
  }
  return parse_name(text);
}

Parsed<std::string> parse_place(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
    return std::unexpected(fmt::format("{} must be domain=value, as rack=r7", shown(text)));
  }
  return parse_name(text);
}

template <class Parse>
std::vector<std::string> read_texts(const Section& section, std::string_view key, Parse parse,
                                    Problems& problems) {
  std::vector<std::string> texts;
  constexpr std::size_t kMost = 256;  // looked through for each request
  const std::vector<Node>& nodes = section.list(key);
  if (nodes.size() > kMost) {
    problems.add(nodes[kMost], section.path_of(key),
                 fmt::format("has more than {} entries; remove some", kMost));
    return texts;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", section.path_of(key), i);
    auto text = Section::read_scalar(nodes[i], at, parse, problems);
    if (!text) continue;
    if (std::ranges::find(texts, *text) != texts.end()) {
      problems.add(nodes[i], at, fmt::format("{} stands twice; remove one", shown(*text)));
    }
    texts.push_back(*std::move(text));
  }
  return texts;
}

std::string_view domain_of(std::string_view place) { return place.substr(0, place.find('=')); }

void check_topology(const Node& node, const Section& section, const WorkerSpec& spec,
                    Problems& problems) {
  for (std::size_t i = 0; i < spec.topology.size(); ++i) {
    const auto first = std::ranges::find(spec.topology, domain_of(spec.topology[i]), domain_of);
    if (first == spec.topology.begin() + static_cast<std::ptrdiff_t>(i) ||
        *first == spec.topology[i]) {
      continue;
    }
    problems.add(*node.find("topology"), section.path_of("topology"),
                 fmt::format("a worker is in one {}, not in two; keep {} or {}", domain_of(*first),
                             *first, spec.topology[i]));
  }
}

void read_transfer_domain(const Node& node, const Section& section, WorkerSpec& spec,
                          Problems& problems) {
  const std::size_t before = problems.count();
  model::TransferDomain domain;
  std::optional<double> weight;
  section.read("transfer_domain", domain.name, parse_name);
  section.read("transfer_enforcement", domain.enforcement, parse_enforcement);
  section.read("transfer_weight", weight, parse_weight);
  if (problems.count() != before) return;
  const auto say = [&](std::string_view key, std::string message) {
    problems.add(*node.find(key), section.path_of(key), std::move(message));
  };

  if (domain.name.empty()) {
    for (const std::string_view key : {"transfer_enforcement", "transfer_weight"}) {
      if (node.find(key) != nullptr) say(key, "has no transfer_domain to go with; add one");
    }
    return;
  }
  if (spec.role != Role::Prefill) {
    return say("transfer_domain", "is only for prefill workers; remove it");
  }
  const auto place = std::ranges::find(spec.topology, domain.name, domain_of);
  if (place == spec.topology.end()) {
    return say("transfer_domain",
               fmt::format("topology does not say in which {0} the worker is; add {0}=… to it",
                           domain.name));
  }
  const bool preferred = domain.enforcement == model::Enforcement::Preferred;
  if (preferred && !weight) {
    return say("transfer_enforcement", "preferred needs a transfer_weight; add one, as 1.0");
  }
  if (!preferred && weight) {
    return say("transfer_weight",
               "is only for transfer_enforcement: preferred; remove it or prefer");
  }
  domain.value = place->substr(domain.name.size() + 1);
  domain.weight = weight.value_or(0);
  spec.transfer_domain = std::move(domain);
}

void read_nixl(const Node& node, const Section& section, WorkerSpec& spec, Problems& problems) {
  const Node* const map = node.find("nixl");
  if (map == nullptr) return;
  const std::size_t before = problems.count();
  model::NixlPeer peer;
  const Section nixl = section.section("nixl");
  nixl.read("engine_id", peer.engine_id, parse_name);
  nixl.read("side_channel", peer.side_channel, parse_peer_address);
  nixl.read("tensor_parallel_size", peer.tensor_parallel_size, parse_count<1024>);
  nixl.read("pipeline_parallel_size", peer.pipeline_parallel_size, parse_count<1024>);
  if (problems.count() != before) return;
  for (const std::string_view needed : {"engine_id", "side_channel"}) {
    if (map->find(needed) != nullptr) continue;
    problems.add(*map, section.path_of("nixl"),
                 fmt::format("has no {}; give engine_id and side_channel, or leave nixl out: then "
                             "the worker is asked",
                             needed));
  }
  spec.nixl = std::move(peer);
}

void read_kv_feed(const Node& node, const Section& section, WorkerSpec& spec, Problems& problems) {
  const std::size_t before = problems.count();
  model::KvFeed feed;
  const Node* const events = node.find("kv_events");
  if (events != nullptr && events->text != "off")
    section.read("kv_events", feed.events, parse_zmq_endpoint);
  section.read("kv_replay", feed.replay, parse_zmq_endpoint);
  section.read("kv_topic", feed.topic, parse_name);
  section.read("block_size", spec.block_size, parse_count<65536>);
  section.read("kv_blocks", spec.kv_blocks, parse_total);
  section.read("max_batched_tokens", spec.max_batched_tokens, parse_total);
  if (problems.count() != before) return;
  if (events != nullptr) spec.kv_feed = std::move(feed);
  for (const std::string_view key : {"kv_replay", "kv_topic"}) {
    const Node* const given = node.find(key);
    if (given == nullptr || (spec.kv_feed && !spec.kv_feed->events.empty())) continue;
    problems.add(*given, section.path_of(key),
                 "has no kv_events to go with; add that, as kv_events: tcp://host:5557");
  }
  if (spec.data_parallel_size == 1 || !spec.kv_feed) return;
  for (const auto& [key, endpoint] :
       {std::pair<std::string_view, std::string_view>{"kv_events", spec.kv_feed->events},
        {"kv_replay", spec.kv_feed->replay}}) {
    if (!endpoint.starts_with("ipc://")) continue;
    problems.add(*node.find(key), section.path_of(key),
                 "cannot be ipc:// for a worker with several ranks, which have a port each; write "
                 "tcp://host:port");
  }
}

void check_handoff(const Node& node, const Section& section, const WorkerSpec& spec,
                   Problems& problems) {
  const auto say = [&](std::string_view key, std::string message) {
    problems.add(*node.find(key), section.path_of(key), std::move(message));
  };
  if (spec.handoff && model::engine_of(*spec.handoff) != spec.engine) {
    return say("handoff",
               fmt::format("{} is a mode of {}, but the worker runs {}; write {}",
                           to_string(*spec.handoff), to_string(model::engine_of(*spec.handoff)),
                           to_string(spec.engine), to_string(model::default_mode(spec.engine))));
  }
  if (spec.handoff && spec.role == Role::Aggregated) {
    say("handoff", "is only for prefill and decode workers; remove it");
  }
  if (spec.nixl && (spec.mode() != HandoffMode::NixlPush || spec.role == Role::Aggregated)) {
    say("nixl", "is only for workers with handoff: nixl_push; remove it");
  }
  const bool meets = spec.role == Role::Prefill && (spec.mode() == HandoffMode::Bootstrap ||
                                                    spec.mode() == HandoffMode::Mooncake);
  if (spec.bootstrap_port && !meets) {
    say("bootstrap_port",
        "is only for SGLang prefill workers and those with handoff: mooncake; remove it");
  }
}

}  // namespace

std::optional<WorkerSpec> read_worker(const Node& node, const Section& section,
                                      Problems& problems) {
  const std::size_t before = problems.count();
  if (!section.is_map()) return std::nullopt;
  if (node.find("url") == nullptr) {
    problems.add(node, section.path(), "has no url; write url: http://host:port");
  }
  WorkerSpec spec;
  section.read("url", spec.endpoint, parse_worker_url);
  section.read("engine", spec.engine, parse_engine);
  section.read("role", spec.role, parse_role);
  section.read("id", spec.name, parse_worker_id);
  section.read("namespace", spec.name_space, parse_worker_id);
  section.read("instance", spec.instance, parse_worker_id);
  section.read("handoff", spec.handoff, parse_handoff);
  section.read("bootstrap_port", spec.bootstrap_port, parse_port);
  section.read("data_parallel_size", spec.data_parallel_size, parse_count<1024>);
  spec.taints = read_texts(section, "taints", parse_taint, problems);
  spec.topology = read_texts(section, "topology", parse_place, problems);
  if (problems.count() != before) return std::nullopt;
  check_topology(node, section, spec, problems);
  read_transfer_domain(node, section, spec, problems);
  read_nixl(node, section, spec, problems);
  read_kv_feed(node, section, spec, problems);
  check_handoff(node, section, spec, problems);
  return spec;
}

}  // namespace baton::config
