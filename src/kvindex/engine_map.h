// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/run.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace baton::kvindex {

// Role. What an engine calls its blocks, for one slot; twelve bytes for each, and some room.
// Confinement. One thread at a time.
// Invariants. Each name belongs to a cache line with room for five. What does not fit goes to the
//   next line with room, and the lines it passed over count it; they are full, and when a place in
//   one comes free, a name that had passed it moves in. Names lie in the order of their hashes, or
//   close by: growing by a little is copying from one end to the other.
class EngineMap {
 public:
  struct Entry {
    std::uint32_t low;
    std::uint32_t high;
    BlockPlace place;
    std::uint64_t name() const { return static_cast<std::uint64_t>(high) << 32 | low; }
  };

  EngineMap() = default;
  ~EngineMap();
  EngineMap(const EngineMap&) = delete;
  EngineMap& operator=(const EngineMap&) = delete;

  void prefetch(std::uint64_t name) const {
    if (lines_count_ == 0) return;
    const std::size_t home = home_of(name);
    __builtin_prefetch(&lines_[home]);
    __builtin_prefetch(&lines_[next(home)]);
  }
  // Null where there is none. It may move with any change to the map.
  Entry* find(std::uint64_t name) const;
  // Room for so many more.
  void reserve(std::size_t more);
  // Adds a name, unless it is there: then it returns its entry, else null. Requires: room.
  Entry* put(std::uint64_t name, BlockPlace place) {
    Entry* entry = find(name);
    if (entry == nullptr) add(name, place);
    return entry;
  }
  void erase(Entry* entry);
  // Gives back what is not needed.
  void shrink();
  void clear();

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return lines_count_ * sizeof(Line); }

  template <class Visitor>
  void for_each(Visitor visitor) const {
    for (std::size_t i = 0; i < lines_count_; ++i) {
      for (const Entry& entry : lines_[i].entries) {
        if (entry.place != kNoPlace) visitor(entry.name(), entry.place);
      }
    }
  }

 private:
  static constexpr std::size_t kPerLine = 5;
  struct alignas(64) Line {
    std::array<Entry, kPerLine> entries;
    std::uint32_t passed;  // how many belong here, or before, and are further on

    // A bit for each entry that is so.
    unsigned named(std::uint64_t name) const {
      unsigned found = 0;
      for (unsigned i = 0; i < kPerLine; ++i) {
        found |= static_cast<unsigned>(entries[i].name() == name && entries[i].place != kNoPlace)
                 << i;
      }
      return found;
    }
    unsigned empty() const {
      unsigned found = 0;
      for (unsigned i = 0; i < kPerLine; ++i) {
        found |= static_cast<unsigned>(entries[i].place == kNoPlace) << i;
      }
      return found;
    }
  };
  static_assert(sizeof(Line) == 64);

  std::size_t home_of(std::uint64_t name) const {
    return static_cast<std::size_t>(static_cast<unsigned __int128>(mix(name)) * lines_count_ >> 64);
  }
  std::size_t next(std::size_t line) const { return line + 1 == lines_count_ ? 0 : line + 1; }
  // How many lines there are from one on to another.
  std::size_t distance(std::size_t from, std::size_t to) const {
    return to >= from ? to - from : to + lines_count_ - from;
  }
  // Requires: the name is not there, and room.
  void add(std::uint64_t name, BlockPlace place);
  // Fills an empty place with a name that had passed its line, and so on with that one's place.
  void close_up(std::size_t line, Entry* hole);
  void resize(std::size_t lines);

  Line* lines_ = nullptr;
  std::size_t lines_count_ = 0;
  std::size_t size_ = 0;
};

inline EngineMap::Entry* EngineMap::find(std::uint64_t name) const {
  if (size_ == 0) return nullptr;
  std::size_t at = home_of(name);
  for (std::size_t i = 0; i < lines_count_; ++i) {
    const unsigned found = lines_[at].named(name);
    if (found != 0) return &lines_[at].entries[static_cast<std::size_t>(std::countr_zero(found))];
    if (lines_[at].passed == 0) break;
    at = next(at);
  }
  return nullptr;
}

}  // namespace baton::kvindex
