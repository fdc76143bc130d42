// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/segment_cache.h"

#include "libs/locks/mutex.h"

#define XXH_INLINE_ALL
#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <random>
#include <type_traits>
#include <utility>
#include <xxhash.h>

namespace baton::tokenizer {
namespace {

// Threads rarely want the same part at once.
constexpr std::size_t kMostShards = 16;
constexpr std::size_t kBytesPerShard = std::size_t{1} << 20;
// Bytes of a segment beside its text and tokens: its header, its entry in the hash table, and the
// allocator's overhead.
constexpr std::size_t kBookkeeping = 152;

// Role. A text and its tokens, in one piece of memory: the tokens stand behind it, the text behind
//   them.
class Segment : public boost::intrusive::list_base_hook<> {
 public:
  struct Delete {
    void operator()(Segment* segment) const {
      segment->~Segment();
      ::operator delete(segment);
    }
  };
  using Owner = std::unique_ptr<Segment, Delete>;

  static Owner make(const SegmentCache::Name& name, std::string_view text,
                    std::span<const TokenId> ids) {
    static_assert(alignof(TokenId) <= alignof(Segment));
    void* const memory = ::operator new(sizeof(Segment) + ids.size_bytes() + text.size());
    Owner segment(new (memory) Segment(name, ids.size()));
    if (!ids.empty()) std::memcpy(segment->payload(), ids.data(), ids.size_bytes());
    if (!text.empty()) std::memcpy(segment->payload() + ids.size_bytes(), text.data(), text.size());
    return segment;
  }

  std::span<const TokenId> tokens() const {
    return {reinterpret_cast<const TokenId*>(payload()), token_count_};
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(payload()) + token_count_ * sizeof(TokenId), name.size};
  }
  std::size_t cost() const { return cost_of(name.size, token_count_); }
  static std::size_t cost_of(std::size_t text_size, std::size_t token_count) {
    return text_size + token_count * sizeof(TokenId) + kBookkeeping;
  }

  const SegmentCache::Name name;
  SegmentCache::Name next = {};  // what followed it the last time

 private:
  Segment(const SegmentCache::Name& its_name, std::size_t token_count)
      : name(its_name), token_count_(token_count) {}
  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* payload() const { return reinterpret_cast<const std::byte*>(this + 1); }

  const std::size_t token_count_;
};

// Names are hashes already.
struct AsItIs {
  using is_avalanching = std::true_type;
  std::size_t operator()(std::uint64_t hash) const { return hash; }
};

// A random seed, so that clients cannot choose texts with colliding hashes.
std::uint64_t seed() {
  static const std::uint64_t drawn = std::uint64_t{std::random_device()()} << 32 | 1U;
  return drawn;
}

}  // namespace

struct SegmentCache::Shard {
  mutable locks::Mutex mutex;
  std::size_t bound = 0;
  std::size_t bytes GUARDED_BY(mutex) = 0;
  std::uint64_t hits GUARDED_BY(mutex) = 0;
  std::uint64_t misses GUARDED_BY(mutex) = 0;
  std::uint64_t hit_bytes GUARDED_BY(mutex) = 0;
  boost::unordered_flat_map<std::uint64_t, Segment::Owner, AsItIs> known GUARDED_BY(mutex);
  // The latest first. Declared behind `known`: it lets go of them before they are freed.
  boost::intrusive::list<Segment, boost::intrusive::constant_time_size<false>> used
      GUARDED_BY(mutex);

  // Null where there is none with the name.
  Segment* find(const Name& name) const REQUIRES(mutex) {
    const auto found = known.find(name.hash);
    return found != known.end() && found->second->name == name ? found->second.get() : nullptr;
  }
  // The same for one with the text too.
  Segment* find(const Name& name, std::string_view text) const REQUIRES(mutex) {
    Segment* const found = find(name);
    return found != nullptr && found->text() == text ? found : nullptr;
  }
  void append(Segment& found, TokenIds& ids) REQUIRES(mutex) {
    ++hits;
    hit_bytes += found.name.size;
    used.splice(used.begin(), used, used.iterator_to(found));
    const std::span<const TokenId> tokens = found.tokens();
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  // Requires: it costs no more than the bound.
  void keep(Segment::Owner segment) REQUIRES(mutex) {
    // Two texts of one hash will hardly ever be seen; the later one stays.
    forget(segment->name.hash);
    while (bytes + segment->cost() > bound) forget(used.back().name.hash);
    // The insertion can fail, so it comes first: a segment must not be linked without being kept.
    Segment& kept = *known.emplace(segment->name.hash, std::move(segment)).first->second;
    bytes += kept.cost();
    used.push_front(kept);
  }
  void forget(std::uint64_t hash) REQUIRES(mutex) {
    const auto found = known.find(hash);
    if (found == known.end()) return;
    bytes -= found->second->cost();
    used.erase(used.iterator_to(*found->second));
    known.erase(found);
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
  return shards_[(name.hash >> 32U) % shard_count_];
}

// Remembers what came next, where that is not what came the last time.
void SegmentCache::follow(Cursor& cursor, const Name& name, const Name& next) {
  if (cursor.last.size > 0 && cursor.next != name) {
    Shard& shard = shard_of(cursor.last);
    const locks::Lock lock(shard.mutex);
    if (Segment* const last = shard.find(cursor.last)) last->next = name;
  }
  cursor = {.last = name, .next = next};
}

bool SegmentCache::append_known(const Name& name, std::string_view text, Cursor& cursor,
                                TokenIds& ids) {
  Name next;
  {
    Shard& shard = shard_of(name);
    const locks::Lock lock(shard.mutex);
    Segment* const found = shard.find(name, text);
    if (found == nullptr) {
      ++shard.misses;
      return false;
    }
    shard.append(*found, ids);
    next = found->next;
  }
  follow(cursor, name, next);
  return true;
}

std::size_t SegmentCache::append_next(std::string_view rest, Cursor& cursor, TokenIds& ids) {
  const Name name = cursor.next;
  if (name.size == 0 || name.size > rest.size()) return 0;
  Shard& shard = shard_of(name);
  const locks::Lock lock(shard.mutex);
  Segment* const found = shard.find(name, rest.substr(0, name.size));
  if (found == nullptr) return 0;
  shard.append(*found, ids);
  cursor = {.last = name, .next = found->next};
  return name.size;
}

void SegmentCache::remember(const Name& name, std::string_view text, std::span<const TokenId> ids,
                            Cursor& cursor) {
  Shard& shard = shard_of(name);
  if (Segment::cost_of(text.size(), ids.size()) > shard.bound) {
    cursor = {};
    return;
  }
  Segment::Owner segment = Segment::make(name, text, ids);  // copied before the lock is taken
  {
    const locks::Lock lock(shard.mutex);
    if (shard.find(name, text) == nullptr) shard.keep(std::move(segment));
  }
  follow(cursor, name, {});
}

SegmentCache::Stats SegmentCache::stats() const {
  Stats stats{};
  for (std::size_t at = 0; at < shard_count_; ++at) {
    const Shard& shard = shards_[at];
    const locks::Lock lock(shard.mutex);
    stats.hits += shard.hits;
    stats.misses += shard.misses;
    stats.hit_bytes += shard.hit_bytes;
    stats.bytes += shard.bytes;
  }
  return stats;
}

}  // namespace baton::tokenizer
