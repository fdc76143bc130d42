// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/merge_table.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace baton::tokenizer {

// Role. Finds cuts of a text that do not change its BPE tokens: between two characters that no
//   merge ever joins, because no left part ends in the first while the right part begins with the
//   second. The words between cuts are short and can be looked up.
// Confinement. Filled by one thread, then immutable; any thread.
class SafeCuts {
 public:
  // A merge joins these two. Requires: valid UTF-8, not empty.
  void forbid(std::string_view left, std::string_view right);
  // How long the first word of a text is; all of it where there is no cut. Requires: valid UTF-8,
  // not empty.
  std::size_t first_word(std::string_view text) const;

 private:
  // A class for each ASCII character, and one for the space mark, which all these models use.
  static constexpr std::size_t kSpaceMark = 128;
  static constexpr std::size_t kClasses = 129;
  static std::size_t class_of(char32_t character);
  bool joined(char32_t before, char32_t after) const;

  std::array<std::array<std::uint64_t, (kClasses + 63) / 64>, kClasses> common_ = {};
  MergeTable others_;  // as a set of pairs of characters
};

}  // namespace baton::tokenizer
