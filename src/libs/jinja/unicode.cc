// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <array>
#include <utf8proc.h>
#include <utility>

namespace baton::jinja {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

struct Special {
  char32_t code_point;
  std::string_view upper;
  std::string_view title;
};

// Characters whose upper case is several (Unicode's SpecialCasing), sorted.
constexpr std::array kSpecialUpper = std::to_array<Special>({
    {0x00DF, "SS", "Ss"},
    {0x0149, "\u02BCN", "\u02BCN"},
    {0x01F0, "J\u030C", "J\u030C"},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x03B0, "\u03A5\u0308\u0301", "\u03A5\u0308\u0301"},
    {0x0587, "\u0535\u0552", "\u0535\u0582"},
    {0x1E96, "H\u0331", "H\u0331"},
    {0x1E97, "T\u0308", "T\u0308"},
    {0x1E98, "W\u030A", "W\u030A"},
    {0x1E99, "Y\u030A", "Y\u030A"},
    {0x1E9A, "A\u02BE", "A\u02BE"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
});

const Special* special(char32_t c) {
  const auto* at = std::ranges::lower_bound(kSpecialUpper, c, {}, &Special::code_point);
  return at != kSpecialUpper.end() && at->code_point == c ? at : nullptr;
}

void append_upper(std::string& out, char32_t c) {
  if (const Special* found = special(c)) {
    out += found->upper;
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_toupper(static_cast<int>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const Special* found = special(c)) {
    out += found->title;
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_totitle(static_cast<int>(c))));
  }
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

bool case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019;
  }
}

// Whether a capital sigma between these ends its word, and so has its own lower case.
bool ends_word(std::string_view before, std::string_view after) {
  while (true) {
    if (before.empty()) return false;
    const char32_t c = take_last_code_point(before);
    if (case_ignorable(c)) continue;
    if (!is_cased(c)) return false;
    break;
  }
  while (!after.empty()) {
    const char32_t c = take_code_point(after);
    if (!case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

void append_lower(std::string& out, char32_t c, std::string_view before, std::string_view after) {
  if (c == 0x0130) {
    out += "i\u0307";
  } else if (c == 0x03A3) {
    out += ends_word(before, after) ? "\u03C2" : "\u03C3";
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<int>(c))));
  }
}

bool ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

std::size_t count_code_points(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues));
}

std::size_t code_point_offset(std::string_view text, std::size_t index) {
  std::size_t offset = 0;
  for (std::size_t i = 0; offset < text.size(); ++offset) {
    if (continues(text[offset])) continue;
    if (i++ == index) break;
  }
  return offset;
}

char32_t take_code_point(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) {
    text.remove_prefix(1);
    return lead;
  }
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  auto c = static_cast<char32_t>(lead & (0xFFU >> (size + 1)));
  for (std::size_t i = 1; i < size && i < text.size(); ++i) {
    c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  text.remove_prefix(std::min(size, text.size()));
  return c;
}

char32_t take_last_code_point(std::string_view& text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && continues(text[begin])) --begin;
  std::string_view last = text.substr(begin);
  text.remove_suffix(last.size());
  return take_code_point(last);
}

void append_code_point(std::string& text, char32_t code_point) {
  const auto part = [&](unsigned shift, unsigned mask, unsigned mark) {
    text += static_cast<char>((code_point >> shift & mask) | mark);
  };
  if (code_point < 0x80) {
    part(0, 0x7F, 0);
  } else if (code_point < 0x800) {
    part(6, 0x1F, 0xC0);
    part(0, 0x3F, 0x80);
  } else if (code_point < 0x10000) {
    part(12, 0x0F, 0xE0);
    part(6, 0x3F, 0x80);
    part(0, 0x3F, 0x80);
  } else {
    part(18, 0x07, 0xF0);
    part(12, 0x3F, 0x80);
    part(6, 0x3F, 0x80);
    part(0, 0x3F, 0x80);
  }
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0x1369 && c <= 0x1371) ||
         c == 0x19DA || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) ||
         (c >= 0x2474 && c <= 0x247C) || (c >= 0x2488 && c <= 0x2490) || c == 0x24EA ||
         (c >= 0x24F5 && c <= 0x24FD) || c == 0x24FF || (c >= 0x2776 && c <= 0x277E) ||
         (c >= 0x2780 && c <= 0x2788) || (c >= 0x278A && c <= 0x2792);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO || c == 0x3007 || c == 0x4E00 || c == 0x4E8C || c == 0x4E09;
}

bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216F) ||
         (c >= 0x24B6 && c <= 0x24CF) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA ||
         (c >= 0x02B0 && c <= 0x02B8) || c == 0x02C0 || c == 0x02C1 ||
         (c >= 0x02E0 && c <= 0x02E4) || (c >= 0x2170 && c <= 0x217F) ||
         (c >= 0x24D0 && c <= 0x24E9);
}

bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool all_upper(std::string_view text) {
  bool cased = false;
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    if (is_lower(c) || is_title(c)) return false;
    cased = cased || is_upper(c);
  }
  return cased;
}

bool all_lower(std::string_view text) {
  bool cased = false;
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    if (is_upper(c) || is_title(c)) return false;
    cased = cased || is_lower(c);
  }
  return cased;
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (ascii(text)) {
    for (const char c : text) out += ascii_upper(c);
    return out;
  }
  while (!text.empty()) append_upper(out, take_code_point(text));
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (ascii(text)) {
    for (const char c : text) out += ascii_lower(c);
    return out;
  }
  const std::string_view whole = text;
  while (!text.empty()) {
    const std::string_view before = whole.substr(0, whole.size() - text.size());
    const char32_t c = take_code_point(text);
    append_lower(out, c, before, text);
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  const std::string_view whole = text;
  bool in_word = false;
  while (!text.empty()) {
    const std::string_view before = whole.substr(0, whole.size() - text.size());
    const char32_t c = take_code_point(text);
    if (in_word) {
      append_lower(out, c, before, text);
    } else {
      append_title(out, c);
    }
    in_word = is_cased(c);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  if (text.empty()) return out;
  const std::string_view whole = text;
  append_title(out, take_code_point(text));
  while (!text.empty()) {
    const std::string_view before = whole.substr(0, whole.size() - text.size());
    const char32_t c = take_code_point(text);
    append_lower(out, c, before, text);
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  const std::string_view whole = text;
  while (!text.empty()) {
    const std::string_view before = whole.substr(0, whole.size() - text.size());
    const char32_t c = take_code_point(text);
    if (is_upper(c)) {
      append_lower(out, c, before, text);
    } else if (is_lower(c)) {
      append_upper(out, c);
    } else {
      append_code_point(out, c);
    }
  }
  return out;
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    std::string_view rest = text;
    if (!is_space(take_code_point(rest))) break;
    text = rest;
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    std::string_view rest = text;
    if (!is_space(take_last_code_point(rest))) break;
    text = rest;
  }
  return text;
}

std::string_view strip_left(std::string_view text, std::string_view chars) {
  while (!text.empty()) {
    std::string_view rest = text;
    take_code_point(rest);
    if (!chars.contains(text.substr(0, text.size() - rest.size()))) break;
    text = rest;
  }
  return text;
}

std::string_view strip_right(std::string_view text, std::string_view chars) {
  while (!text.empty()) {
    std::string_view rest = text;
    take_last_code_point(rest);
    if (!chars.contains(text.substr(rest.size()))) break;
    text = rest;
  }
  return text;
}

}  // namespace baton::jinja
