// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace baton::kvcache {
namespace {

TEST(Slab, ItemsKeepWhatIsWrittenToThem) {
  PageArena arena;
  Slab slab(arena, 24);
  std::mt19937 chance(1);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> items;
  for (int i = 0; i < 50'000; ++i) {
    if (items.empty() || chance() % 5 < 3) {
      const std::uint32_t number = slab.take();
      const std::uint64_t value = chance();
      std::memcpy(slab.at(number) + 16, &value, sizeof value);
      items.emplace_back(number, value);
    } else {
      std::swap(items[chance() % items.size()], items.back());
      std::uint64_t value = 0;
      std::memcpy(&value, slab.at(items.back().first) + 16, sizeof value);
      ASSERT_EQ(value, items.back().second);
      slab.give(items.back().first);
      items.pop_back();
    }
  }
}

TEST(Slab, GivesPagesBack) {
  PageArena arena;
  {
    Slab slab(arena, 1024);
    std::vector<std::uint32_t> numbers;
    for (int i = 0; i < 1600; ++i) numbers.push_back(slab.take());
    EXPECT_EQ(arena.bytes(), 100 * PageArena::kPageBytes);
    std::mt19937 chance(1);
    std::ranges::shuffle(numbers, chance);
    // Half of them go, from everywhere; as many come again and take no more.
    for (int i = 0; i < 800; ++i) slab.give(numbers[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 800; ++i) numbers[static_cast<std::size_t>(i)] = slab.take();
    EXPECT_EQ(arena.bytes(), 100 * PageArena::kPageBytes);
    for (const std::uint32_t number : numbers) slab.give(number);
    EXPECT_EQ(arena.bytes(), 0U);
    slab.take();
    EXPECT_EQ(arena.bytes(), PageArena::kPageBytes);
  }
  EXPECT_EQ(arena.bytes(), 0U);
}

}  // namespace
}  // namespace baton::kvcache
