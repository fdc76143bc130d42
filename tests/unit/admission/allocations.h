// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>

namespace baton::admission {

// Bytes that operator new has given out in this program and not got back.
std::size_t allocated_bytes();

}  // namespace baton::admission
