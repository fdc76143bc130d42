// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#define XXH_INLINE_ALL  // a block is hashed in 7 ns instead of 10
#include "kvcache/index/block_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <xxhash.h>

namespace baton::kvcache {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are hashed as little-endian");

constexpr std::uint64_t kSeed = 1337;
constexpr std::uint64_t kLoraSeed = 0;
constexpr std::uint64_t kSaltSeed = 1;

}  // namespace

std::uint64_t seed_of(const Namespace& name_space) {
  std::uint64_t seed = kSeed;
  const auto mix = [&seed](std::string_view text, std::uint64_t by) {
    if (!text.empty()) seed += XXH3_64bits_withSeed(text.data(), text.size(), by);
  };
  mix(name_space.lora, kLoraSeed);
  mix(name_space.salt, kSaltSeed);
  return seed;
}

BlockHash hash_block(std::span<const TokenId> tokens, std::uint64_t seed,
                     std::span<const std::uint64_t> multimodal) {
  if (multimodal.empty()) return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
  std::vector<std::uint64_t> sorted(multimodal.begin(), multimodal.end());
  std::ranges::sort(sorted);
  std::vector<std::byte> bytes(tokens.size_bytes() + sorted.size() * sizeof(std::uint64_t));
  if (!tokens.empty()) std::memcpy(bytes.data(), tokens.data(), tokens.size_bytes());
  std::memcpy(bytes.data() + tokens.size_bytes(), sorted.data(),
              sorted.size() * sizeof(std::uint64_t));
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

SequenceHash next_sequence(SequenceHash before, BlockHash block) {
  const std::array<std::uint64_t, 2> both{before, block};
  return XXH3_64bits_withSeed(both.data(), sizeof(both), kSeed);
}

std::vector<SequenceHash> sequence_hashes(std::span<const TokenId> tokens, BlockShape shape,
                                          std::uint64_t seed) {
  const std::size_t span = std::size_t{shape.size} + (shape.bigram ? 1 : 0);
  std::vector<SequenceHash> hashes;
  if (tokens.size() < span) return hashes;
  hashes.reserve((tokens.size() - span) / shape.size + 1);
  for (std::size_t begin = 0; begin + span <= tokens.size(); begin += shape.size) {
    const BlockHash block = hash_block(tokens.subspan(begin, span), seed);
    hashes.push_back(hashes.empty() ? first_sequence(block) : next_sequence(hashes.back(), block));
  }
  return hashes;
}

}  // namespace baton::kvcache
