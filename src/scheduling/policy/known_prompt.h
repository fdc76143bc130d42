// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/policy/active_blocks.h"
#include "scheduling/policy/rank_load.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::scheduling {

// The facts of a prompt that choosing its workers needs.
struct KnownPrompt {
  // How workers with blocks of one size cut it.
  struct Shape {
    std::uint32_t block_size = 0;
    BlockChain chain;
  };
  // A rank that holds the beginning of it.
  struct Hit {
    RankKey key;
    std::uint32_t block_size = 0;
    // Blocks: on the device, on the host beyond those, on disk or outside beyond those.
    std::uint32_t device = 0;
    std::uint32_t host = 0;
    std::uint32_t disk = 0;
  };

  std::uint64_t tokens = 0;  // an estimate if the tokens were not counted
  std::vector<Shape> shapes;
  std::vector<Hit> hits;
};

}  // namespace baton::scheduling
