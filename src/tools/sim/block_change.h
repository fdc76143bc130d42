// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/engine_hash.h"

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace baton::sim {

enum class Tier { Device, Host };

// Neighbours in one sequence that can be found from now on.
struct BlocksStored {
  std::optional<BlockHash> parent = {};  // of the first
  std::vector<BlockHash> hashes = {};
  std::vector<TokenId> tokens = {};  // of all of them
  CacheScope scope = {};
  Tier tier = Tier::Device;
};

struct BlockRemoved {
  BlockHash hash = {};
  Tier tier = Tier::Device;
};

struct CacheCleared {};

using BlockChange = std::variant<BlocksStored, BlockRemoved, CacheCleared>;

// One block that can be found.
struct CachedBlock {
  BlockHash hash = {};
  std::optional<BlockHash> parent = {};
  std::vector<TokenId> tokens = {};
  CacheScope scope = {};
  Tier tier = Tier::Device;
};

}  // namespace baton::sim
