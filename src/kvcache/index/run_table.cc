// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/run_table.h"

#include <algorithm>

namespace baton::kvcache {

RunTable::RunTable(PageArena& arena, const RunSlab& runs)
    : runs_(runs), slab_(arena, sizeof(Segment)) {}

RunTable::Segment* RunTable::new_segment(unsigned depth) {
  const std::uint32_t number = slab_.take();
  if (number == Slab::kNothing) return nullptr;
  auto* segment = reinterpret_cast<Segment*>(slab_.at(number));
  for (Line& line : segment->lines) {
    line.entries.fill(kEmpty);
    line.passed = 0;
  }
  segment->lines[0].half = static_cast<std::uint16_t>(number);
  segment->lines[1].half = static_cast<std::uint16_t>(number >> 16);
  segment->count() = 0;
  segment->depth() = static_cast<std::uint8_t>(depth);
  ++at_depth_[depth];
  ++segments_;
  return segment;
}

void RunTable::free_segment(Segment* segment) {
  --at_depth_[segment->depth()];
  --segments_;
  slab_.give(segment->number());
}

void RunTable::put(Segment& segment, std::uint64_t hash, RunNumber run) {
  std::uint32_t at = line_of(hash);
  while (true) {  // there is room: a segment is split before it is full
    Line& line = segment.lines[at];
    const unsigned empty = line.like(kEmpty, kEmpty);
    if (empty != 0) {
      line.entries[static_cast<std::size_t>(std::countr_zero(empty))] =
          run << kTagBits | tag_of(hash);
      ++segment.count();
      return;
    }
    ++line.passed;
    at = (at + 1) % kLines;
  }
}

bool RunTable::insert(RunNumber run) {
  const std::uint64_t hash = mix(runs_[run].key);
  if (directory_.empty()) {
    Segment* first = new_segment(0);
    if (first == nullptr) return false;
    directory_.push_back(first);
  }
  while (directory_[place_of(hash)]->count() >= kMost) {
    if (!split(place_of(hash))) return false;
  }
  put(*directory_[place_of(hash)], hash, run);
  return true;
}

void RunTable::erase(RunNumber run) {
  const std::uint64_t hash = mix(runs_[run].key);
  const std::uint32_t wanted = run << kTagBits | tag_of(hash);
  const std::size_t place = place_of(hash);
  Segment& segment = *directory_[place];
  std::uint32_t at = line_of(hash);
  while (true) {
    Line& line = segment.lines[at];
    const unsigned found = line.like(kEmpty, wanted);
    if (found != 0) {
      line.entries[static_cast<std::size_t>(std::countr_zero(found))] = kEmpty;
      break;
    }
    --line.passed;
    at = (at + 1) % kLines;
  }
  if (--segment.count() <= kFew) join(place);
}

void RunTable::move_all(Segment& from, Segment& low, Segment& high, std::uint64_t bit) const {
  for (const Line& line : from.lines) {
    for (const std::uint32_t entry : line.entries) {
      if (entry != kEmpty) __builtin_prefetch(&runs_[entry >> kTagBits]);
    }
  }
  for (const Line& line : from.lines) {
    for (const std::uint32_t entry : line.entries) {
      if (entry == kEmpty) continue;
      const std::uint64_t hash = mix(runs_[entry >> kTagBits].key);
      put((hash & bit) != 0 ? high : low, hash, entry >> kTagBits);
    }
  }
}

// Makes all places whose first `depth` bits are those of `place` lead to the segment.
void RunTable::point(std::size_t place, unsigned depth, Segment* segment) {
  const unsigned shift = depth_ - depth;
  const std::size_t first = place >> shift << shift;
  std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(first), std::size_t{1} << shift,
              segment);
}

bool RunTable::split(std::size_t place) {
  Segment* old = directory_[place];
  const unsigned depth = old->depth();
  if (depth == depth_) {
    // A directory far larger than its segments need: keys made to agree in their first bits.
    if (directory_.size() > 64 + 32 * segments_) return false;
    std::vector<Segment*> doubled(directory_.size() * 2);
    for (std::size_t i = 0; i < doubled.size(); ++i) doubled[i] = directory_[i / 2];
    directory_ = std::move(doubled);
    ++depth_;
    place *= 2;
  }
  Segment* low = new_segment(depth + 1);
  Segment* high = low == nullptr ? nullptr : new_segment(depth + 1);
  if (high == nullptr) {
    if (low != nullptr) free_segment(low);
    return false;
  }
  move_all(*old, *low, *high, std::uint64_t{1} << (63 - depth));
  point(place, depth, low);
  const unsigned shift = depth_ - depth - 1;
  point((place >> shift | 1) << shift, depth + 1, high);
  free_segment(old);
  return true;
}

void RunTable::join(std::size_t place) {
  Segment* segment = directory_[place];
  const unsigned depth = segment->depth();
  if (depth == 0) {
    if (segment->count() > 0) return;
    free_segment(segment);
    directory_ = std::vector<Segment*>();
    return;
  }
  Segment* other = directory_[place ^ std::size_t{1} << (depth_ - depth)];
  if (other->depth() != depth || other->count() > kFew) return;
  Segment* joined = new_segment(depth - 1);
  if (joined == nullptr) return;
  move_all(*segment, *joined, *joined, 0);
  move_all(*other, *joined, *joined, 0);
  point(place, depth - 1, joined);
  free_segment(segment);
  free_segment(other);
  while (depth_ > 0 && at_depth_[depth_] == 0) {
    for (std::size_t i = 0; i < directory_.size() / 2; ++i) directory_[i] = directory_[2 * i];
    directory_.resize(directory_.size() / 2);
    directory_.shrink_to_fit();
    --depth_;
  }
}

}  // namespace baton::kvcache
