// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_text.h"

#include "wire/json_object.h"

#include <charconv>
#include <cstdint>

namespace baton::wire {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Past the string whose opening quote is at `at`.
std::size_t skip_string(std::string_view text, std::size_t at) {
  std::size_t quote = text.find('"', at + 1);
  while (quote != text.npos) {
    std::size_t before = quote;
    while (text[before - 1] == '\\') --before;
    if ((quote - before) % 2 == 0) return quote + 1;
    quote = text.find('"', quote + 1);
  }
  return text.size();
}

// Past the object or array that opens at `at`.
std::size_t skip_nested(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    switch (text[at]) {
      case '"':
        at = skip_string(text, at);
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) return at + 1;
        break;
      default:
        break;
    }
    ++at;
  }
  return at;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [point](unsigned shift) {
    return static_cast<char>(0x80 | ((point >> shift) & 0x3f));
  };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | (point >> 6));
    out += tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | (point >> 12));
    out += tail(6);
    out += tail(0);
  } else {
    out += static_cast<char>(0xf0 | (point >> 18));
    out += tail(12);
    out += tail(6);
    out += tail(0);
  }
}

bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

std::uint32_t hex_unit(std::string_view digits) {
  std::uint32_t unit = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
  return unit;
}

// Reads the `\uXXXX` at `at`, and its second half where there is one. Returns the position past it.
std::size_t append_unicode_escape(std::string& out, std::string_view raw, std::size_t at) {
  constexpr std::size_t kEscape = 6;
  const std::uint32_t unit = hex_unit(raw.substr(at + 2, 4));
  at += kEscape;
  if (is_high_surrogate(unit) && raw.substr(at, 2) == "\\u") {
    const std::uint32_t second = hex_unit(raw.substr(at + 2, 4));
    if (is_low_surrogate(second)) {
      append_utf8(out, 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
      return at + kEscape;
    }
  }
  if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
    out += kReplacement;
  } else {
    append_utf8(out, unit);
  }
  return at;
}

char simple_escape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;  // quote, backslash, slash
  }
}

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

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 0xf];
  }
}

}  // namespace

std::size_t skip_space(std::string_view text, std::size_t at) {
  const auto found = text.find_first_not_of(" \t\r\n", at);
  return found == text.npos ? text.size() : found;
}

std::size_t skip_value(std::string_view text, std::size_t at) {
  if (text[at] == '"') return skip_string(text, at);
  if (text[at] == '{' || text[at] == '[') return skip_nested(text, at);
  const auto end = text.find_first_of(",}] \t\r\n", at);
  return end == text.npos ? text.size() : end;
}

std::string unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  std::size_t at = 0;
  while (at < raw.size()) {
    const auto backslash = raw.find('\\', at);
    out += raw.substr(at, backslash - at);
    if (backslash == raw.npos) break;
    if (raw[backslash + 1] == 'u') {
      at = append_unicode_escape(out, raw, backslash);
    } else {
      out += simple_escape(raw[backslash + 1]);
      at = backslash + 2;
    }
  }
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto length = utf8_length(text.substr(i));
    if (length == 0) {
      out += kReplacement;
    } else if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      append_escaped(out, c);
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  out += '"';
  return out;
}

}  // namespace baton::wire
