// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/scan/json_text.h"

#include "libs/scan/byte_block.h"
#include "libs/scan/json_number.h"
#include "libs/scan/unicode_escape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace baton::scan {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Index of the first quote or backslash; the size of a block if there is none.
std::size_t first_special(ByteBlock bytes) {
  return first_hit((bytes == std::uint8_t{'"'}) | (bytes == std::uint8_t{'\\'}));
}

// Text that is read at once where there is so much of it.
constexpr std::size_t kTextWindow = 4 * sizeof(ByteBlock);

// A bit for each quote and backslash of a window, the lowest for the first.
std::uint64_t specials_in(const char* window) {
  std::uint64_t specials = 0;
  for (std::size_t at = 0; at < kTextWindow; at += sizeof(ByteBlock)) {
    const ByteBlock bytes = load_block(window + at);
    const auto hits = (bytes == std::uint8_t{'"'}) | (bytes == std::uint8_t{'\\'});
    specials |= std::uint64_t{hit_bits(hits)} << at;
  }
  return specials;
}

// Past the object or array that opens at `at`.
std::size_t skip_nested(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    switch (text[at]) {
      case '"':
        at = string_at(text, at).end;
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

// The write_ functions return the place behind what they wrote.

char* write_text(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

char* write_utf8(char* to, std::uint32_t point) {
  const auto tail = [point](unsigned shift) {
    return static_cast<char>(0x80 | ((point >> shift) & 0x3f));
  };
  if (point < 0x80) {
    *to++ = static_cast<char>(point);
  } else if (point < 0x800) {
    *to++ = static_cast<char>(0xc0 | (point >> 6));
    *to++ = tail(0);
  } else if (point < 0x10000) {
    *to++ = static_cast<char>(0xe0 | (point >> 12));
    *to++ = tail(6);
    *to++ = tail(0);
  } else {
    *to++ = static_cast<char>(0xf0 | (point >> 18));
    *to++ = tail(12);
    *to++ = tail(6);
    *to++ = tail(0);
  }
  return to;
}

// Reads the `\uXXXX` at `at`, and its second half where there is one; `at` goes past it.
char* write_unicode_escape(char* to, std::string_view raw, std::size_t& at) {
  const char* const end = raw.data() + raw.size();
  const std::uint32_t unit = unit_at(raw.data() + at, end);
  at += kUnicodeEscape;
  if (!is_high_surrogate(unit) && !is_low_surrogate(unit)) return write_utf8(to, unit);
  const std::uint32_t second = is_high_surrogate(unit) ? unit_at(raw.data() + at, end) : kNoUnit;
  if (!is_low_surrogate(second)) return write_text(to, kReplacement);
  at += kUnicodeEscape;
  return write_utf8(to, 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
}

// Meaning of a character after a backslash. The others mean themselves: quote, backslash, slash.
constexpr std::array<char, 256> kMeaning = [] {
  std::array<char, 256> meaning{};
  for (std::size_t c = 0; c < meaning.size(); ++c) meaning[c] = static_cast<char>(c);
  meaning['b'] = '\b';
  meaning['f'] = '\f';
  meaning['n'] = '\n';
  meaning['r'] = '\r';
  meaning['t'] = '\t';
  return meaning;
}();

// Reads the escape at `at`, which goes past it.
char* write_escape(char* to, std::string_view raw, std::size_t& at) {
  const char kind = raw[at + 1];
  if (kind == 'u') return write_unicode_escape(to, raw, at);
  *to++ = kMeaning[static_cast<unsigned char>(kind)];
  at += 2;
  return to;
}

}  // namespace

std::size_t skip_space(std::string_view text, std::size_t at) {
  const auto found = text.find_first_not_of(" \t\r\n", at);
  return found == text.npos ? text.size() : found;
}

std::size_t plain_size(std::string_view text) {
  std::size_t at = 0;
  for (; text.size() - at >= sizeof(ByteBlock); at += sizeof(ByteBlock)) {
    const ByteBlock bytes = load_block(text.data() + at);
    if (const std::size_t first = first_special(bytes); first < sizeof bytes) return at + first;
  }
  while (at < text.size() && text[at] != '"' && text[at] != '\\') ++at;
  return at;
}

StringAt string_at(std::string_view text, std::size_t at) {
  const std::size_t begin = at + 1;
  bool escaped = false;
  for (at = begin + plain_size(text.substr(begin)); at < text.size() && text[at] == '\\';) {
    escaped = true;
    at = std::min(at + 2, text.size());
    at += plain_size(text.substr(at));
  }
  return {.raw = text.substr(begin, at - begin),
          .escaped = escaped,
          .end = std::min(at + 1, text.size())};
}

std::size_t skip_value(std::string_view text, std::size_t at) {
  if (text[at] == '"') return string_at(text, at).end;
  if (text[at] == '{' || text[at] == '[') return skip_nested(text, at);
  const auto end = text.find_first_of(",}] \t\r\n", at);
  return end == text.npos ? text.size() : end;
}

char* unescape_to(char* to, std::string_view text, std::size_t& at) {
  // Whole windows are copied, and what is too much is written over: there is room for as much as is
  // read. So there has to be another window behind what is copied.
  while (text.size() - at >= 2 * kTextWindow) {
    const std::size_t window = at;
    std::memcpy(to, text.data() + at, kTextWindow);
    for (std::uint64_t specials = specials_in(text.data() + at); specials != 0;) {
      const std::size_t special = window + static_cast<std::size_t>(std::countr_zero(specials));
      to += special - at;
      at = special;
      if (text[at] == '"') {
        ++at;
        return to;
      }
      to = write_escape(to, text, at);
      if (at >= window + kTextWindow) break;
      std::memcpy(to, text.data() + at, kTextWindow);
      specials &= ~std::uint64_t{0} << (at - window);
    }
    if (at < window + kTextWindow) {
      to += window + kTextWindow - at;
      at = window + kTextWindow;
    }
  }
  while (at < text.size()) {
    if (text[at] == '"') {
      ++at;
      break;
    }
    if (text[at] == '\\') {
      to = write_escape(to, text, at);
    } else {
      *to++ = text[at++];
    }
  }
  return to;
}

std::string unescape(std::string_view raw) {
  std::string out;
  // No escape is shorter than what it stands for.
  out.resize_and_overwrite(raw.size(), [raw](char* to, std::size_t) {
    std::size_t at = 0;
    return unescape_to(to, raw, at) - to;
  });
  return out;
}

std::string without_numbers(std::string_view text) {
  std::string plain(text);
  bool in_string = false;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const std::size_t end = skip_number(text, i);
      if (end == i) break;  // simdjson will stumble over it
      plain[i] = '0';
      for (++i; i < end; ++i) plain[i] = ' ';
      --i;
    }
  }
  return plain;
}

}  // namespace baton::scan
