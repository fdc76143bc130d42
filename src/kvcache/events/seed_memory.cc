// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/seed_memory.h"

namespace baton::kvcache {
namespace {

// A table with less than this fraction in use shrinks.
constexpr std::size_t kEmptiest = 8;
constexpr std::size_t kSmallest = 1024;

std::uint8_t bit(Tier tier) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(tier)); }

}  // namespace

std::optional<SeedMemory::Seed> SeedMemory::find(EngineHash block) const {
  if (entries_.empty()) return std::nullopt;
  const auto found = entries_.find(block);
  if (found == entries_.end()) return std::nullopt;
  return Seed{.value = found->second.seed, .ambiguous = found->second.ambiguous};
}

void SeedMemory::stored(std::span<const NewBlock> blocks, std::uint64_t seed, Tier tier) {
  if (seed == plain_ && entries_.empty()) return;
  for (const NewBlock& block : blocks) {
    if (seed == plain_ && !entries_.contains(block.engine)) continue;
    Entry& entry = entries_.try_emplace(block.engine, Entry{.seed = seed}).first->second;
    if (entry.seed != seed) entry.ambiguous = true;
    entry.tiers |= bit(tier);
  }
}

void SeedMemory::copied(std::span<const EngineHash> blocks, Tier tier) {
  if (entries_.empty()) return;
  for (const EngineHash block : blocks) {
    if (const auto found = entries_.find(block); found != entries_.end())
      found->second.tiers |= bit(tier);
  }
}

void SeedMemory::removed(std::span<const EngineHash> blocks, Tier tier) {
  if (entries_.empty()) return;
  for (const EngineHash block : blocks) {
    const auto found = entries_.find(block);
    if (found == entries_.end()) continue;
    found->second.tiers &= static_cast<std::uint8_t>(~bit(tier));
    if (found->second.tiers == 0) entries_.erase(found);
  }
  if (entries_.bucket_count() > kSmallest && entries_.size() * kEmptiest < entries_.bucket_count())
    entries_.rehash(0);
}

void SeedMemory::clear() { entries_ = {}; }

}  // namespace baton::kvcache
