// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace baton::scan {

// JSON's `\uXXXX`: a UTF-16 unit, and two of them for some characters.
inline constexpr std::size_t kUnicodeEscape = 6;
inline constexpr std::uint32_t kNoUnit = 0xFFFF'FFFF;

// The code unit of the escape at `at`; kNoUnit if there is none before `end`.
inline std::uint32_t unit_at(const char* at, const char* end) {
  const auto rest = static_cast<std::size_t>(end - at);
  if (rest < kUnicodeEscape || at[0] != '\\' || at[1] != 'u') return kNoUnit;
  std::uint32_t unit = 0;
  const auto [stopped, error] = std::from_chars(at + 2, at + kUnicodeEscape, unit, 16);
  return error == std::errc() && stopped == at + kUnicodeEscape ? unit : kNoUnit;
}

inline bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
inline bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

}  // namespace baton::scan
