// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/file_reader.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace baton::tokenizer {

std::expected<std::optional<std::string>, std::string> read_file(const std::filesystem::path& path,
                                                                 std::size_t most) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return std::nullopt;
  if (error) return std::unexpected(error.message());
  if (!std::filesystem::is_regular_file(status)) return std::unexpected("it is not a regular file");
  const auto size = std::filesystem::file_size(path, error);
  if (error) return std::unexpected(error.message());
  if (size > most) return std::unexpected(fmt::format("it is larger than {} bytes", most));
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected("it cannot be opened");
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file) return std::unexpected("it ends early");
  return text;
}

}  // namespace baton::tokenizer
