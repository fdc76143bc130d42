// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace baton::scheduling {

// Weight of KV blocks in fixed point, so that sums are exact in any order. Enough for 2^31 blocks.
using BlockWeight = std::int64_t;
inline constexpr BlockWeight kWholeBlock = BlockWeight{1} << 32;

// `share` from 0 to 1.
inline BlockWeight weight_of(double share) {
  return static_cast<BlockWeight>(std::clamp(share, 0.0, 1.0) * static_cast<double>(kWholeBlock));
}
inline double in_blocks(BlockWeight weight) {
  return static_cast<double>(weight) / static_cast<double>(kWholeBlock);
}

}  // namespace baton::scheduling
