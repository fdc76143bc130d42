// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <functional>

namespace baton {

// A source of 64 random bits a call, passed in so that tests can decide them.
using Random = std::function<std::uint64_t()>;

}  // namespace baton
