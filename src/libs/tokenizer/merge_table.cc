// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/merge_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace baton::tokenizer {
namespace {

constexpr std::size_t kFewestMergeSlots = 16;
constexpr std::size_t kFilterBits = 8;  // of each slot
// Room is made at once for as many merges as any real file has; more of them make it grow.
constexpr std::size_t kMostExpected = std::size_t{1} << 22;

}  // namespace

MergeTable::MergeTable(std::size_t expected) {
  expected = std::min(expected, kMostExpected);
  grow(std::bit_ceil(std::max(kFewestMergeSlots, expected + expected / 2)));
}

void MergeTable::grow(std::size_t slots) {
  const Slots old = std::exchange(slots_, Slots(slots));
  mask_ = slots - 1;
  filter_.assign(slots * kFilterBits / 64, 0);
  filter_shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots * kFilterBits));
  size_ = 0;
  for (const Slot& slot : old) {
    if (slot.key != kEmpty) put(slot.key, slot.merge);
  }
}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
  if ((size_ + 1) * 3 > slots_.size() * 2) grow(slots_.size() * 2);
  put(key_of(left, right), merge);
}

void MergeTable::put(std::uint64_t key, Merge merge) {
  const std::uint64_t mixed = mix(key);
  std::size_t at = place_of(mixed);
  while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask_;
  if (slots_[at].key == kEmpty) ++size_;
  slots_[at] = {.key = key, .merge = merge};
  const std::uint64_t bit = mixed >> filter_shift_;
  filter_[bit / 64] |= std::uint64_t{1} << bit % 64;
}

}  // namespace baton::tokenizer
