// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/reader.h"

#include <string>
#include <vector>

namespace baton::config {

// The keys of `api_keys` and of the file that `api_keys_file` names. No problem ever shows a key,
// or a part of one.
std::vector<std::string> read_api_keys(const Section& root, Problems& problems);

}  // namespace baton::config
