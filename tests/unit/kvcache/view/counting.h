// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/block_hash.h"

#include <cstddef>
#include <numeric>
#include <vector>

namespace baton::kvcache {

// The prompt 1, 2, 3 … of so many tokens.
inline std::vector<TokenId> counting(std::size_t tokens) {
  std::vector<TokenId> made(tokens);
  std::iota(made.begin(), made.end(), 1U);
  return made;
}

}  // namespace baton::kvcache
