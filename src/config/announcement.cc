// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/announcement.h"

#include "config/document.h"
#include "config/reader.h"
#include "config/workers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <utility>

namespace baton::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> kOwnKeys{"model", "draining"};
// Our deepest key is at 2. Writing is recursive.
constexpr int kMaxPatchDepth = 16;

void add_transfer_domain(const model::TransferDomain& domain, Json& json) {
  const bool preferred = domain.enforcement == model::Enforcement::Preferred;
  json["transfer_domain"] = domain.name;
  json["transfer_enforcement"] = preferred ? "preferred" : "required";
  if (preferred) json["transfer_weight"] = domain.weight;
}

Json nixl_json(const model::NixlPeer& peer) {
  return {{"engine_id", peer.engine_id},
          {"side_channel", peer.side_channel.to_string()},
          {"tensor_parallel_size", peer.tensor_parallel_size},
          {"pipeline_parallel_size", peer.pipeline_parallel_size}};
}

void add_kv_feed(const model::KvFeed& feed, Json& json) {
  json["kv_events"] = feed.events.empty() ? "off" : feed.events;
  if (!feed.replay.empty()) json["kv_replay"] = feed.replay;
  if (!feed.topic.empty()) json["kv_topic"] = feed.topic;
}

// Text that is no JSON, or has a number that fits none of our types, is reported with the key it
// stands under.
std::expected<Json, Problem> read_patch(std::string_view text, std::string_view origin) {
  std::string key;
  bool deep = false;
  const auto follow = [&](int depth, Json::parse_event_t event, const Json& read) {
    if (event == Json::parse_event_t::key && depth == 1) key = read.get_ref<const std::string&>();
    deep = deep || depth > kMaxPatchDepth;
    return depth <= kMaxPatchDepth;
  };
  Json patch = Json::parse(text, follow, false);
  const auto problem = [&](std::string path, std::string message) {
    return std::unexpected(Problem{std::string(origin), 0, std::move(path), std::move(message)});
  };
  if (deep) return problem(std::move(key), "is nested too deeply");
  if (patch.is_discarded()) {
    return problem(std::move(key), "cannot be read: is it JSON, with numbers of a common size?");
  }
  if (!patch.is_object()) return problem("", "is no JSON object; write the keys that change");
  return patch;
}

}  // namespace

std::expected<model::Announcement, std::vector<Problem>> parse_announcement(
    std::string_view text, std::string_view origin) {
  Problems problems(origin);
  if (text.size() > kMaxAnnouncementBytes) {
    problems.add(Node{}, "", "is larger than 64 KiB; a worker needs far less");
    return std::unexpected(problems.take());
  }
  const auto root = read_json_or_yaml(text, origin);
  if (!root) return std::unexpected(std::vector{root.error()});
  const Section section(*root, "", kWorkerPattern, problems, kOwnKeys);
  model::Announcement announcement;
  if (section.is_map()) {
    section.read("model", announcement.model, parse_name);
    section.read("draining", announcement.draining, parse_boolean);
    if (root->find("model") == nullptr) {
      problems.add(*root, "", "has no model; write model: and what clients call it");
    }
  }
  auto spec = read_worker(*root, section, problems);
  if (problems.count() > 0) return std::unexpected(problems.take());
  announcement.spec = *std::move(spec);
  return announcement;
}

std::expected<model::Announcement, std::vector<Problem>> amend_announcement(
    const model::Announcement& before, std::string_view patch, std::string_view origin) {
  auto changes = read_patch(patch, origin);
  if (!changes) return std::unexpected(std::vector{std::move(changes.error())});
  Json merged = Json::parse(to_json(before));
  merged.merge_patch(*changes);
  return parse_announcement(merged.dump(-1, ' ', false, Json::error_handler_t::replace), origin);
}

std::string to_json(const model::Announcement& announcement) {
  const model::WorkerSpec& spec = announcement.spec;
  Json json{{"model", announcement.model},
            {"url", "http://" + spec.endpoint.to_string()},
            {"engine", to_string(spec.engine)},
            {"role", to_string(spec.role)}};
  if (!spec.name.empty()) json["id"] = spec.name;
  json["namespace"] = spec.name_space;
  if (!spec.instance.empty()) json["instance"] = spec.instance;
  if (spec.handoff) json["handoff"] = to_string(*spec.handoff);
  if (spec.bootstrap_port) json["bootstrap_port"] = *spec.bootstrap_port;
  json["data_parallel_size"] = spec.data_parallel_size;
  if (!spec.taints.empty()) json["taints"] = spec.taints;
  if (!spec.topology.empty()) json["topology"] = spec.topology;
  if (spec.transfer_domain) add_transfer_domain(*spec.transfer_domain, json);
  if (spec.nixl) json["nixl"] = nixl_json(*spec.nixl);
  if (spec.kv_feed) add_kv_feed(*spec.kv_feed, json);
  if (spec.block_size) json["block_size"] = *spec.block_size;
  if (spec.kv_blocks) json["kv_blocks"] = *spec.kv_blocks;
  if (spec.max_batched_tokens) json["max_batched_tokens"] = *spec.max_batched_tokens;
  json["draining"] = announcement.draining;
  // Text from a command line need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton::config
