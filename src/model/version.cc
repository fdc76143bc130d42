// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/version.h"

#include <charconv>
#include <system_error>

namespace baton::model {
namespace {

// Takes a number off the front of `text`.
std::optional<std::uint16_t> take_number(std::string_view& text) {
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take_dot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const auto major = take_number(text);
  if (!major || !take_dot(text)) return std::nullopt;
  const auto minor = take_number(text);
  if (!minor) return std::nullopt;
  Version version{.major = *major, .minor = *minor, .patch = 0};
  if (take_dot(text) && !text.empty() && is_digit(text.front())) {
    const auto patch = take_number(text);
    if (!patch) return std::nullopt;
    version.patch = *patch;
  }
  return version;
}

}  // namespace baton::model
