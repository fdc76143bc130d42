// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// One character of valid UTF-8 and how many bytes it takes.
struct Utf8Char {
  char32_t code;
  std::size_t size;
};

// Requires: a whole character of valid UTF-8 at `at`.
inline Utf8Char decode_utf8(const char* at) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(at);
  if (p[0] < 0x80) {
    return {p[0], 1};
  }
  if (p[0] < 0xE0) {
    return {(p[0] & 0x1FU) << 6 | (p[1] & 0x3FU), 2};
  }
  if (p[0] < 0xF0) {
    return {(p[0] & 0x0FU) << 12 | (p[1] & 0x3FU) << 6 | (p[2] & 0x3FU), 3};
  }
  return {(p[0] & 0x07U) << 18 | (p[1] & 0x3FU) << 12 | (p[2] & 0x3FU) << 6 | (p[3] & 0x3FU), 4};
}

inline std::size_t utf8_size(char first_byte) {
  const auto byte = static_cast<std::uint8_t>(first_byte);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

inline bool is_utf8_continuation(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xC0U) == 0x80U;
}

inline void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6);
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12);
    put(0x80U | (code >> 6 & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18);
    put(0x80U | (code >> 12 & 0x3FU));
    put(0x80U | (code >> 6 & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

// Requires: valid UTF-8.
inline std::u32string to_code_points(std::string_view text) {
  std::u32string codes;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, size] = decode_utf8(text.data() + at);
    codes.push_back(code);
    at += size;
  }
  return codes;
}

}  // namespace baton::tokenizer
