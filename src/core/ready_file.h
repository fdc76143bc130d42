// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>

namespace baton {

// Writes an address and a line end to `path` atomically: a reader that finds the file finds all of
// it.
Result<void> write_ready_file(const std::string& path, std::string_view address);

}  // namespace baton
