// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/page_arena.h"
#include "kvcache/index/run.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace baton::kvcache {

// Role. The engine's names of its blocks, for one slot; twelve bytes for each, and some room.
// Confinement. One thread at a time.
// Invariants. Each name belongs to a cache line with room for five. A name that does not fit goes
//   to the next line with room, and the lines it passed over count it; when a place in one comes
//   free, a name that had passed it moves in from the next. Names lie in the order of their hashes,
//   or close by: growing by a little is copying from one end to the other.
class EngineMap {
  static constexpr std::uint32_t kPerLine = 5;
  static constexpr std::uint32_t kManyPassed = (1U << 12) - 1;
  struct alignas(64) Line {
    std::array<std::uint32_t, kPerLine> low;
    std::array<std::uint32_t, kPerLine> high;
    std::array<BlockPlace, kPerLine> places;
    std::uint32_t count : 3;
    // The number of names that belong here, or before, and lie further on; kManyPassed: unknown.
    // And a bit for each kind of them, so that few others are looked for in vain.
    std::uint32_t passed : 12;
    std::uint32_t kinds : 12;
    std::uint32_t strange : 5;  // a bit for each name here that belongs to a line before

    // A bit for each place with that name.
    unsigned named(std::uint64_t name) const;
    // Requires: room.
    void push(std::uint64_t name, BlockPlace place, bool is_strange);
    void remove(std::uint32_t at);
    void pass(std::uint32_t kind) {
      if (passed < kManyPassed) ++passed;
      kinds |= kind;
    }
    void unpass() {
      if (passed == kManyPassed) return;
      if (--passed == 0) kinds = 0;
    }
  };
  static_assert(sizeof(Line) == 64);

 public:
  // The place of a name. It may mean another name, or none, after any change to the map.
  class Entry {
   public:
    Entry() = default;
    explicit operator bool() const { return line_ != nullptr; }
    BlockPlace place() const { return line_->places[at_]; }
    void set_place(BlockPlace place) const { line_->places[at_] = place; }
    bool is(std::uint64_t name) const {
      return at_ < line_->count && line_->low[at_] == static_cast<std::uint32_t>(name) &&
             line_->high[at_] == static_cast<std::uint32_t>(name >> 32);
    }

   private:
    friend class EngineMap;
    Entry(Line* line, std::uint32_t at) : line_(line), at_(at) {}
    Line* line_ = nullptr;
    std::uint32_t at_ = 0;
  };

  explicit EngineMap(PageArena& arena) : arena_(arena) {}
  ~EngineMap();
  EngineMap(const EngineMap&) = delete;
  EngineMap& operator=(const EngineMap&) = delete;

  void prefetch(std::uint64_t name) const {
    if (lines_ == 0) return;
    const std::size_t home = home_of(name);
    __builtin_prefetch(&line(home));
    __builtin_prefetch(&line(next(home)));
  }
  // Nothing if it is not in the map.
  Entry find(std::uint64_t name) const;
  // Room for so many more.
  void reserve(std::size_t more);
  // Adds a name, unless it is there: then it returns its entry, else nothing. Requires: room.
  Entry put(std::uint64_t name, BlockPlace place);
  void erase(Entry entry);
  // Gives back what is not needed.
  void shrink();
  void clear();

  std::size_t size() const { return size_; }
  std::size_t bytes() const;

  template <class Visitor>
  void for_each(Visitor visitor) const {
    for (std::size_t i = 0; i < lines_; ++i) {
      const Line& it = line(i);
      for (std::uint32_t k = 0; k < it.count; ++k) visitor(name_in(it, k), it.places[k]);
    }
  }

 private:
  static constexpr std::size_t kPageLines = PageArena::kPageBytes / sizeof(Line);

  static std::uint64_t name_in(const Line& line, std::uint32_t at) {
    return static_cast<std::uint64_t>(line.high[at]) << 32 | line.low[at];
  }
  Line& line(std::size_t number) const { return pages_[number / kPageLines][number % kPageLines]; }
  std::size_t home_of(std::uint64_t name) const {
    return static_cast<std::size_t>(static_cast<unsigned __int128>(mix(name)) * lines_ >> 64);
  }
  // By bits that do not determine its line.
  static std::uint32_t kind_of(std::uint64_t name) {
    return 1U << ((mix(name) >> 16 & 0xFFFF) * 12 >> 16);
  }
  std::size_t next(std::size_t number) const { return number + 1 == lines_ ? 0 : number + 1; }
  // From a line after the one where it belongs.
  Entry find_further(std::uint64_t name, std::size_t number) const;
  // Requires: the name is not there, and room.
  void add(std::uint64_t name, BlockPlace place);
  // Fills a free place of a line with a name that had passed it.
  void close_up(std::size_t number);
  void resize(std::size_t lines);
  Line* take_page(std::size_t lines);
  void give_page(Line* page, std::size_t lines);

  PageArena& arena_;
  std::vector<Line*> pages_;  // a single one has no more lines than are needed
  std::size_t lines_ = 0;
  std::size_t size_ = 0;
};

#if defined(__SSE2__)
inline unsigned EngineMap::Line::named(std::uint64_t name) const {
  const auto lower = static_cast<std::uint32_t>(name);
  const auto upper = static_cast<std::uint32_t>(name >> 32);
  const auto four = [](const std::uint32_t* from, std::uint32_t wanted) {
    return _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)),
                           _mm_set1_epi32(static_cast<int>(wanted)));
  };
  const __m128i both = _mm_and_si128(four(low.data(), lower), four(high.data(), upper));
  const auto first = static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(both)));
  const auto fifth = static_cast<unsigned>(((low[4] ^ lower) | (high[4] ^ upper)) == 0);
  return (first | fifth << 4) & ((1U << count) - 1);
}
#else
inline unsigned EngineMap::Line::named(std::uint64_t name) const {
  unsigned found = 0;
  for (unsigned i = 0; i < count; ++i) {
    const bool same = low[i] == static_cast<std::uint32_t>(name) &&
                      high[i] == static_cast<std::uint32_t>(name >> 32);
    found |= static_cast<unsigned>(same) << i;
  }
  return found;
}
#endif

inline EngineMap::Entry EngineMap::find(std::uint64_t name) const {
  if (size_ == 0) return {};
  const std::size_t home = home_of(name);
  Line& it = line(home);
  const unsigned found = it.named(name);
  if (found != 0) return {&it, static_cast<std::uint32_t>(std::countr_zero(found))};
  return (it.kinds & kind_of(name)) == 0 ? Entry() : find_further(name, next(home));
}

inline EngineMap::Entry EngineMap::put(std::uint64_t name, BlockPlace place) {
  const std::size_t home = home_of(name);
  Line& it = line(home);
  const unsigned found = it.named(name);
  if (found != 0) return {&it, static_cast<std::uint32_t>(std::countr_zero(found))};
  if ((it.kinds & kind_of(name)) != 0) {
    const Entry further = find_further(name, next(home));
    if (further) return further;
  }
  add(name, place);
  return {};
}

inline void EngineMap::Line::push(std::uint64_t name, BlockPlace place, bool is_strange) {
  const std::uint32_t at = count;
  low[at] = static_cast<std::uint32_t>(name);
  high[at] = static_cast<std::uint32_t>(name >> 32);
  places[at] = place;
  strange = (strange | static_cast<std::uint32_t>(is_strange) << at) & 31;
  count = (at + 1) & 7;
}

inline void EngineMap::add(std::uint64_t name, BlockPlace place) {
  const std::size_t home = home_of(name);
  std::size_t number = home;
  while (line(number).count == kPerLine) {
    line(number).pass(kind_of(name));
    number = next(number);
  }
  line(number).push(name, place, number != home);
  ++size_;
}

}  // namespace baton::kvcache
