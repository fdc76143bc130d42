// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace baton::kvcache {

// Role. Remembers the blocks that were hashed with another seed than that of the base model without
//   a salt: their successors are, too, and the engine does not repeat the seed.
// Confinement. One thread.
// Invariants. Remembers a block as long as a tier has it, and never more than `most`. Two seeds for
//   one block make it ambiguous for as long as it is remembered.
class SeedMemory {
 public:
  static constexpr std::size_t kMost = 1'000'000;
  explicit SeedMemory(std::size_t most = kMost) : most_(most) {}

  bool has_room(std::size_t blocks, std::uint64_t seed) const {
    return seed == plain_ || entries_.size() + blocks <= most_;
  }
  std::size_t size() const { return entries_.size(); }

  struct Seed {
    std::uint64_t value = 0;
    bool ambiguous = false;
  };
  // Nothing: as far as is known, the plain one.
  std::optional<Seed> find(EngineHash block) const;

  // Requires: room for them.
  void stored(std::span<const NewBlock> blocks, std::uint64_t seed, Tier tier);
  void copied(std::span<const EngineHash> blocks, Tier tier);
  void removed(std::span<const EngineHash> blocks, Tier tier);
  void clear();

 private:
  struct Entry {
    std::uint64_t seed = 0;
    std::uint8_t tiers = 0;
    bool ambiguous = false;
  };

  std::size_t most_;
  std::uint64_t plain_ = seed_of({});
  boost::unordered_flat_map<EngineHash, Entry> entries_;
};

}  // namespace baton::kvcache
