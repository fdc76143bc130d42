// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <cstddef>
#include <optional>
#include <string>

namespace baton {

// All of a regular file of at most `most` bytes; nullopt where there is none. Whatever else a path
// may lead to (a pipe, a device, a directory) is refused and never waited for, so that a thread
// that must not stop may read a file that others have put there. The error says why, in words that
// fit behind the path and a colon.
Result<std::optional<std::string>> read_regular_file(const std::string& path, std::size_t most);

}  // namespace baton
