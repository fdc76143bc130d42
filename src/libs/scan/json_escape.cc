// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/scan/json_escape.h"

#include <algorithm>

namespace baton::scan {
namespace {

constexpr std::string_view kUnknown = "\xEF\xBF\xBD";  // U+FFFD

// The length of the UTF-8 sequence at the start of `text`; 0 where there is no valid one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto is_tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return is_tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return is_tail(1) && is_tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) > 0x8f;
    return is_tail(1) && is_tail(2) && is_tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

// The number of a control character behind ASCII or of a line separator; 0 for any other.
// Requires: a valid sequence.
unsigned control_behind_ascii(std::string_view sequence) {
  const auto last = static_cast<unsigned char>(sequence.back());
  if (sequence.starts_with('\xc2') && last <= 0x9f) return last;
  if (sequence == "\xe2\x80\xa8") return 0x2028;
  if (sequence == "\xe2\x80\xa9") return 0x2029;
  return 0;
}

EscapedPart part(std::size_t plain, std::size_t replaced, std::string_view escape) {
  EscapedPart made{.plain = plain, .replaced = replaced, .escape = {}, .size = escape.size()};
  std::ranges::copy(escape, made.escape.begin());
  return made;
}

EscapedPart numbered(std::size_t plain, std::size_t replaced, unsigned code) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::array<char, 6> escape{'\\',
                                   'u',
                                   kHex[code >> 12U & 0xfU],
                                   kHex[code >> 8U & 0xfU],
                                   kHex[code >> 4U & 0xfU],
                                   kHex[code & 0xfU]};
  return part(plain, replaced, {escape.data(), escape.size()});
}

EscapedPart ascii(std::size_t plain, char c) {
  switch (c) {
    case '"':
      return part(plain, 1, "\\\"");
    case '\\':
      return part(plain, 1, "\\\\");
    case '\n':
      return part(plain, 1, "\\n");
    case '\r':
      return part(plain, 1, "\\r");
    case '\t':
      return part(plain, 1, "\\t");
    default:
      return numbered(plain, 1, static_cast<unsigned char>(c));
  }
}

}  // namespace

EscapedPart next_escape(std::string_view text, Escape escape) {
  constexpr char kDelete = 0x7f;
  for (std::size_t at = 0; at < text.size();) {
    // Nearly all text is plain.
    if (is_plain(text[at])) {
      ++at;
      continue;
    }
    const std::string_view rest = text.substr(at);
    const std::size_t length = utf8_length(rest);
    if (length == 0) return part(at, 1, kUnknown);
    if (length == 1) {
      if (rest.front() != kDelete || escape == Escape::OneLine) return ascii(at, rest.front());
    } else if (escape == Escape::OneLine) {
      const unsigned control = control_behind_ascii(rest.substr(0, length));
      if (control != 0) return numbered(at, length, control);
    }
    at += length;
  }
  return part(text.size(), 0, "");
}

std::string json_quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  append_escaped(out, text);
  out += '"';
  return out;
}

}  // namespace baton::scan
