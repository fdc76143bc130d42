// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/ready_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace baton {

Result<void> write_ready_file(const std::string& path, std::string_view address) {
  const std::string unfinished = path + ".tmp";
  std::ofstream file(unfinished, std::ios::trunc);
  file << address << '\n';
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error) {
    return fail(
        Errc::Internal,
        fmt::format("cannot write the ready file {}: is its folder there and writable?", path));
  }
  return {};
}

}  // namespace baton
