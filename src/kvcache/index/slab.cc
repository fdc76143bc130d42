// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/slab.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace baton::kvcache {

// The last page would have the number that means nothing, so it is never opened.
Slab::Slab(PageArena& arena, std::size_t item_bytes, Numbering numbering)
    : arena_(arena),
      item_bytes_(item_bytes),
      numbering_(numbering),
      per_page_(static_cast<std::uint16_t>(std::min<std::size_t>(
          PageArena::kPageBytes / item_bytes, std::size_t{1} << numbering.index_bits))) {}

Slab::~Slab() {
  for (std::byte* memory : memory_) {
    if (memory != nullptr) arena_.give(memory);
  }
}

void Slab::set_partial(std::uint32_t page, bool partial) {
  const std::uint64_t bit = std::uint64_t{1} << (page % 64);
  if (partial) {
    partial_[page / 64] |= bit;
    ++partial_count_;
    lowest_ = std::min<std::size_t>(lowest_, page / 64);
  } else {
    partial_[page / 64] &= ~bit;
    --partial_count_;
  }
}

std::uint32_t Slab::open_page() {
  std::uint32_t page = 0;
  if (!vacant_.empty()) {
    page = vacant_.back();
    vacant_.pop_back();
  } else {
    page = static_cast<std::uint32_t>(memory_.size());
    if ((page + 1) >> (numbering_.number_bits - numbering_.index_bits) != 0) return kNothing;
    memory_.push_back(nullptr);
    pages_.emplace_back();
    if (partial_.size() * 64 <= page) partial_.push_back(0);
  }
  memory_[page] = arena_.take();
  pages_[page] = {};
  set_partial(page, true);
  return page;
}

std::uint32_t Slab::take() {
  std::uint32_t number = 0;
  if (partial_count_ == 0) {
    number = open_page();
    if (number == kNothing) return kNothing;
  } else {
    while (partial_[lowest_] == 0) ++lowest_;
    number = static_cast<std::uint32_t>(lowest_ * 64) +
             static_cast<std::uint32_t>(std::countr_zero(partial_[lowest_]));
  }
  Page& page = pages_[number];
  std::uint16_t index = page.free;
  if (index != kEnd) {
    std::memcpy(&page.free, memory_[number] + index * item_bytes_, sizeof page.free);
  } else {
    index = page.fresh++;
  }
  if (++page.used == per_page_) set_partial(number, false);
  return number << numbering_.index_bits | index;
}

void Slab::give(std::uint32_t number) {
  const std::uint32_t at = number >> numbering_.index_bits;
  Page& page = pages_[at];
  if (page.used == per_page_) set_partial(at, true);
  const auto item = static_cast<std::uint16_t>(index(number));
  std::memcpy(memory_[at] + item * item_bytes_, &page.free, sizeof page.free);
  page.free = item;
  if (--page.used > 0) return;
  set_partial(at, false);
  arena_.give(memory_[at]);
  memory_[at] = nullptr;
  vacant_.push_back(at);
}

}  // namespace baton::kvcache
