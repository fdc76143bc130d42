// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/memory/huge_pages.h"
#include "libs/tokenizer/token.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::tokenizer {

// Result of merging two neighbouring tokens. A lower rank comes first.
struct Merge {
  static constexpr std::uint32_t kNever = 0xFFFF'FFFF;
  std::uint32_t rank = kNever;
  TokenId id = 0;
};

// Role. The merges of a BPE model: pair of tokens to rank and result, in one flat table.
// Confinement. Filled by one thread, then immutable; any thread.
class MergeTable {
 public:
  explicit MergeTable(std::size_t expected);
  MergeTable() : MergeTable(0) {}

  // The last word on a pair counts, as in the library.
  void set(TokenId left, TokenId right, Merge merge);
  // A rank of kNever where the two do not merge.
  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t mixed = mix(key);
    if (!may_have(mixed)) return {};
    for (std::size_t at = place_of(mixed);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key || slot.key == kEmpty) return slot.merge;
    }
  }
  // Brings what find() will look at into the cache.
  void prefetch(TokenId left, TokenId right) const {
    const std::uint64_t mixed = mix(key_of(left, right));
    __builtin_prefetch(&filter_[(mixed >> filter_shift_) / 64]);
    __builtin_prefetch(&slots_[place_of(mixed)]);
  }
  std::size_t size() const { return size_; }
  // Calls with the two sides of each merge, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key == kEmpty) continue;
      visit(static_cast<TokenId>(slot.key >> 32), static_cast<TokenId>(slot.key));
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge = {};
  };

  static std::uint64_t key_of(TokenId left, TokenId right) {
    return std::uint64_t{left} << 32 | right;
  }
  static std::uint64_t mix(std::uint64_t key) { return key * 0x9E37'79B9'7F4A'7C15ULL; }
  std::size_t place_of(std::uint64_t mixed) const {
    return static_cast<std::size_t>(mixed ^ mixed >> 32) & mask_;
  }
  bool may_have(std::uint64_t mixed) const {
    const std::uint64_t bit = mixed >> filter_shift_;
    return (filter_[bit / 64] >> bit % 64 & 1U) != 0;
  }
  void grow(std::size_t slots);
  void put(std::uint64_t key, Merge merge);

  using Slots = std::vector<Slot, memory::HugePages<Slot>>;

  Slots slots_;
  std::size_t mask_ = 0;
  // Eight bits for each slot, so small that it stays near: most pairs that are asked for do not
  // merge, and are told so without a look at the table itself.
  std::vector<std::uint64_t> filter_;
  unsigned filter_shift_ = 0;
  std::size_t size_ = 0;
};

}  // namespace baton::tokenizer
