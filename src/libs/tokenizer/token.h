// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <vector>

namespace baton::tokenizer {

using TokenId = std::uint32_t;
using TokenIds = std::vector<TokenId>;

}  // namespace baton::tokenizer
