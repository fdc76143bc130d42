// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/pre_tokenizer.h"
#include "libs/tokenizer/token.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace baton::tokenizer {

// Role. Caches the tokens of segments: segments of text that are cut where no token reaches
//   across. A segment's tokens depend on its own text only, so a conversation's next turn costs
//   only its new text.
// Confinement. Any thread; locks are held for a look-up or an insertion.
// Invariants. A hit requires equal text: neither an equal hash nor the order of earlier segments is
//   enough. Its memory stays under its bound. It is sharded by hash; each shard evicts the least
//   recently used segment.
class SegmentCache {
 public:
  struct Stats {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t hit_bytes = 0;  // of text that needed no tokenizing
    std::size_t bytes = 0;        // held now, bookkeeping included
    Stats& operator+=(const Stats& other) {
      hits += other.hits;
      misses += other.misses;
      hit_bytes += other.hit_bytes;
      bytes += other.bytes;
      return *this;
    }
  };

  // Names a segment, known or not.
  struct Name {
    std::uint64_t hash = 0;
    std::size_t size = 0;  // of the text; 0: none
    Place place = Place::Later;
    bool operator==(const Name&) const = default;
  };
  // How one comes through a text, segment by segment: behind which one stands, and what followed it
  // the last time.
  struct Cursor {
    Name last = {};
    Name next = {};
  };

  // Shorter texts are not worth the look-up.
  static constexpr std::size_t kShortest = 64;

  explicit SegmentCache(std::size_t max_bytes);
  ~SegmentCache();
  SegmentCache(const SegmentCache&) = delete;
  SegmentCache& operator=(const SegmentCache&) = delete;

  static Name name_of(std::string_view text, Place place);
  // Appends the tokens where the segment is known. Requires: the text's name.
  bool append_known(const Name& name, std::string_view text, Cursor& cursor, TokenIds& ids);
  void remember(const Name& name, std::string_view text, std::span<const TokenId> ids,
                Cursor& cursor);
  // The same for a segment on its own.
  bool append_known(std::string_view text, Place place, TokenIds& ids) {
    Cursor none;
    return append_known(name_of(text, place), text, none, ids);
  }
  void remember(std::string_view text, Place place, std::span<const TokenId> ids) {
    Cursor none;
    remember(name_of(text, place), text, ids, none);
  }
  // Appends the tokens of what followed the last time, where the text goes on with it: nothing else
  // of the text needs to be looked at. Returns how long that is; 0 where it does not.
  std::size_t append_next(std::string_view rest, Cursor& cursor, TokenIds& ids);
  Stats stats() const;

 private:
  struct Shard;
  Shard& shard_of(const Name& name) const;
  void follow(Cursor& cursor, const Name& name, const Name& next);

  std::size_t shard_count_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace baton::tokenizer
