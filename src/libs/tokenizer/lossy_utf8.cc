// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/lossy_utf8.h"

#include <simdjson.h>

#include <algorithm>
#include <cstddef>

namespace baton::tokenizer {
namespace {

struct Step {
  std::size_t bytes;
  bool valid;
};

// The character at the beginning, or the part of it that is there.
Step first_character(std::string_view bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte may not make an overlong form, a surrogate or more than U+10FFFF.
  const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  std::size_t there = 1;
  while (there < length && there < bytes.size()) {
    const unsigned char next = byte(there);
    if (next < (there == 1 ? low : 0x80) || next > (there == 1 ? high : 0xBF)) break;
    ++there;
  }
  return {there, there == length};
}

}  // namespace

std::string lossy_utf8(std::string_view bytes) {
  if (simdjson::validate_utf8(bytes.data(), bytes.size())) return std::string(bytes);
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Step step = first_character(bytes);
    text.append(step.valid ? bytes.substr(0, step.bytes) : "\uFFFD");
    bytes.remove_prefix(step.bytes);
  }
  return text;
}

}  // namespace baton::tokenizer
