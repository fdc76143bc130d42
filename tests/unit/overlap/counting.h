// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/block_hash.h"

#include <cstddef>
#include <numeric>
#include <vector>

namespace baton::overlap {

// The prompt 1, 2, 3 … of so many tokens.
inline std::vector<kvindex::TokenId> counting(std::size_t tokens) {
  std::vector<kvindex::TokenId> made(tokens);
  std::iota(made.begin(), made.end(), 1U);
  return made;
}

}  // namespace baton::overlap
