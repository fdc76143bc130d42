// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/page_arena.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::kvcache {

// Role. Items of one size, named by numbers of 26 bits or less.
// Confinement. One thread at a time.
// Invariants. New items go where others are, the lowest page first, so that pages run empty and
//   are given back.
class Slab {
 public:
  // The lower bits of a number say which item of its page it is.
  struct Numbering {
    unsigned index_bits = 10;
    unsigned number_bits = 26;
  };
  static constexpr std::uint32_t kNothing = (1U << 26) - 1;

  // Requires: 16 <= item_bytes <= kPageBytes, a multiple of 4.
  Slab(PageArena& arena, std::size_t item_bytes) : Slab(arena, item_bytes, Numbering()) {}
  Slab(PageArena& arena, std::size_t item_bytes, Numbering numbering);
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // kNothing when the numbers are used up.
  std::uint32_t take();
  void give(std::uint32_t number);

  std::byte* page(std::uint32_t page) const { return memory_[page]; }
  std::byte* at(std::uint32_t number) const {
    return page(number >> numbering_.index_bits) + index(number) * item_bytes_;
  }

 private:
  static constexpr std::uint16_t kEnd = 0xFFFF;

  struct Page {
    std::uint16_t used = 0;
    std::uint16_t fresh = 0;    // items from here on have never been taken
    std::uint16_t free = kEnd;  // the first of those given back; each holds the next
  };

  std::uint32_t index(std::uint32_t number) const {
    return number & ((1U << numbering_.index_bits) - 1);
  }
  std::uint32_t open_page();
  void set_partial(std::uint32_t page, bool partial);

  PageArena& arena_;
  std::size_t item_bytes_;
  Numbering numbering_;
  std::uint16_t per_page_;
  std::vector<std::byte*> memory_;  // of each page, null for those given back
  std::vector<Page> pages_;
  std::vector<std::uint64_t> partial_;  // a bit for each page with room
  std::size_t partial_count_ = 0;
  std::size_t lowest_ = 0;             // no word of partial_ before it has a bit
  std::vector<std::uint32_t> vacant_;  // pages given back
};

}  // namespace baton::kvcache
