// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/engine_map.h"

#include "kvindex/page_arena.h"

#include <algorithm>
#include <utility>

namespace baton::kvindex {
namespace {

constexpr std::size_t kLeast = 16;

// Six of seven places at the most.
constexpr std::size_t room_in(std::size_t capacity) { return capacity - capacity / 7; }

}  // namespace

EngineMap::~EngineMap() { clear(); }

std::size_t EngineMap::seek(std::uint64_t name) const {
  std::size_t at = home_of(name);
  while (entries_[at].place != kNoPlace && entries_[at].name() != name) at = next(at);
  return at;
}

BlockPlace EngineMap::find(std::uint64_t name) const {
  return size_ == 0 ? kNoPlace : entries_[seek(name)].place;
}

void EngineMap::reserve(std::size_t more) {
  const std::size_t wanted = size_ + more;
  if (wanted <= room_in(capacity_)) return;
  resize(std::max({kLeast, wanted + wanted / 5 + 2, capacity_ + capacity_ / 5}));
}

void EngineMap::put(std::uint64_t name, BlockPlace place) {
  Entry& entry = entries_[seek(name)];
  if (entry.place == kNoPlace) ++size_;
  entry = {.low = static_cast<std::uint32_t>(name),
           .high = static_cast<std::uint32_t>(name >> 32),
           .place = place};
}

void EngineMap::erase(std::uint64_t name) {
  if (size_ == 0) return;
  std::size_t hole = seek(name);
  if (entries_[hole].place == kNoPlace) return;
  --size_;
  // What follows moves up where the hole would hide it from who seeks it.
  for (std::size_t at = next(hole); entries_[at].place != kNoPlace; at = next(at)) {
    const std::size_t home = home_of(entries_[at].name());
    const bool reachable = hole < at ? (home > hole && home <= at) : (home > hole || home <= at);
    if (reachable) continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole].place = kNoPlace;
}

void EngineMap::shrink() {
  if (size_ == 0) {
    clear();
  } else if (capacity_ > kLeast && size_ < capacity_ / 2) {
    resize(std::max(kLeast, size_ + size_ / 3));
  }
}

void EngineMap::clear() {
  if (capacity_ > 0) free_array(reinterpret_cast<std::byte*>(entries_), bytes());
  entries_ = nullptr;
  capacity_ = size_ = 0;
}

void EngineMap::resize(std::size_t capacity) {
  auto* fresh = reinterpret_cast<Entry*>(allocate_array(capacity * sizeof(Entry)));
  for (std::size_t i = 0; i < capacity; ++i) fresh[i].place = kNoPlace;
  Entry* old = std::exchange(entries_, fresh);
  const std::size_t old_capacity = std::exchange(capacity_, capacity);
  for (std::size_t i = 0; i < old_capacity; ++i) {
    if (old[i].place != kNoPlace) entries_[seek(old[i].name())] = old[i];
  }
  if (old_capacity > 0) {
    free_array(reinterpret_cast<std::byte*>(old), old_capacity * sizeof(Entry));
  }
}

}  // namespace baton::kvindex
