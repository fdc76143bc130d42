// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/array_pool.h"

#include <algorithm>
#include <array>

namespace baton::kvcache {
namespace {

constexpr std::array<std::uint16_t, 22> kSizes{16,   24,   32,   48,   64,   80,  96,  128,
                                               160,  192,  256,  320,  384,  512, 640, 768,
                                               1024, 1280, 1536, 2048, 2720, 4096};
constexpr unsigned kNumberBits = 26;
constexpr ArrayPool::Ref kLarge = 0xFFFFFFFF;

// The smallest that is large enough, by 16 bytes each.
constexpr auto kSizeFor = [] {
  std::array<std::uint8_t, 4096 / 16 + 1> found{};
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::uint8_t at = 0;
    while (kSizes[at] < i * 16) ++at;
    found[i] = at;
  }
  return found;
}();

}  // namespace

ArrayPool::ArrayPool(PageArena& arena) {
  for (const std::uint16_t bytes : kSizes) slabs_.push_back(std::make_unique<Slab>(arena, bytes));
}

ArrayPool::~ArrayPool() {
  for (const auto& [memory, bytes] : large_) free_array(memory, bytes);
}

ArrayPool::Array ArrayPool::take(std::size_t bytes) {
  if (bytes <= kSizes.back()) {
    const unsigned size = bytes > 16 && bytes <= 24 ? 1 : kSizeFor[(bytes + 15) / 16];
    const std::uint32_t number = slabs_[size]->take();
    // Without a number left it is treated as a large one.
    if (number != Slab::kNothing) {
      return {.memory = slabs_[size]->at(number),
              .bytes = kSizes[size],
              .ref = size << kNumberBits | number};
    }
  }
  const std::size_t roomy = (bytes + bytes / 4) / 16 * 16 + 16;
  std::byte* memory = allocate_array(roomy);
  large_.emplace(memory, roomy);
  large_bytes_ += roomy;
  return {.memory = memory, .bytes = roomy, .ref = kLarge};
}

void ArrayPool::give(std::byte* memory, Ref ref) {
  if (ref != kLarge) {
    slabs_[ref >> kNumberBits]->give(ref & Slab::kNothing);
    return;
  }
  const auto found = large_.find(memory);
  free_array(memory, found->second);
  large_bytes_ -= found->second;
  large_.erase(found);
}

}  // namespace baton::kvcache
