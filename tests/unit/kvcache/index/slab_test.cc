// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <utility>
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

TEST(Slab, SaysWhenItsNumbersAreUsedUp) {
  PageArena arena;
  // Sixteen items a page, and 256 numbers: the last page would have the number that means nothing.
  Slab slab(arena, 64, {.index_bits = 4, .number_bits = 8});
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 240; ++i) {
    const std::uint32_t number = slab.take();
    ASSERT_LT(number, 240U);
    ASSERT_TRUE(numbers.insert(number).second);
  }
  EXPECT_EQ(slab.take(), Slab::kNothing);
  EXPECT_EQ(slab.take(), Slab::kNothing);
  slab.give(100);
  EXPECT_EQ(slab.take(), 100U);
  EXPECT_EQ(slab.take(), Slab::kNothing);
}

TEST(Slab, FillsTheLowestPageFirst) {
  PageArena arena;
  Slab slab(arena, 64, {.index_bits = 2, .number_bits = 16});
  for (std::uint32_t i = 0; i < 40; ++i) EXPECT_EQ(slab.take(), i);
  for (const std::uint32_t number : {37U, 21U, 5U}) slab.give(number);
  EXPECT_EQ(slab.take(), 5U);
  EXPECT_EQ(slab.take(), 21U);
  EXPECT_EQ(slab.take(), 37U);
  EXPECT_EQ(slab.take(), 40U);
}

TEST(Slab, ItemsLieApart) {
  PageArena arena;
  for (const std::size_t bytes : {16U, 20U, 1000U, 16'384U}) {
    Slab slab(arena, bytes);
    std::vector<std::byte*> items;
    for (int i = 0; i < 100; ++i) items.push_back(slab.at(slab.take()));
    std::ranges::sort(items);
    for (std::size_t i = 1; i < items.size(); ++i) {
      EXPECT_GE(static_cast<std::size_t>(items[i] - items[i - 1]), bytes);
    }
  }
}

}  // namespace
}  // namespace baton::kvcache
