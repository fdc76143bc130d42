// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::config {
namespace {

const Node kEmpty;

std::string join(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

// The keys that may stand directly in the map `pattern`.
std::vector<std::string_view> known_keys(const std::string& pattern) {
  const std::string prefix = pattern.empty() ? "" : pattern + ".";
  std::vector<std::string_view> known;
  for (const Key& key : keys()) {
    if (!key.path.starts_with(prefix)) continue;
    const std::string_view rest = key.path.substr(prefix.size());
    const std::string_view name = rest.substr(0, rest.find_first_of(".["));
    if (std::ranges::find(known, name) == known.end()) known.push_back(name);
  }
  return known;
}

// A key of that name in another place: its section was forgotten.
std::string_view elsewhere(std::string_view name) {
  for (const Key& key : keys()) {
    if (key.path.substr(key.path.rfind('.') + 1) == name) return key.path;
  }
  return {};
}

}  // namespace

void Problems::add(const Node& at, std::string_view path, std::string message) {
  if (at.flag.empty()) {
    add(Problem{file_, at.line, std::string(path), std::move(message)});
  } else {
    add_command_line(at.flag, std::move(message));
  }
}

void Problems::add_at_key(const Node& value, std::string_view path, std::string message) {
  add(Node{.line = value.key_line, .flag = value.flag}, path, std::move(message));
}

void Problems::add_command_line(std::string path, std::string message) {
  add(Problem{"command line", 0, std::move(path), std::move(message)});
}

void Problems::add(Problem problem) {
  const auto at = std::ranges::upper_bound(list_, problem.line, {}, &Problem::line);
  list_.insert(at, std::move(problem));
}

Section::Section(const Node& node, std::string path, std::string_view pattern, Problems& problems,
                 std::span<const std::string_view> also)
    : node_(node), path_(std::move(path)), pattern_(pattern), problems_(problems) {
  if (!is_map()) {
    problems_.add(node_, path_, "must be a map of keys to values, as in 'key: value'");
    return;
  }
  std::vector<std::string_view> known = known_keys(pattern_);
  known.insert(known.begin(), also.begin(), also.end());
  for (const Node& value : node_.items) {
    if (std::ranges::find(known, value.key) == known.end()) {
      report_unknown(value, known, also.empty() ? elsewhere(value.key) : std::string_view{});
    } else if (const Node* const first = node_.find(value.key); first != &value) {
      problems_.add_at_key(
          value, path_of(value.key),
          first->key_line == 0
              ? "stands twice; remove one"
              : fmt::format("stands twice, first in line {}; remove one", first->key_line));
    }
  }
}

void Section::report_unknown(const Node& value, const std::vector<std::string_view>& known,
                             std::string_view elsewhere) const {
  std::string hint;
  if (const auto near = nearest(value.key, known); !near.empty()) {
    hint = fmt::format("did you mean {}?", near);
  } else if (!elsewhere.empty()) {
    hint = fmt::format("did you mean {}?", elsewhere);
  } else {
    hint = fmt::format("known here: {}", fmt::join(known, ", "));
  }
  problems_.add_at_key(value, path_, fmt::format("unknown key {}; {}", shown(value.key), hint));
}

const Node* Section::find(std::string_view key) const {
  const Node* const value = node_.find(key);
  if (value == nullptr || value->kind != Node::Kind::Null) return value;
  problems_.add_at_key(*value, path_of(key), "has no value; give it one or remove the key");
  return nullptr;
}

Section Section::section(std::string_view key) const {
  const Node* const value = node_.find(key);
  return Section(value == nullptr ? kEmpty : *value, path_of(key), join(pattern_, key), problems_);
}

const std::vector<Node>& Section::list(std::string_view key) const {
  const Node* const value = find(key);
  if (value == nullptr) return kEmpty.items;
  if (value->kind != Node::Kind::List) {
    problems_.add(*value, path_of(key),
                  "must be a list, as in [a, b] or lines that begin with '-'");
    return kEmpty.items;
  }
  return value->items;
}

std::string Section::path_of(std::string_view key) const { return join(path_, key); }

}  // namespace baton::config
