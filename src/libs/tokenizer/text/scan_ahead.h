// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/unicode.h"
#include "libs/tokenizer/text/utf8.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

// Building blocks of scanners: characters by their kind, ASCII without a table look-up.
namespace baton::tokenizer {

constexpr CharKind ascii_kind(unsigned char c) {
  constexpr std::string_view kMath = "+<=>|~";
  constexpr std::string_view kModifier = "^`";
  if (c >= 'a' && c <= 'z') {
    return CharKind::LowercaseLetter;
  }
  if (c >= 'A' && c <= 'Z') {
    return CharKind::UppercaseLetter;
  }
  if (c >= '0' && c <= '9') {
    return CharKind::DecimalNumber;
  }
  if (c == ' ') {
    return CharKind::SpaceSeparator;
  }
  if (c >= 9 && c <= 13) {
    return CharKind::ControlSpace;
  }
  if (c < 32 || c == 127) {
    return CharKind::Control;
  }
  const auto symbol = static_cast<char>(c);
  if (c == '$') {
    return CharKind::CurrencySymbol;
  }
  if (kMath.contains(symbol)) {
    return CharKind::MathSymbol;
  }
  if (kModifier.contains(symbol)) {
    return CharKind::ModifierSymbol;
  }
  return CharKind::OtherPunctuation;  // the exact kind is never needed
}

inline constexpr std::array<KindSet, 128> kAscii = [] {
  std::array<KindSet, 128> table{};
  for (unsigned char c = 0; c < 128; ++c) {
    table[c] = one_kind(ascii_kind(c));
  }
  return table;
}();

inline constexpr KindSet kEveryKind = kind_range(CharKind::UppercaseLetter, CharKind::ControlSpace);
inline bool is_newline(char c) { return c == '\r' || c == '\n'; }

// How many of the eight bytes at `place`, counted from the first, are ASCII letters; with kLowOnly,
// lower case ones. All at once: the end of a word is what a branch predictor cannot know.
template <bool kLowOnly>
std::size_t count_ascii_letters(const char* place) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, place, sizeof bytes);
  const std::uint64_t low = (kLowOnly ? bytes : bytes | kEach * 0x20) & kEach * 0x7F;
  const std::uint64_t from_a = low + kEach * (0x80 - 'a');
  const std::uint64_t beyond_z = low + kEach * (0x7F - 'z');
  const std::uint64_t letters = from_a & ~beyond_z & ~bytes & kEach * 0x80;
  return static_cast<std::size_t>(std::countr_zero(letters ^ kEach * 0x80)) / 8;
}

// Role. The text in front of a scanner. Lifetime. One call.
class Ahead {
 public:
  Ahead(std::string_view text, const CodePointTable& kinds)
      : end_(text.data() + text.size()), kinds_(kinds) {}

  const char* end() const { return end_; }

  struct Char {
    KindSet kind;  // 0 at the end
    std::size_t size;
  };
  Char at(const char* place) const {
    if (place == end_) {
      return {0, 0};
    }
    const auto byte = static_cast<std::uint8_t>(*place);
    if (byte < 0x80) {
      return {kAscii[byte], 1};
    }
    const auto [code, size] = decode_utf8(place);
    return {KindSet{1} << kinds_[code], size};
  }
  bool is(const char* place, KindSet kinds) const { return (at(place).kind & kinds) != 0; }
  bool is_newline(const char* place) const {
    return place != end_ && tokenizer::is_newline(*place);
  }

  // Behind the run of such characters that begins at `place`.
  template <KindSet kKinds>
  const char* skip(const char* place) const {
    constexpr bool kUpper = (kKinds & one_kind(CharKind::UppercaseLetter)) != 0;
    if constexpr ((kKinds & one_kind(CharKind::LowercaseLetter)) != 0) {
      while (end_ - place >= 8) {
        const std::size_t letters = count_ascii_letters<!kUpper>(place);
        place += letters;
        if (letters < 8) {
          // Most words end here, at a space or a sign.
          if (static_cast<std::uint8_t>(*place) < 0x80 &&
              (kAscii[static_cast<std::uint8_t>(*place)] & kKinds) == 0) {
            return place;
          }
          break;
        }
      }
    }
    while (place != end_) {
      const auto [kind, size] = at(place);
      if ((kind & kKinds) == 0) {
        break;
      }
      place += size;
    }
    return place;
  }
  const char* skip_at_most(const char* place, KindSet kinds, unsigned most) const {
    for (; most > 0 && place != end_; --most) {
      const auto [kind, size] = at(place);
      if ((kind & kinds) == 0) {
        break;
      }
      place += size;
    }
    return place;
  }
  template <class Accepts>
  const char* skip_bytes(const char* place, Accepts accepts) const {
    while (place != end_ && accepts(*place)) {
      ++place;
    }
    return place;
  }

 private:
  const char* end_;
  const CodePointTable& kinds_;
};

}  // namespace baton::tokenizer
