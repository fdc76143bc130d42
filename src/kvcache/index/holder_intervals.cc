// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/holder_intervals.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace baton::kvcache {
namespace {

// The intervals that replace others, joined if possible.
class Patch {
 public:
  void push(Interval interval) {
    if (interval.begin == interval.end || interval.tiers == 0) return;
    if (count_ > 0) {
      Interval& last = parts_[count_ - 1];
      if (last.end == interval.begin && last.tiers == interval.tiers) {
        last.end = interval.end;
        return;
      }
    }
    parts_[count_++] = interval;
  }
  std::span<const Interval> parts() const { return std::span(parts_).first(count_); }

 private:
  std::array<Interval, 5> parts_{};
  std::size_t count_ = 0;
};

Interval make(std::uint32_t slot, std::uint32_t begin, std::uint32_t end, std::uint32_t tiers) {
  return {.slot = slot,
          .begin = static_cast<std::uint8_t>(begin),
          .end = static_cast<std::uint8_t>(end),
          .tiers = static_cast<std::uint8_t>(tiers)};
}

}  // namespace

void HolderIntervals::open() {
  run_.intervals = &run_.single;
  run_.interval_count = 0;
  run_.interval_room = 1;
}

void HolderIntervals::close() {
  if (run_.interval_room > 1) {
    pool_.give(reinterpret_cast<std::byte*>(run_.intervals), run_.intervals_ref);
  }
}

std::uint32_t HolderIntervals::find(std::uint32_t slot, std::uint32_t offset) const {
  const auto* begin = run_.intervals;
  std::size_t count = run_.interval_count;
  // Without branches: which half it is cannot be guessed.
  while (count > 0) {
    const std::size_t half = count / 2;
    const Interval& middle = begin[half];
    const bool before = middle.slot < slot || (middle.slot == slot && middle.end <= offset);
    begin = before ? begin + half + 1 : begin;
    count = before ? count - half - 1 : half;
  }
  return static_cast<std::uint32_t>(begin - run_.intervals);
}

std::uint32_t HolderIntervals::tiers(std::uint32_t slot, std::uint32_t offset) const {
  const std::uint32_t at = find(slot, offset);
  return is_of(at, slot) && run_.intervals[at].begin <= offset ? run_.intervals[at].tiers : 0;
}

std::uint32_t HolderIntervals::free_from(std::uint32_t slot, std::uint32_t from,
                                         std::uint32_t to) const {
  const std::uint32_t at = find(slot, from);
  if (!is_of(at, slot)) return to - from;
  const std::uint32_t taken = run_.intervals[at].begin;
  return taken <= from ? 0 : std::min(taken, to) - from;
}

std::span<const Interval> HolderIntervals::of(std::uint32_t slot) const {
  const std::uint32_t begin = find(slot, 0);
  std::uint32_t end = begin;
  while (is_of(end, slot)) ++end;
  return run_.all_intervals().subspan(begin, end - begin);
}

void HolderIntervals::add(std::uint32_t slot, std::uint32_t from, std::uint32_t to,
                          std::uint32_t tiers) {
  const std::uint32_t at = find(slot, from);
  const bool has_before = at > 0 && run_.intervals[at - 1].slot == slot;
  const bool has_after = is_of(at, slot);
  Patch patch;
  if (has_before) patch.push(run_.intervals[at - 1]);
  patch.push(make(slot, from, to, tiers));
  if (has_after) patch.push(run_.intervals[at]);
  replace(at - (has_before ? 1 : 0), at + (has_after ? 1 : 0), patch.parts());
}

void HolderIntervals::set_tiers(std::uint32_t slot, std::uint32_t offset, std::uint32_t tiers) {
  const std::uint32_t at = find(slot, offset);
  Interval& old = run_.intervals[at];
  // The usual order of removals: from the end of a prompt.
  if (tiers == 0 && offset + 1 == old.end && offset > old.begin) {
    old.end = static_cast<std::uint8_t>(offset);
    return;
  }
  const bool has_before = at > 0 && run_.intervals[at - 1].slot == slot;
  const bool has_after = is_of(at + 1, slot);
  Patch patch;
  if (has_before) patch.push(run_.intervals[at - 1]);
  patch.push(make(slot, old.begin, offset, old.tiers));
  patch.push(make(slot, offset, offset + 1, tiers));
  patch.push(make(slot, offset + 1, old.end, old.tiers));
  if (has_after) patch.push(run_.intervals[at + 1]);
  replace(at - (has_before ? 1 : 0), at + (has_after ? 2 : 1), patch.parts());
}

void HolderIntervals::remove_all(std::uint32_t slot) {
  const auto all = of(slot);
  const auto begin = static_cast<std::uint32_t>(all.data() - run_.intervals);
  replace(begin, begin + static_cast<std::uint32_t>(all.size()), {});
}

void HolderIntervals::replace(std::uint32_t begin, std::uint32_t end,
                              std::span<const Interval> others) {
  const auto count = static_cast<std::uint32_t>(others.size());
  const std::uint32_t now = run_.interval_count - (end - begin) + count;
  if (now > run_.interval_room) resize(now);
  std::memmove(run_.intervals + begin + count, run_.intervals + end,
               (run_.interval_count - end) * sizeof(Interval));
  std::ranges::copy(others, run_.intervals + begin);
  run_.interval_count = now;
  // With some room left, so that a list at a border does not go to and fro.
  if (run_.interval_room > 1 && now + now / 2 < run_.interval_room / 2) resize(now + now / 4);
}

void HolderIntervals::resize(std::uint32_t room) {
  const Run old = run_;
  if (room <= 1) {
    run_.intervals = &run_.single;
    run_.interval_room = 1;
  } else {
    const ArrayPool::Array array = pool_.take(room * sizeof(Interval));
    run_.intervals = reinterpret_cast<Interval*>(array.memory);
    run_.intervals_ref = array.ref;
    run_.interval_room = static_cast<std::uint32_t>(array.bytes / sizeof(Interval));
  }
  std::memcpy(run_.intervals, old.interval_room > 1 ? old.intervals : &old.single,
              old.interval_count * sizeof(Interval));
  if (old.interval_room > 1)
    pool_.give(reinterpret_cast<std::byte*>(old.intervals), old.intervals_ref);
}

}  // namespace baton::kvcache
