// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/secret_file.h"

#include "core/regular_file.h"

#include <fmt/format.h>

#include <utility>

namespace baton::config {

Parsed<std::string> read_secret_file(const std::string& path) {
  constexpr std::size_t kMost = 1024 * 1024;
  auto text = read_regular_file(path, kMost);
  if (text && *text) return **std::move(text);
  return std::unexpected(fmt::format("cannot read {}: {}; check the path and its permissions",
                                     shown(path),
                                     text ? "there is no such file" : text.error().message()));
}

}  // namespace baton::config
