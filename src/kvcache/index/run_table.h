// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/run.h"
#include "kvcache/index/slab.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace baton::kvcache {

// Role. Finds a shard's runs by their keys: four bytes for each, in segments of a kilobyte.
// Confinement. One thread at a time.
// Invariants. No call touches more than a segment or two, however many runs there are, except for
//   the directory of segments (eight bytes for some 150 runs), which doubles and halves. A segment
//   is a row of cache lines with room for 15 runs each; a run that does not fit into its own line
//   goes to the next, and the lines it passed over count it, so that its removal reads no other
//   key.
class RunTable {
 public:
  RunTable(PageArena& arena, const RunSlab& runs);

  RunNumber find(SequenceHash key) const;
  // Requires: no run with that key is in it. False: too many keys of the same bits, not taken.
  bool insert(RunNumber run);
  void erase(RunNumber run);

  // For a later find(): fetches the line where the search begins; then the run, by that line.
  void prefetch_line(SequenceHash key) const;
  void prefetch_run(SequenceHash key) const;

  std::size_t bytes() const { return directory_.capacity() * sizeof(directory_[0]); }

 private:
  static constexpr std::uint32_t kLines = 16;
  static constexpr std::uint32_t kPerLine = 15;
  static constexpr unsigned kEntries = (1U << kPerLine) - 1;
  static constexpr std::uint32_t kMost = 210;  // of 240: more are split
  static constexpr std::uint32_t kFew = 70;    // two halves with no more are joined
  static constexpr unsigned kTagBits = 6;
  static constexpr std::uint32_t kTagMask = (1U << kTagBits) - 1;
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;

  struct alignas(64) Line {
    std::array<std::uint32_t, kPerLine> entries;  // run, and some bits of its hash
    std::uint8_t passed;                          // how many belong here and are further on
    std::uint8_t detail;                          // see Segment
    std::uint16_t half;

    // A bit for each entry whose bits under `mask` are those of `wanted`.
    unsigned like(std::uint32_t mask, std::uint32_t wanted) const;
  };
  static_assert(sizeof(Line) == 64);

  struct Segment {
    std::array<Line, kLines> lines;

    // Stored in spare bytes of the lines.
    std::uint8_t& count() { return lines[0].detail; }
    std::uint8_t& depth() { return lines[1].detail; }
    std::uint32_t number() const {
      return static_cast<std::uint32_t>(lines[1].half) << 16 | lines[0].half;
    }
  };

  Segment* new_segment(unsigned depth);
  void free_segment(Segment* segment);
  std::size_t place_of(std::uint64_t hash) const {
    return depth_ == 0 ? 0 : static_cast<std::size_t>(hash >> (64 - depth_));
  }
  // From other bits than the segment's.
  static std::uint32_t line_of(std::uint64_t hash) { return hash >> 32 & (kLines - 1); }
  static std::uint32_t tag_of(std::uint64_t hash) { return hash >> 36 & kTagMask; }
  static void put(Segment& segment, std::uint64_t hash, RunNumber run);
  void move_all(Segment& from, Segment& low, Segment& high, std::uint64_t bit) const;
  void point(std::size_t place, unsigned depth, Segment* segment);
  bool split(std::size_t place);
  void join(std::size_t place);

  const RunSlab& runs_;
  Slab slab_;
  std::vector<Segment*> directory_;  // by the first depth_ bits of the hash
  unsigned depth_ = 0;
  std::size_t segments_ = 0;
  std::array<std::uint32_t, 64> at_depth_{};  // how many segments there are of each depth
};

#if defined(__SSE2__)
inline unsigned RunTable::Line::like(std::uint32_t mask, std::uint32_t wanted) const {
  const auto* words = reinterpret_cast<const __m128i*>(this);
  const __m128i masks = _mm_set1_epi32(static_cast<int>(mask));
  const __m128i wants = _mm_set1_epi32(static_cast<int>(wanted));
  const auto four = [&](int i) {
    return _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(words + i), masks), wants);
  };
  const __m128i first = _mm_packs_epi32(four(0), four(1));
  const __m128i second = _mm_packs_epi32(four(2), four(3));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(first, second))) & kEntries;
}
#else
inline unsigned RunTable::Line::like(std::uint32_t mask, std::uint32_t wanted) const {
  unsigned found = 0;
  for (unsigned i = 0; i < kPerLine; ++i) {
    found |= static_cast<unsigned>((entries[i] & mask) == wanted) << i;
  }
  return found;
}
#endif

inline RunNumber RunTable::find(SequenceHash key) const {
  if (directory_.empty()) return kNoRun;
  const std::uint64_t hash = mix(key);
  const Segment& segment = *directory_[place_of(hash)];
  std::uint32_t at = line_of(hash);
  for (std::uint32_t i = 0; i < kLines; ++i) {
    const Line& line = segment.lines[at];
    for (unsigned found = line.like(kTagMask, tag_of(hash)); found != 0; found &= found - 1) {
      const std::uint32_t entry = line.entries[static_cast<std::size_t>(std::countr_zero(found))];
      if (entry != kEmpty && runs_[entry >> kTagBits].key == key) return entry >> kTagBits;
    }
    if (line.passed == 0) break;
    at = (at + 1) % kLines;
  }
  return kNoRun;
}

inline void RunTable::prefetch_line(SequenceHash key) const {
  if (directory_.empty()) return;
  const std::uint64_t hash = mix(key);
  const Segment& segment = *directory_[place_of(hash)];
  __builtin_prefetch(&segment.lines[line_of(hash)]);
  __builtin_prefetch(&segment.lines[0]);  // has the count, for an insertion or removal
}

inline void RunTable::prefetch_run(SequenceHash key) const {
  if (directory_.empty()) return;
  const std::uint64_t hash = mix(key);
  const Line& line = directory_[place_of(hash)]->lines[line_of(hash)];
  const unsigned found = line.like(kTagMask, tag_of(hash));
  if (found == 0) return;
  const std::uint32_t entry = line.entries[static_cast<std::size_t>(std::countr_zero(found))];
  if (entry != kEmpty) __builtin_prefetch(&runs_[entry >> kTagBits]);
}

}  // namespace baton::kvcache
