// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/token.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. Caches the tokens of words, so that a repeated word is copied instead of merged again.
//   Words that collide in the table replace each other; long ones are not kept.
// Confinement. One thread at a time, and one model.
class WordMemory {
 public:
  // Appends the word's tokens where they are known. Requires: a word that is not empty.
  bool append_known(std::string_view word, TokenIds& ids) const {
    if (entries_.empty() || word.size() > kLongest) return false;
    const Entry& entry = entries_[place_of(word)];
    if (entry.size != word.size() || std::memcmp(entry.text.data(), word.data(), word.size()) != 0)
      return false;
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
    return true;
  }
  void remember(std::string_view word, std::span<const TokenId> ids) {
    if (word.size() > kLongest || ids.size() > kMostIds) return;
    if (entries_.empty()) entries_.resize(kEntries);
    Entry& entry = entries_[place_of(word)];
    std::memcpy(entry.text.data(), word.data(), word.size());
    std::ranges::copy(ids, entry.ids.begin());  // there may be none
    entry.size = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(ids.size());
  }

 private:
  static constexpr std::size_t kEntries = 2048;
  static constexpr std::size_t kLongest = 34;
  static constexpr std::size_t kMostIds = 7;
  struct Entry {  // a cache line
    std::array<TokenId, kMostIds> ids = {};
    std::array<char, kLongest> text = {};
    std::uint8_t size = 0;
    std::uint8_t count = 0;
  };

  // Ends of words say more than their beginnings.
  static std::size_t place_of(std::string_view word) {
    std::uint64_t tail = 0;
    const std::size_t taken = word.size() < sizeof tail ? word.size() : sizeof tail;
    std::memcpy(&tail, word.data() + word.size() - taken, taken);
    const std::uint64_t head =
        static_cast<unsigned char>(word.front()) + std::uint64_t{word.size()} * 256;
    return static_cast<std::size_t>((tail ^ head << 40) * 0x9E37'79B9'7F4A'7C15ULL >> 53);
  }

  std::vector<Entry> entries_;
};

}  // namespace baton::tokenizer
