// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/document.h"
#include "config/load.h"
#include "config/reader.h"

#include <span>

namespace baton::config {

// Writes the command line's values into the document before it is read: a flag is checked by the
// same rules as the file, and a key it replaces is not checked at all.
void apply_overrides(Node& root, std::span<const Override> overrides, Problems& problems);

}  // namespace baton::config
