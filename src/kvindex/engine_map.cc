// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/engine_map.h"

#include "kvindex/page_arena.h"

#include <algorithm>
#include <utility>

namespace baton::kvindex {
namespace {

// Four names for five places, so that most are in the line they belong to.
constexpr std::size_t room_in(std::size_t lines) { return lines * 4; }
constexpr std::size_t lines_for(std::size_t names) { return names / 4 + 1; }

}  // namespace

EngineMap::~EngineMap() { clear(); }

void EngineMap::reserve(std::size_t more) {
  const std::size_t wanted = size_ + more;
  if (wanted <= room_in(lines_count_)) return;
  // Small ones grow faster: what they waste is little, and copying often is not.
  const std::size_t more_lines = lines_count_ < 1024 ? lines_count_ / 2 : lines_count_ / 5;
  resize(std::max(lines_for(wanted), lines_count_ + more_lines));
}

void EngineMap::add(std::uint64_t name, BlockPlace place) {
  for (std::size_t at = home_of(name);; at = next(at)) {
    const unsigned empty = lines_[at].empty();
    if (empty != 0) {
      lines_[at].entries[static_cast<std::size_t>(std::countr_zero(empty))] = {
          .low = static_cast<std::uint32_t>(name),
          .high = static_cast<std::uint32_t>(name >> 32),
          .place = place};
      ++size_;
      return;
    }
    ++lines_[at].passed;
  }
}

void EngineMap::erase(Entry* entry) {
  const auto in = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(entry) -
                                           reinterpret_cast<const std::byte*>(lines_)) /
                  sizeof(Line);
  for (std::size_t at = home_of(entry->name()); at != in; at = next(at)) --lines_[at].passed;
  entry->place = kNoPlace;
  --size_;
  if (lines_[in].passed > 0) close_up(in, entry);
}

void EngineMap::close_up(std::size_t line, Entry* hole) {
  while (lines_[line].passed > 0) {
    std::size_t from = line;
    Entry* found = nullptr;
    while (found == nullptr) {
      from = next(from);
      for (Entry& entry : lines_[from].entries) {
        // It has come past the line if it belongs to it or further before.
        const std::size_t home = home_of(entry.name());
        if (entry.place == kNoPlace || distance(home, from) < distance(line, from)) continue;
        found = &entry;
        break;
      }
    }
    for (std::size_t at = line; at != from; at = next(at)) --lines_[at].passed;
    *hole = std::exchange(*found, {.low = 0, .high = 0, .place = kNoPlace});
    hole = found;
    line = from;
  }
}

void EngineMap::shrink() {
  if (size_ == 0) {
    clear();
  } else if (lines_count_ > 4 && size_ < room_in(lines_count_) / 2) {
    resize(lines_for(size_ + size_ / 4));
  }
}

void EngineMap::clear() {
  if (lines_count_ > 0) free_array(reinterpret_cast<std::byte*>(lines_), bytes());
  lines_ = nullptr;
  lines_count_ = size_ = 0;
}

void EngineMap::resize(std::size_t lines) {
  auto* fresh = reinterpret_cast<Line*>(allocate_array(lines * sizeof(Line)));
  for (std::size_t i = 0; i < lines; ++i) {
    fresh[i].entries.fill({.low = 0, .high = 0, .place = kNoPlace});
    fresh[i].passed = 0;
  }
  Line* old = std::exchange(lines_, fresh);
  const std::size_t old_count = std::exchange(lines_count_, lines);
  size_ = 0;
  for (std::size_t i = 0; i < old_count; ++i) {
    for (const Entry& entry : old[i].entries) {
      if (entry.place != kNoPlace) add(entry.name(), entry.place);
    }
  }
  if (old_count > 0) free_array(reinterpret_cast<std::byte*>(old), old_count * sizeof(Line));
}

}  // namespace baton::kvindex
