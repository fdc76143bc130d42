// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>

namespace baton::app {

// Raises the process's soft limit of descriptors to its hard limit: every stream needs one or two,
// and the usual soft limit is 1,024.
void raise_descriptor_limit();
// The limit in force.
std::size_t descriptor_limit();

}  // namespace baton::app
