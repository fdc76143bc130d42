// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/token.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. A trie of texts, byte by byte: finds those that another text begins with.
// Confinement. Filled by one thread, then immutable; any thread.
class ByteTrie {
 public:
  static constexpr TokenId kNone = 0xFFFF'FFFF;

  // The first of two equal texts counts. Requires: not empty.
  void add(std::string_view text, TokenId id);
  bool empty() const { return nodes_.size() == 1; }
  // Whether one of them begins with this text and goes on. Requires: not empty.
  bool goes_beyond(std::string_view text) const {
    std::uint32_t node = 0;
    for (const char byte : text) {
      node = child(node, static_cast<unsigned char>(byte));
      if (node == 0) return false;
    }
    return nodes_[node].first_child != 0;
  }

  // Calls with the end and the id of each text that stands at `begin`, the shortest first.
  template <class Visit>
  void for_each_at(std::string_view text, std::size_t begin, Visit visit) const {
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      node = child(node, static_cast<unsigned char>(text[at]));
      if (node == 0) return;
      if (nodes_[node].id != kNone) visit(at + 1, nodes_[node].id);
    }
  }

 private:
  // Children of a node are a list, but for the root's, which have a table.
  struct Node {
    std::uint32_t first_child = 0;
    std::uint32_t sibling = 0;
    TokenId id = kNone;
    unsigned char byte = 0;
  };

  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_[byte];
    std::uint32_t at = nodes_[node].first_child;
    while (at != 0 && nodes_[at].byte != byte) at = nodes_[at].sibling;
    return at;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::uint32_t, 256> roots_ = {};  // 0: no text begins with the byte
};

}  // namespace baton::tokenizer
