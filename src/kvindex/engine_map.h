// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/node.h"

#include <cstddef>
#include <cstdint>

namespace baton::kvindex {

// Where a block is: its shard (6 bits) and its node (26).
using BlockPlace = std::uint32_t;
inline constexpr BlockPlace kNoPlace = 0xFFFFFFFF;

// Role. What an engine calls its blocks, for one slot; twelve bytes for each, and some room.
// Confinement. One thread at a time.
// Invariants. Entries lie in the order of their mixed names, or close by, so that growing by a
//   little is copying from one end to the other.
class EngineMap {
 public:
  EngineMap() = default;
  ~EngineMap();
  EngineMap(const EngineMap&) = delete;
  EngineMap& operator=(const EngineMap&) = delete;

  void prefetch(std::uint64_t name) const {
    if (capacity_ > 0) __builtin_prefetch(&entries_[home_of(name)]);
  }
  // kNoPlace where there is none.
  BlockPlace find(std::uint64_t name) const;
  // Room for so many more.
  void reserve(std::size_t more);
  // Adds it or changes it. Requires: place != kNoPlace, and room.
  void put(std::uint64_t name, BlockPlace place);
  void erase(std::uint64_t name);
  // Gives back what is not needed.
  void shrink();
  void clear();

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return capacity_ * sizeof(Entry); }

  template <class Visitor>
  void for_each(Visitor visitor) const {
    for (std::size_t i = 0; i < capacity_; ++i) {
      if (entries_[i].place != kNoPlace) visitor(entries_[i].name(), entries_[i].place);
    }
  }

 private:
  struct Entry {
    std::uint32_t low;
    std::uint32_t high;
    BlockPlace place;
    std::uint64_t name() const { return static_cast<std::uint64_t>(high) << 32 | low; }
  };
  static_assert(sizeof(Entry) == 12);

  static std::size_t home_of(std::uint64_t name, std::size_t capacity) {
    return static_cast<std::size_t>(static_cast<unsigned __int128>(mix(name)) * capacity >> 64);
  }
  std::size_t home_of(std::uint64_t name) const { return home_of(name, capacity_); }
  std::size_t next(std::size_t at) const { return at + 1 == capacity_ ? 0 : at + 1; }
  // Where the name is, or where it would go.
  std::size_t seek(std::uint64_t name) const;
  void resize(std::size_t capacity);

  Entry* entries_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace baton::kvindex
