// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/secret_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace baton::config {

Parsed<std::string> read_secret_file(const std::string& path) {
  constexpr std::size_t kMost = 1024 * 1024;
  std::error_code error;
  std::ifstream in;
  // Only a regular file: a pipe or a device may never end.
  if (std::filesystem::is_regular_file(path, error)) in.open(path, std::ios::binary);
  if (!in.is_open()) {
    return std::unexpected(
        fmt::format("cannot read {}; check the path and its permissions", shown(path)));
  }
  std::string text(kMost + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMost)
    return std::unexpected("names a file larger than 1 MiB; is it the right one?");
  return text;
}

}  // namespace baton::config
