// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace baton::config {
namespace {

Node from_flag(Node::Kind kind, std::string_view flag, std::string_view text = {}) {
  return {.kind = kind, .flag = std::string(flag), .text = std::string(text)};
}

// The value of `key`, made as an empty `kind` where absent or without a value. Null where `map` is
// no map: the reader will say so.
Node* child(Node& map, std::string_view key, Node::Kind kind, std::string_view flag) {
  if (map.kind == Node::Kind::Null) map.kind = Node::Kind::Map;
  if (map.kind != Node::Kind::Map) return nullptr;
  Node* value = map.find(key);
  if (value == nullptr) {
    value = &map.items.emplace_back(from_flag(kind, flag));
    value->key = key;
  } else if (value->kind == Node::Kind::Null) {
    value->kind = kind;
  }
  return value;
}

// A list is written with commas between its entries.
Node value_of(const Key& key, std::string_view text) {
  if (key.type != "list") return from_flag(Node::Kind::Scalar, key.flag, text);
  Node list = from_flag(Node::Kind::List, key.flag);
  for (const auto part : std::views::split(text, ',')) {
    list.items.push_back(from_flag(Node::Kind::Scalar, key.flag, std::string_view(part)));
  }
  return list;
}

void set_key(Node& root, const Key& key, std::string_view value) {
  Node* map = &root;
  std::string_view rest = key.path;
  for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    map = child(*map, rest.substr(0, dot), Node::Kind::Map, key.flag);
    if (map == nullptr) return;
    rest.remove_prefix(dot + 1);
  }
  Node* const target = child(*map, rest, Node::Kind::Scalar, key.flag);
  if (target == nullptr) return;
  *target = value_of(key, value);
  target->key = rest;
}

void put(Node& map, std::string_view key, std::string_view value) {
  map.items.push_back(from_flag(Node::Kind::Scalar, map.flag, value));
  map.items.back().key = key;
}

Node& model_named(Node& models, std::string_view name, std::string_view flag) {
  for (Node& model : models.items) {
    const Node* const known = model.find("name");
    if (known != nullptr && known->text == name) return model;
  }
  Node& model = models.items.emplace_back(from_flag(Node::Kind::Map, flag));
  put(model, "name", name);
  return model;
}

void add_worker(Node& root, std::string_view text, Problems& problems) {
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (equals == text.npos || equals == 0) {
    problems.add_command_line("--worker",
                              fmt::format("{} must be NAME=URL[,engine=…][,role=…]", shown(text)));
    return;
  }
  const std::string flag = fmt::format("--worker {}", name);
  Node worker = from_flag(Node::Kind::Map, flag);
  std::string_view rest = text.substr(equals + 1);
  put(worker, "url", rest.substr(0, rest.find(',')));
  while (rest.find(',') != rest.npos) {
    rest.remove_prefix(rest.find(',') + 1);
    const std::string_view field = rest.substr(0, rest.find(','));
    const auto split = field.find('=');
    if (split == field.npos) {
      problems.add_command_line(
          flag, fmt::format("{} must be a key and a value, as engine=vllm", shown(field)));
      return;
    }
    put(worker, field.substr(0, split), field.substr(split + 1));
  }

  Node* const models = child(root, "models", Node::Kind::List, "--worker");
  if (models == nullptr || models->kind != Node::Kind::List) return;
  Node& model = model_named(*models, name, flag);
  Node* const workers = child(model, "workers", Node::Kind::List, flag);
  if (workers != nullptr && workers->kind == Node::Kind::List) {
    workers->items.push_back(std::move(worker));
  }
}

// For the models that do not say it themselves.
void set_policy(Node& root, std::string_view policy) {
  Node* const models = child(root, "models", Node::Kind::List, "--policy");
  if (models == nullptr || models->kind != Node::Kind::List) return;
  for (Node& model : models->items) {
    if (model.kind != Node::Kind::Map || model.find("policy") != nullptr) continue;
    model.items.push_back(from_flag(Node::Kind::Scalar, "--policy", policy));
    model.items.back().key = "policy";
  }
}

}  // namespace

void apply_overrides(Node& root, std::span<const Override> overrides, Problems& problems) {
  for (const Override& one : overrides) {
    if (one.path == "worker") {
      add_worker(root, one.value, problems);
      continue;
    }
    if (one.path == "policy") continue;  // below, when all models are known
    const auto key = std::ranges::find(keys(), one.path, &Key::path);
    if (key == keys().end() || key->flag.empty()) {
      problems.add_command_line(one.path, "cannot be set on the command line; set it in the file");
      continue;
    }
    set_key(root, *key, one.value);
  }
  const auto policy = std::ranges::find(overrides, "policy", &Override::path);
  if (policy != overrides.end()) set_policy(root, policy->value);
}

}  // namespace baton::config
