// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_structure.h"

#include "libs/scan/byte_block.h"
#include "libs/scan/json_number.h"
#include "libs/scan/unicode_escape.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace baton::wire {
namespace {

using scan::ByteBlock;
using scan::hit_bits;
using scan::is_high_surrogate;
using scan::is_low_surrogate;
using scan::kNoUnit;
using scan::kUnicodeEscape;
using scan::load_block;
using scan::skip_number;
using scan::unit_at;

// Deeper ones are rare, and left to simdjson.
constexpr std::size_t kDeepest = 64;

constexpr std::array<bool, 256> kAfterBackslash = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("\"\\/bfnrt")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Past the `\uXXXX` at `at`, or two that are one character; null where there is not surely one. Halves
// on their own are not: whether they count is for simdjson to say.
const char* skip_unicode_escape(const char* at, const char* end) {
  const std::uint32_t unit = unit_at(at, end);
  if (unit == kNoUnit || is_low_surrogate(unit)) return nullptr;
  at += kUnicodeEscape;
  if (!is_high_surrogate(unit)) return at;
  return is_low_surrogate(unit_at(at, end)) ? at + kUnicodeEscape : nullptr;
}

constexpr std::size_t kStringWindow = 4 * sizeof(ByteBlock);

// A bit for each backslash of a window, the lowest for the first.
std::uint64_t backslashes(const char* at) {
  std::uint64_t found = 0;
  for (std::size_t block = 0; block < kStringWindow; block += sizeof(ByteBlock)) {
    const auto hits = load_block(at + block) == std::uint8_t{'\\'};
    found |= std::uint64_t{hit_bits(hits)} << block;
  }
  return found;
}

// Checks a string's contents. The text continues up to `readable`.
bool has_sound_escapes(const char* at, const char* end, const char* readable) {
  const char* done = at;  // behind the last escape
  for (;; at += kStringWindow) {
    std::uint64_t found = 0;
    if (static_cast<std::size_t>(readable - at) >= kStringWindow) {
      found = backslashes(at);
    } else {
      for (std::size_t i = 0; at + i < end; ++i) found |= std::uint64_t{at[i] == '\\'} << i;
    }
    const auto rest = static_cast<std::size_t>(end - at);
    if (rest < kStringWindow) found &= (std::uint64_t{1} << rest) - 1;
    for (; found != 0; found &= found - 1) {
      const char* const backslash = at + std::countr_zero(found);
      if (backslash < done) continue;  // the second of two
      done = backslash + 2;
      if (kAfterBackslash[static_cast<unsigned char>(backslash[1])]) continue;
      done = skip_unicode_escape(backslash, end);
      if (done == nullptr) return false;
    }
    if (rest <= kStringWindow) return true;
  }
}

// Role. Goes along the structure of a text and asks of each part whether it may stand there.
// Lifetime. One call.
class Walk {
 public:
  Walk(std::string_view text, Structure structure) : text_(text), structure_(structure) {}

  bool is_valid() {
    if (structure_.empty()) return false;
    const char first = text_[structure_[0]];
    if (first != '{' && first != '[') return false;
    if (!value()) return false;
    while (depth_ > 0) {
      if (!member()) return false;
    }
    return at_ == structure_.size();
  }

 private:
  // The next part of the structure; 0 behind the last.
  char peek() const { return at_ < structure_.size() ? text_[structure_[at_]] : '\0'; }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  // Parses after a value in an open object or array: its end, or a comma and a value.
  bool member() {
    const bool object = in_object_[depth_ - 1];
    if (take(object ? '}' : ']')) {
      --depth_;
      return true;
    }
    return take(',') && (object ? key_and_value() : value());
  }

  bool key_and_value() { return peek() == '"' && string() && take(':') && value(); }

  // Parses a scalar, or an opening bracket and the first element inside.
  bool value() {
    while (true) {
      switch (peek()) {
        case '"':
          return string();
        case '{':
        case '[':
          break;
        default:
          return scalar();
      }
      if (depth_ == kDeepest) return false;
      const bool object = text_[structure_[at_++]] == '{';
      if (take(object ? '}' : ']')) return true;
      in_object_[depth_++] = object;
      if (object && !(peek() == '"' && string() && take(':'))) return false;
    }
  }

  // Between the opening quote and the next part of the structure there is nothing but the string and
  // white space.
  bool string() {
    const char* const begin = text_.data() + structure_[at_] + 1;
    ++at_;
    if (at_ == structure_.size()) return false;
    const char* end = text_.data() + structure_[at_] - 1;
    while (end > begin && is_space(*end)) --end;
    if (end < begin || *end != '"') return false;
    return !has_backslash(begin, end) || has_sound_escapes(begin, end, text_.data() + text_.size());
  }

  // Most strings are short and have none. Requires: strings in the order of the text.
  bool has_backslash(const char* begin, const char* end) {
    const auto from = static_cast<std::size_t>(begin - text_.data());
    if (backslash_ < from) backslash_ = text_.find('\\', from);
    return backslash_ < static_cast<std::size_t>(end - text_.data());
  }

  bool scalar() {
    if (at_ == structure_.size()) return false;
    const std::size_t begin = structure_[at_++];
    const std::string_view rest = text_.substr(begin);
    for (const std::string_view literal : {"true", "false", "null"}) {
      if (rest.starts_with(literal)) return ends(begin + literal.size());
    }
    const std::size_t end = skip_number(text_, begin);
    return end != begin && ends(end);
  }
  bool ends(std::size_t at) const {
    return at < text_.size() &&
           (text_[at] == ',' || text_[at] == '}' || text_[at] == ']' || is_space(text_[at]));
  }

  std::string_view text_;
  Structure structure_;
  std::size_t backslash_ = 0;  // where the next one is, as far as known
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::array<bool, kDeepest> in_object_ = {};
};

}  // namespace

bool surely_valid(std::string_view text, Structure structure) {
  return Walk(text, structure).is_valid();
}

}  // namespace baton::wire
