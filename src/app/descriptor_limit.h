// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>

namespace baton::app {

// As many descriptors as this process may have: every stream needs one or two, and the usual soft
// limit is 1,024.
void raise_descriptor_limit();
// And so many it may have.
std::size_t descriptor_limit();

}  // namespace baton::app
