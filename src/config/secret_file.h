// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/values.h"

#include <string>

namespace baton::config {

// The text of a file with keys or a password: a regular one of at most 1 MiB. Errors never show a
// part of it.
Parsed<std::string> read_secret_file(const std::string& path);

}  // namespace baton::config
