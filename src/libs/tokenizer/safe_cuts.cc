// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/safe_cuts.h"

#include "libs/tokenizer/last_character.h"
#include "libs/tokenizer/text/utf8.h"

namespace baton::tokenizer {

std::size_t SafeCuts::class_of(char32_t character) {
  if (character < 128) return character;
  return character == 0x2581 ? kSpaceMark : kClasses;
}

void SafeCuts::forbid(std::string_view left, std::string_view right) {
  const char32_t before = decode_utf8(left.data() + last_character(left)).code;
  const char32_t after = decode_utf8(right.data()).code;
  const std::size_t row = class_of(before);
  const std::size_t column = class_of(after);
  if (row < kClasses && column < kClasses) {
    common_[row][column / 64] |= std::uint64_t{1} << column % 64;
  } else {
    others_.set(before, after, {.rank = 0, .id = 0});
  }
}

bool SafeCuts::joined(char32_t before, char32_t after) const {
  const std::size_t row = class_of(before);
  const std::size_t column = class_of(after);
  if (row < kClasses && column < kClasses) {
    return (common_[row][column / 64] >> column % 64 & 1) != 0;
  }
  return others_.find(before, after).rank != Merge::kNever;
}

std::size_t SafeCuts::first_word(std::string_view text) const {
  auto [before, at] = decode_utf8(text.data());
  while (at < text.size()) {
    const auto [after, size] = decode_utf8(text.data() + at);
    if (!joined(before, after)) break;
    before = after;
    at += size;
  }
  return at;
}

}  // namespace baton::tokenizer
