// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/text/pre_tokenizer.h"
#include "prompt/tokenizer/token.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace baton::prompt {

// Role. Remembers the tokens of segments: stretches of text that are cut where no token reaches
//   across, so that what a segment gives depends on nothing but its own text, and a conversation's
//   next turn costs what is new in it.
// Confinement. Any thread; locks are held for a look-up or an insertion.
// Invariants. A hit is decided by comparing the whole text, never by a hash alone. What it holds
//   stays under the bound it was made with. It is kept in parts by hash; of a part, the longest
//   unused goes first.
class SegmentCache {
 public:
  struct Stats {
    std::uint64_t hits;
    std::uint64_t misses;
    std::uint64_t hit_bytes;  // of text that needed no tokenizing
    std::size_t bytes;        // held now, bookkeeping included
  };

  // Shorter texts are not worth the look-up.
  static constexpr std::size_t kShortest = 64;

  explicit SegmentCache(std::size_t max_bytes);
  ~SegmentCache();
  SegmentCache(const SegmentCache&) = delete;
  SegmentCache& operator=(const SegmentCache&) = delete;

  // Appends the tokens where the segment is known.
  bool append_known(std::string_view text, Place place, TokenIds& ids);
  void remember(std::string_view text, Place place, std::span<const TokenId> ids);
  Stats stats() const;

 private:
  struct Shard;
  std::size_t shard_count_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace baton::prompt
