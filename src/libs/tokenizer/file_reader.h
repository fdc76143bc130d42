// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace baton::tokenizer {

// Reads a whole file of at most `most` bytes; nullopt if there is none. The error says why the file
// cannot be read, in words that fit behind its name and a colon.
using FileReader = std::function<std::expected<std::optional<std::string>, std::string>(
    const std::filesystem::path& path, std::size_t most)>;

// The reader for a caller that trusts the folder: it follows links, and refuses what is not a regular
// file.
std::expected<std::optional<std::string>, std::string> read_file(const std::filesystem::path& path,
                                                                 std::size_t most);

}  // namespace baton::tokenizer
