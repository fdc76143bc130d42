// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/engine_map.h"
#include "kvcache/index/index.h"

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace baton::kvcache {

// Role. For one slot, the blocks that the engine calls by more than one name: a block stays in a
//   tier until the last of its names has left it. Empty as long as each block has one name.
// Confinement. One thread at a time.
class Aliases {
 public:
  bool knows(BlockPlace block) const { return !blocks_.empty() && blocks_.contains(block); }
  // Another name for a block that is held in `held` already.
  void add(EngineHash name, BlockPlace block, std::uint32_t tiers, std::uint32_t held);
  // The tiers of a name. Requires: knows(block).
  std::uint32_t tiers(EngineHash name, BlockPlace block) const;
  void extend(EngineHash name, BlockPlace block, std::uint32_t tiers);
  struct Left {
    std::uint32_t name_tiers;  // that the name still has; none: it is forgotten
    std::uint32_t block_lost;  // that no name of the block has any more
  };
  Left take(EngineHash name, BlockPlace block, std::uint32_t tiers);

  void clear();
  std::size_t bytes() const { return blocks_.size() * 80 + tiers_.size() * 32; }

 private:
  struct Block {
    std::array<std::uint32_t, kTiers> names_in{};  // how many in each tier
    std::uint32_t names = 0;
    std::uint32_t first_tiers = 0;  // of the one name that tiers_ does not list
  };
  std::unordered_map<BlockPlace, Block> blocks_;
  std::unordered_map<EngineHash, std::uint32_t> tiers_;  // of all names but a block's first
};

}  // namespace baton::kvcache
