// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/tokenizer/token.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace baton::prompt {

// Role. Remembers where in the tokens made so far a word's are, so that a word which comes again is
//   copied instead of merged again. Words that meet in the table put each other out.
// Confinement. One thread.
// Lifetime. The words' texts must live until the next `begin`.
class WordMemory {
 public:
  // Forgets everything.
  void begin() {
    if (entries_.empty()) entries_.resize(kEntries);
    ++round_;
  }

  // Appends the word's tokens where they are known.
  bool append_known(std::string_view word, TokenIds& ids) const {
    const Entry& entry = entries_[place_of(word)];
    if (entry.round != round_ || entry.text != word) return false;
    const std::size_t before = ids.size();
    ids.resize(before + entry.count);
    std::memcpy(ids.data() + before, ids.data() + entry.first, entry.count * sizeof(TokenId));
    return true;
  }
  // The word's tokens are at the end of `ids`, from `first` on.
  void remember(std::string_view word, const TokenIds& ids, std::size_t first) {
    entries_[place_of(word)] = {
        .text = word, .round = round_, .first = first, .count = ids.size() - first};
  }

 private:
  static constexpr std::size_t kEntries = 2048;
  struct Entry {
    std::string_view text = {};
    std::uint64_t round = 0;
    std::size_t first = 0;
    std::size_t count = 0;
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
  std::uint64_t round_ = 0;
};

}  // namespace baton::prompt
