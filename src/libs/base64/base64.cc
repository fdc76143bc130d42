// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/base64/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace baton::base64 {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kGroup = 4;       // characters …
constexpr std::size_t kGroupBytes = 3;  // … for so many bytes
constexpr unsigned kDigitBits = 6;
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<std::uint8_t>(kDigits[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

}  // namespace

std::string encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + kGroupBytes - 1) / kGroupBytes * kGroup);
  unsigned held = 0;
  unsigned bits = 0;
  for (const char byte : bytes) {
    held = held << 8U | static_cast<std::uint8_t>(byte);
    for (bits += 8; bits >= kDigitBits; bits -= kDigitBits)
      text.push_back(kDigits[held >> (bits - kDigitBits) & 0x3FU]);
  }
  if (bits > 0) text.push_back(kDigits[held << (kDigitBits - bits) & 0x3FU]);
  while (text.size() % kGroup != 0) text.push_back('=');
  return text;
}

std::optional<std::string> decode(std::string_view text) {
  if (text.size() % kGroup != 0) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / kGroup * kGroupBytes + 2);
  unsigned held = 0;
  unsigned bits = 0;
  for (const char digit : text) {
    const std::uint8_t value = kValues[static_cast<std::uint8_t>(digit)];
    if (value == kNoDigit) return std::nullopt;
    held = held << kDigitBits | value;
    bits += kDigitBits;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(held >> bits & 0xFFU));
  }
  return bytes;
}

}  // namespace baton::base64
