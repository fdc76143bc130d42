// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/scan/byte_block.h"
#include "libs/tokenizer/byte_trie.h"
#include "libs/tokenizer/token.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. Finds given texts in a longer one: the leftmost, and of those the longest. Text in which no
//   byte begins a pattern is passed over quickly.
// Confinement. Filled by one thread, then immutable; any thread.
class TokenMatcher {
 public:
  struct Match {
    std::size_t begin;
    std::size_t end;
    TokenId id;
  };

  // The first of two equal patterns counts. Requires: not empty.
  void add(std::string_view pattern, TokenId id);
  // The first match that begins at or behind `from`.
  std::optional<Match> find(std::string_view text, std::size_t from) const;
  bool empty() const { return patterns_.empty(); }
  const ByteTrie& patterns() const { return patterns_; }

 private:
  // Up to so many bytes are looked for in sixteen bytes of text at once.
  static constexpr std::size_t kFew = 8;

  std::size_t next_candidate(std::string_view text, std::size_t from) const;
  // At or behind `from`, and not behind the next candidate. Looks for the first kCount of the few.
  template <std::size_t kCount>
  std::size_t skip_blocks(std::string_view text, std::size_t from) const;

  ByteTrie patterns_;
  std::array<std::uint8_t, 256> begins_ = {};  // 1: a pattern begins with the byte
  std::vector<std::uint8_t> all_begins_;       // the same bytes
  std::array<scan::ByteBlock, kFew> few_begins_ =
      {};  // the same, if they are few; else any of them
};

}  // namespace baton::tokenizer
