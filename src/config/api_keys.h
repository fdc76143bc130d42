// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/reader.h"

#include <string>
#include <string_view>
#include <vector>

namespace baton::config {

// The keys of the list `name` and of the file that `name`_file names. `without` completes the
// message for a source without a key: "to …". No problem ever shows a key, or a part of one.
std::vector<std::string> read_key_list(const Section& root, const std::string& name,
                                       std::string_view without, Problems& problems);

}  // namespace baton::config
