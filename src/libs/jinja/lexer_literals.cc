// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/lexer_literals.h"

#include "libs/jinja/unicode.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>

namespace baton::jinja {
namespace {

bool digit(char c, int base) {
  if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return true;
  return c >= '0' && c < '0' + (base < 10 ? base : 10);
}

// Digits with single underscores between them.
std::size_t digits_size(std::string_view text, int base) {
  std::size_t size = 0;
  while (size < text.size()) {
    if (digit(text[size], base)) {
      ++size;
    } else if (text[size] == '_' && size > 0 && size + 1 < text.size() &&
               digit(text[size + 1], base)) {
      ++size;
    } else {
      break;
    }
  }
  return size;
}

std::string erase_underscores(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

Value integer(std::string_view digits, int base) {
  const std::string text = erase_underscores(digits);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error == std::errc()) return Value(value);
  return base == 10 ? Value::big_integer(text) : Value::missing_because("an integer too long");
}

// Size of the part of a float after its whole digits: a fraction, an exponent, or both.
std::size_t fraction_size(std::string_view text) {
  std::size_t size = 0;
  if (text.starts_with('.')) {
    const std::size_t digits = digits_size(text.substr(1), 10);
    if (digits == 0) return 0;
    size = 1 + digits;
  }
  std::string_view rest = text.substr(size);
  if (rest.starts_with('e') || rest.starts_with('E')) {
    const std::size_t sign = rest.size() > 1 && (rest[1] == '+' || rest[1] == '-') ? 1 : 0;
    const std::size_t digits = digits_size(rest.substr(1 + sign), 10);
    if (digits > 0) size += 1 + sign + digits;
  }
  return size;
}

std::optional<char32_t> hex(std::string_view text, std::size_t digits) {
  std::uint32_t value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value, 16);
  if (error != std::errc() || end != text.data() + digits || value > 0x10FFFF) return std::nullopt;
  return static_cast<char32_t>(value);
}

char simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return '\0';
  }
}

}  // namespace

NumberLiteral read_number(std::string_view text, bool whole) {
  const std::size_t digits = digits_size(text, 10);
  if (digits == 0) return {};
  const std::size_t fraction = whole ? 0 : fraction_size(text.substr(digits));
  if (fraction > 0) {
    const std::string plain = erase_underscores(text.substr(0, digits + fraction));
    return {.size = digits + fraction,
            .is_float = true,
            .value = Value(std::strtod(plain.c_str(), nullptr))};
  }
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int base = mark == 'b' ? 2 : mark == 'o' ? 8 : mark == 'x' ? 16 : 0;
    if (base != 0) {
      std::string_view body = text.substr(2);
      const std::size_t underscore = body.starts_with('_') ? 1 : 0;
      body.remove_prefix(underscore);
      if (const std::size_t size = digits_size(body, base); size > 0) {
        return {.size = 2 + underscore + size,
                .is_float = false,
                .value = integer(body.substr(0, size), base)};
      }
    }
  }
  if (text[0] == '0') {
    // Zeros only: 007 is two numbers, and so a mistake.
    std::size_t size = 1;
    while (size < digits) {
      const std::size_t underscore = text[size] == '_' ? 1 : 0;
      if (text[size + underscore] != '0') break;
      size += underscore + 1;
    }
    return {.size = size, .is_float = false, .value = Value(0)};
  }
  return {.size = digits, .is_float = false, .value = integer(text.substr(0, digits), 10)};
}

std::size_t name_size(std::string_view text) {
  const std::string_view whole = text;
  bool first = true;
  while (!text.empty()) {
    std::string_view rest = text;
    const char32_t c = take_code_point(rest);
    const bool letter =
        c == '_' || (c < 0x80 ? ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') : is_alpha(c));
    if (!letter && (first || !(c >= '0' && c <= '9')) && (first || c < 0x80 || !is_decimal(c)))
      break;
    text = rest;
    first = false;
  }
  return whole.size() - text.size();
}

std::size_t string_size(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[0]) {
      return i + 1;
    }
  }
  return 0;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text[0] != '\\' || text.size() == 1) {
      if (text[0] == '\\') return std::nullopt;
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    const char c = text[1];
    text.remove_prefix(2);
    if (const char simple = simple_escape(c)) {
      out += simple;
    } else if (c == '\n') {
      continue;  // a line that goes on
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const auto code = hex(text, digits);
      // A lone surrogate cannot be written as UTF-8.
      if (!code || (*code >= 0xD800 && *code <= 0xDFFF)) return std::nullopt;
      append_code_point(out, *code);
      text.remove_prefix(digits);
    } else if (digit(c, 8)) {
      auto code = static_cast<char32_t>(c - '0');
      for (int i = 0; i < 2 && !text.empty() && digit(text[0], 8); ++i) {
        code = code * 8 + static_cast<char32_t>(text[0] - '0');
        text.remove_prefix(1);
      }
      append_code_point(out, code);
    } else if (c == 'N') {
      return std::nullopt;  // names of characters
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace baton::jinja
