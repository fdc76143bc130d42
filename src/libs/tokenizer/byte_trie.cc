// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/byte_trie.h"

namespace baton::tokenizer {

void ByteTrie::add(std::string_view text, TokenId id) {
  std::uint32_t node = 0;
  for (const char raw : text) {
    const auto byte = static_cast<unsigned char>(raw);
    std::uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.sibling = node == 0 ? 0 : nodes_[node].first_child, .byte = byte});
      (node == 0 ? roots_[byte] : nodes_[node].first_child) = next;
    }
    node = next;
  }
  if (nodes_[node].id == kNone) nodes_[node].id = id;
}

}  // namespace baton::tokenizer
