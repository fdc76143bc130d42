// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/one_of.h"

#include "config/values.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace baton::config {

CLI::Validator one_of(std::vector<std::string> names) {
  std::string listed = fmt::format("{{{}}}", fmt::join(names, ","));
  const auto check = [known = std::move(names)](const std::string& text) {
    if (std::ranges::find(known, text) != known.end()) return std::string();
    return unknown_choice(text, std::vector<std::string_view>(known.begin(), known.end()));
  };
  return {check, std::move(listed)};
}

}  // namespace baton::config
