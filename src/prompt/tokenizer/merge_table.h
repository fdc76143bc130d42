// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/tokenizer/token.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::prompt {

// What two neighbouring tokens become. A lower rank comes first.
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
    for (std::size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key || slot.key == kEmpty) return slot.merge;
    }
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
  static std::size_t hash(std::uint64_t key) {
    key *= 0x9E37'79B9'7F4A'7C15ULL;
    return static_cast<std::size_t>(key ^ key >> 32);
  }
  void grow(std::size_t slots);

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace baton::prompt
