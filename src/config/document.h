// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/load.h"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace baton::config {

// One value of a configuration and where it was written, so that every problem can name the place.
struct Node {
  enum class Kind { Null, Scalar, List, Map };

  Kind kind = Kind::Null;
  int line = 0;                  // from 1; 0 on the command line
  std::string flag = {};         // the flag it came from; empty: from the file
  std::string text = {};         // of a Scalar
  std::vector<Node> items = {};  // of a List or Map, as written: in a Map, a key may stand twice
  std::string key = {};          // in a Map
  int key_line = 0;

  // The value of a key of a Map; null where absent. The first, where it stands twice.
  Node* find(std::string_view wanted);
  const Node* find(std::string_view wanted) const;
};

inline constexpr std::size_t kMaxBytes = 4 * 1024 * 1024;

// Reads YAML into a tree. Text that is not YAML, is too big, nests too deeply or uses aliases is
// one problem.
std::expected<Node, Problem> read_document(std::string_view yaml, std::string_view file);
// The same for JSON too, also where it is no YAML (surrogate pairs, tabs). JSON has no lines, and
// its numbers are their values: 1e-1 is 0.1.
std::expected<Node, Problem> read_json_or_yaml(std::string_view text, std::string_view file);

}  // namespace baton::config
