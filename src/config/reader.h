// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/document.h"
#include "config/load.h"
#include "config/values.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::config {

// Role. Collects all problems of one reading, so that the user sees them at once.
// Lifetime. The same.
// Invariants. A problem of a flag is reported at the flag, every other at its line and path. In
//   order of line.
class Problems {
 public:
  explicit Problems(std::string_view file) : file_(file) {}

  void add(Problem problem);
  void add(const Node& at, std::string_view path, std::string message);
  // At the key of `value` instead of at the value itself.
  void add_at_key(const Node& value, std::string_view path, std::string message);
  void add_command_line(std::string path, std::string message);
  std::size_t count() const { return list_.size(); }
  std::vector<Problem> take() { return std::move(list_); }

 private:
  std::string file_;
  std::vector<Problem> list_;
};

// Role. One map of the configuration, read key by key into typed values.
// Confinement. One call of parse().
// Lifetime. `node` and `problems` outlive it.
// Invariants. Keys that keys() does not know, and keys that stand twice, are reported when it is
//   made; a value that cannot be read is reported and leaves its target as it was.
class Section {
 public:
  // `path` is the map's name in messages (models[0]), `pattern` its name in keys() (models[]).
  // `also`: further keys that may stand in the map, where it is a document of its own.
  Section(const Node& node, std::string path, std::string_view pattern, Problems& problems,
          std::span<const std::string_view> also = {});

  // Null where the key is absent. A key without a value is reported, and absent.
  const Node* find(std::string_view key) const;
  // A map below; absent or without values: an empty one.
  Section section(std::string_view key) const;
  // The entries of a list; anything else is reported.
  const std::vector<Node>& list(std::string_view key) const;
  std::string path_of(std::string_view key) const;
  const std::string& path() const { return path_; }
  // False where something else stands there, which is reported already.
  bool is_map() const { return node_.kind == Node::Kind::Map || node_.kind == Node::Kind::Null; }

  template <class Target, class Parse>
  void read(std::string_view key, Target& target, Parse parse) const {
    const Node* const node = find(key);
    if (node == nullptr) return;
    if (auto value = read_scalar(*node, path_of(key), parse, problems_)) target = *std::move(value);
  }

  // The value of a single node, or nothing after reporting what is wrong with it.
  template <class Parse>
  static auto read_scalar(const Node& node, std::string_view path, Parse parse, Problems& problems)
      -> std::optional<typename decltype(parse(std::string_view()))::value_type> {
    if (node.kind != Node::Kind::Scalar) {
      problems.add(node, path, "must be a single value, not a list or a map");
      return std::nullopt;
    }
    auto value = parse(std::string_view(node.text));
    if (value) return *std::move(value);
    problems.add(node, path, std::move(value.error()));
    return std::nullopt;
  }

 private:
  void report_unknown(const Node& value, const std::vector<std::string_view>& known,
                      std::string_view elsewhere) const;

  const Node& node_;
  std::string path_;
  std::string pattern_;
  Problems& problems_;
};

}  // namespace baton::config
