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
  std::size_t token_count;
  SegmentCache::Name name;
  SegmentCache::Name next = {};  // what followed it the last time

  std::span<const TokenId> tokens() const {
    return {reinterpret_cast<const TokenId*>(memory.get()), token_count};
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(memory.get()) + token_count * sizeof(TokenId), name.size};
  }
};

// Nobody outside knows the seed, so nobody can make segments that meet.
std::uint64_t seed() {
  static const std::uint64_t drawn = std::uint64_t{std::random_device()()} << 32 | 1U;
  return drawn;
}

std::size_t cost_of(std::size_t text_size, std::size_t token_count) {
  return text_size + token_count * sizeof(TokenId) + kBookkeeping;
}

}  // namespace

struct SegmentCache::Shard {
  using Spot = std::list<Segment>::iterator;

  mutable std::mutex mutex;
  std::size_t bound = 0;
  std::size_t bytes = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t hit_bytes = 0;
  std::list<Segment> used;  // the latest first
  std::unordered_multimap<std::uint64_t, Spot> known;

  // Any with the name, or the one with the text too.
  std::optional<Spot> find(const Name& name, std::optional<std::string_view> text) {
    const auto [begin, end] = known.equal_range(name.hash);
    for (auto at = begin; at != end; ++at) {
      const Segment& segment = *at->second;
      if (segment.name == name && (!text || segment.text() == *text)) return at->second;
    }
    return std::nullopt;
  }
  void append(Spot found, TokenIds& ids) {
    ++hits;
    hit_bytes += found->name.size;
    used.splice(used.begin(), used, found);
    const std::span<const TokenId> tokens = found->tokens();
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  void forget_oldest() {
    const auto oldest = std::prev(used.end());
    const auto [begin, end] = known.equal_range(oldest->name.hash);
    for (auto at = begin; at != end; ++at) {
      if (at->second != oldest) continue;
      known.erase(at);
      break;
    }
    bytes -= cost_of(oldest->name.size, oldest->token_count);
    used.erase(oldest);
  }
};

SegmentCache::SegmentCache(std::size_t max_bytes)
    : shard_count_(std::clamp<std::size_t>(max_bytes / kBytesPerShard, 1, kMostShards)),
      shards_(std::make_unique<Shard[]>(shard_count_)) {
  for (std::size_t at = 0; at < shard_count_; ++at) shards_[at].bound = max_bytes / shard_count_;
}

SegmentCache::~SegmentCache() = default;

SegmentCache::Name SegmentCache::name_of(std::string_view text, Place place) {
  const std::uint64_t place_seed = seed() + (place == Place::First ? 1 : 0);
  return {.hash = XXH3_64bits_withSeed(text.data(), text.size(), place_seed),
          .size = text.size(),
          .place = place};
}

SegmentCache::Shard& SegmentCache::shard_of(const Name& name) const {
  return shards_[name.hash % shard_count_];
}

// Goes on to a segment, and notes that it follows the one before.
void SegmentCache::follow(Trail& trail, const Name& name, const Name& next) {
  if (trail.last.size > 0 && trail.next != name) {
    Shard& shard = shard_of(trail.last);
    const std::lock_guard lock(shard.mutex);
    if (const auto last = shard.find(trail.last, std::nullopt)) (*last)->next = name;
  }
  trail = {.last = name, .next = next};
}

bool SegmentCache::append_known(const Name& name, std::string_view text, Trail& trail,
                                TokenIds& ids) {
  Name next;
  {
    Shard& shard = shard_of(name);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.find(name, text);
    if (!found) {
      ++shard.misses;
      return false;
    }
    shard.append(*found, ids);
    next = (*found)->next;
  }
  follow(trail, name, next);
  return true;
}

std::size_t SegmentCache::append_next(std::string_view rest, Trail& trail, TokenIds& ids) {
  const Name name = trail.next;
  if (name.size == 0 || name.size > rest.size()) return 0;
  Shard& shard = shard_of(name);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.find(name, rest.substr(0, name.size));
  if (!found) return 0;
  shard.append(*found, ids);
  trail = {.last = name, .next = (*found)->next};
  return name.size;
}

void SegmentCache::remember(const Name& name, std::string_view text, std::span<const TokenId> ids,
                            Trail& trail) {
  Shard& shard = shard_of(name);
  const std::size_t cost = cost_of(text.size(), ids.size());
  if (cost > shard.bound) {
    trail = {};
    return;
  }
  // Copied before the lock is taken.
  Segment segment{
      .memory = std::make_unique_for_overwrite<std::byte[]>(ids.size_bytes() + text.size()),
      .token_count = ids.size(),
      .name = name};
  if (!ids.empty()) std::memcpy(segment.memory.get(), ids.data(), ids.size_bytes());
  if (!text.empty()) std::memcpy(segment.memory.get() + ids.size_bytes(), text.data(), text.size());
  {
    const std::lock_guard lock(shard.mutex);
    if (!shard.find(name, text)) {
      while (shard.bytes + cost > shard.bound) shard.forget_oldest();
      shard.used.push_front(std::move(segment));
      shard.known.emplace(name.hash, shard.used.begin());
      shard.bytes += cost;
    }
  }
  follow(trail, name, {});
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
