// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/memory/huge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace baton::memory {
namespace {

bool begins_huge_page(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % kHugePage == 0;
}

TEST(HugePages, AreMappedFromABorderOfTheirs) {
  for (const std::size_t bytes : {kHugePage, kHugePage + 1, 3 * kHugePage - 8}) {
    std::byte* const memory = map(bytes, SystemPages::Huge);
    EXPECT_TRUE(begins_huge_page(memory)) << bytes;
    unmap(memory, bytes);
  }
}

TEST(HugePages, HoldZerosOfAnySize) {
  for (const SystemPages pages : {SystemPages::Huge, SystemPages::Small}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, kHugePage + 1}) {
      std::byte* const memory = map(bytes, pages);
      EXPECT_TRUE(std::ranges::all_of(std::span(memory, bytes),
                                      [](std::byte byte) { return byte == std::byte{0}; }));
      memory[bytes - 1] = std::byte{1};
      unmap(memory, bytes);
    }
  }
}

TEST(HugePages, AreOfUseToAVectorThatGrows) {
  std::vector<std::uint32_t, HugePages<std::uint32_t>> table(3);
  std::iota(table.begin(), table.end(), 0U);
  table.resize(kHugePage);
  EXPECT_TRUE(begins_huge_page(table.data()));
  EXPECT_EQ(table[2], 2U);
  EXPECT_EQ(table.back(), 0U);
}

}  // namespace
}  // namespace baton::memory
