// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <filesystem>
#include <optional>
#include <string>

namespace baton::prompt {

// All of a file; nullopt where there is none. A file that is there but cannot be read, or is larger
// than any file of its kind, is an InvalidRequest that names it.
Result<std::optional<std::string>> file_text(const std::filesystem::path& path);

}  // namespace baton::prompt
