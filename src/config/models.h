// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "config/reader.h"

#include <vector>

namespace baton::config {

// Reads `models` and checks that the fleet makes sense as a whole.
std::vector<Model> read_models(const Section& root, Problems& problems);

}  // namespace baton::config
