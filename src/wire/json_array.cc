// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_array.h"

#include "wire/json_text.h"

namespace baton::wire {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

// Index past the string that starts at `at`.
std::size_t skip_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size(); at += 2) {
    at += plain_size(json.substr(at));
    if (at >= json.size() || json[at] == '"') break;
  }
  return at + 1;
}

// Index of the comma or bracket behind the element that starts at `at`.
std::size_t skip_element(std::string_view json, std::size_t at) {
  std::size_t depth = 0;
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
  return at;
}

}  // namespace

std::vector<std::string_view> elements(std::string_view json, std::size_t limit) {
  std::vector<std::string_view> found;
  std::size_t at = json.find_first_not_of(kBlank);
  if (at == std::string_view::npos || json[at] != '[') return found;
  at = json.find_first_not_of(kBlank, at + 1);
  while (at < json.size() && json[at] != ']' && found.size() < limit) {
    const std::size_t end = skip_element(json, at);
    const std::string_view element = json.substr(at, end - at);
    found.push_back(element.substr(0, element.find_last_not_of(kBlank) + 1));
    if (end >= json.size() || json[end] == ']') break;
    at = json.find_first_not_of(kBlank, end + 1);
  }
  return found;
}

std::optional<std::string_view> first_element(std::string_view json) {
  const auto found = elements(json, 1);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

}  // namespace baton::wire
