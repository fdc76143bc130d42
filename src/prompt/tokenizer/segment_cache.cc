// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/segment_cache.h"

#define XXH_INLINE_ALL
#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <random>
#include <unordered_map>
#include <xxhash.h>

namespace baton::prompt {
namespace {

// Enough that the threads of a CPU pool rarely meet. A small cache is not split: a segment has to
// fit into a part of it.
constexpr std::size_t kMostShards = 16;
constexpr std::size_t kBytesPerShard = std::size_t{1} << 20;

// What the containers add to a segment: a list node, a hash node, and its share of the buckets.
constexpr std::size_t kBookkeeping = 160;

// Text and tokens in one allocation, the tokens first.
struct Segment {
  std::unique_ptr<std::byte[]> memory;
  std::size_t text_size;
  std::size_t token_count;
  std::uint64_t hash;
  Place place;

  std::span<const TokenId> tokens() const {
    return {reinterpret_cast<const TokenId*>(memory.get()), token_count};
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(memory.get()) + token_count * sizeof(TokenId), text_size};
  }
};

// Nobody outside knows the seed, so nobody can make segments that meet.
std::uint64_t seed() {
  static const std::uint64_t drawn = std::uint64_t{std::random_device()()} << 32 | 1U;
  return drawn;
}

std::uint64_t hash_of(std::string_view text, Place place) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed() + (place == Place::First ? 1 : 0));
}

std::size_t cost_of(std::size_t text_size, std::size_t token_count) {
  return text_size + token_count * sizeof(TokenId) + kBookkeeping;
}

}  // namespace

struct SegmentCache::Shard {
  mutable std::mutex mutex;
  std::size_t bound = 0;
  std::size_t bytes = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t hit_bytes = 0;
  std::list<Segment> used;  // the latest first
  std::unordered_multimap<std::uint64_t, std::list<Segment>::iterator> known;

  std::optional<std::list<Segment>::iterator> find(std::uint64_t hash, std::string_view text,
                                                   Place place) {
    const auto [begin, end] = known.equal_range(hash);
    for (auto at = begin; at != end; ++at) {
      if (at->second->place == place && at->second->text() == text) return at->second;
    }
    return std::nullopt;
  }
  void forget_oldest() {
    const auto oldest = std::prev(used.end());
    const auto [begin, end] = known.equal_range(oldest->hash);
    for (auto at = begin; at != end; ++at) {
      if (at->second != oldest) continue;
      known.erase(at);
      break;
    }
    bytes -= cost_of(oldest->text_size, oldest->token_count);
    used.erase(oldest);
  }
};

SegmentCache::SegmentCache(std::size_t max_bytes)
    : shard_count_(std::clamp<std::size_t>(max_bytes / kBytesPerShard, 1, kMostShards)),
      shards_(std::make_unique<Shard[]>(shard_count_)) {
  for (std::size_t at = 0; at < shard_count_; ++at) shards_[at].bound = max_bytes / shard_count_;
}

SegmentCache::~SegmentCache() = default;

bool SegmentCache::append_known(std::string_view text, Place place, TokenIds& ids) {
  const std::uint64_t hash = hash_of(text, place);
  Shard& shard = shards_[hash % shard_count_];
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.find(hash, text, place);
  if (!found) {
    ++shard.misses;
    return false;
  }
  ++shard.hits;
  shard.hit_bytes += text.size();
  shard.used.splice(shard.used.begin(), shard.used, *found);
  const std::span<const TokenId> tokens = (*found)->tokens();
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  return true;
}

void SegmentCache::remember(std::string_view text, Place place, std::span<const TokenId> ids) {
  const std::uint64_t hash = hash_of(text, place);
  Shard& shard = shards_[hash % shard_count_];
  const std::size_t cost = cost_of(text.size(), ids.size());
  if (cost > shard.bound) return;
  // Copied before the lock is taken.
  Segment segment{
      .memory = std::make_unique_for_overwrite<std::byte[]>(ids.size_bytes() + text.size()),
      .text_size = text.size(),
      .token_count = ids.size(),
      .hash = hash,
      .place = place};
  if (!ids.empty()) std::memcpy(segment.memory.get(), ids.data(), ids.size_bytes());
  if (!text.empty()) std::memcpy(segment.memory.get() + ids.size_bytes(), text.data(), text.size());

  const std::lock_guard lock(shard.mutex);
  if (shard.find(hash, text, place)) return;
  while (shard.bytes + cost > shard.bound) shard.forget_oldest();
  shard.used.push_front(std::move(segment));
  shard.known.emplace(hash, shard.used.begin());
  shard.bytes += cost;
}

SegmentCache::Stats SegmentCache::stats() const {
  Stats stats{};
  for (std::size_t at = 0; at < shard_count_; ++at) {
    const Shard& shard = shards_[at];
    const std::lock_guard lock(shard.mutex);
    stats.hits += shard.hits;
    stats.misses += shard.misses;
    stats.hit_bytes += shard.hit_bytes;
    stats.bytes += shard.bytes;
  }
  return stats;
}

}  // namespace baton::prompt
