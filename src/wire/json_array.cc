// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_array.h"

#include <cstddef>

namespace baton::wire {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

// Index past the string that starts at `at`.
std::size_t skip_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return at + 1;
}

}  // namespace

std::optional<std::string_view> first_element(std::string_view json) {
  const std::size_t open = json.find_first_not_of(kBlank);
  if (open == std::string_view::npos || json[open] != '[') return std::nullopt;
  const std::size_t begin = json.find_first_not_of(kBlank, open + 1);
  if (begin == std::string_view::npos || json[begin] == ']') return std::nullopt;

  std::size_t depth = 0;
  std::size_t at = begin;
  while (at < json.size()) {
    const char c = json[at];
    if (c == '"') {
      at = skip_string(json, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == ']')) break;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    ++at;
  }
  const std::string_view element = json.substr(begin, at - begin);
  return element.substr(0, element.find_last_not_of(kBlank) + 1);
}

}  // namespace baton::wire
