// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string_view>

namespace baton::scan {

// The position past the JSON number that starts at `at`; `at` itself where there is none.
inline std::size_t skip_number(std::string_view text, std::size_t at) {
  const auto skip_digits = [text](std::size_t i) {
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i;
  };
  const auto is_at = [text](std::size_t i, std::string_view any_of) {
    return i < text.size() && any_of.contains(text[i]);
  };
  std::size_t i = is_at(at, "-") ? at + 1 : at;
  const std::size_t whole = i;
  i = skip_digits(whole);
  if (i == whole || (text[whole] == '0' && i > whole + 1)) return at;
  if (is_at(i, ".")) {
    const std::size_t fraction = i + 1;
    i = skip_digits(fraction);
    if (i == fraction) return at;
  }
  if (is_at(i, "eE")) {
    const std::size_t exponent = is_at(i + 1, "+-") ? i + 2 : i + 1;
    i = skip_digits(exponent);
    if (i == exponent) return at;
  }
  return i;
}

}  // namespace baton::scan
