// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/char_set.h"

#include <cstdint>
#include <span>
#include <vector>

namespace baton::tokenizer {

// Role. A byte for each code point, found in two steps. Equal blocks are kept once.
// Confinement. Immutable; any thread.
class CodePointTable {
 public:
  struct Run {
    char32_t first;
    char32_t last;
    std::uint8_t value;
  };

  // Code points that no run names have 0.
  explicit CodePointTable(std::span<const Run> runs);
  // 1 for the members.
  explicit CodePointTable(const CharSet& set);

  // Any 21 bits may be asked for: what a decoder makes of broken text stays inside the table.
  std::uint8_t operator[](char32_t code) const {
    return blocks_[std::size_t{index_[code >> kBlockBits]} << kBlockBits | (code & kBlockMask)];
  }

 private:
  static constexpr unsigned kBlockBits = 7;
  static constexpr char32_t kBlockMask = (1U << kBlockBits) - 1;

  std::vector<std::uint16_t> index_;
  std::vector<std::uint8_t> blocks_;
};

}  // namespace baton::tokenizer
