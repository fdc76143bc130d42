// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/array_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace baton::kvcache {
namespace {

TEST(ArrayPool, GivesWhatIsAskedForAndLittleMore) {
  PageArena arena;
  ArrayPool pool(arena);
  for (std::size_t bytes = 8; bytes < 20'000; bytes += 8) {
    const ArrayPool::Array array = pool.take(bytes);
    EXPECT_GE(array.bytes, bytes);
    EXPECT_LE(array.bytes, bytes + bytes / 2 + 16);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.memory) % 8, 0U);
    pool.give(array.memory, array.ref);
  }
}

TEST(ArrayPool, ArraysDoNotOverlap) {
  PageArena arena;
  ArrayPool pool(arena);
  struct Taken {
    ArrayPool::Array array;
    std::byte mark;
  };
  std::vector<Taken> taken;
  std::mt19937 chance(9);
  for (int i = 0; i < 20'000; ++i) {
    if (taken.empty() || chance() % 5 < 3) {
      const ArrayPool::Array array = pool.take(1 + chance() % (i % 100 == 0 ? 10'000 : 600));
      const auto mark = static_cast<std::byte>(i);
      std::fill_n(array.memory, array.bytes, mark);
      taken.push_back({array, mark});
    } else {
      std::swap(taken[chance() % taken.size()], taken.back());
      const auto& [array, mark] = taken.back();
      ASSERT_TRUE(std::all_of(array.memory, array.memory + array.bytes,
                              [&](std::byte byte) { return byte == mark; }));
      pool.give(array.memory, array.ref);
      taken.pop_back();
    }
  }
  for (const Taken& each : taken) pool.give(each.array.memory, each.array.ref);
  EXPECT_EQ(pool.bytes(), 0U);
}

TEST(ArrayPool, CountsLargeArraysItself) {
  PageArena arena;
  ArrayPool pool(arena);
  const ArrayPool::Array array = pool.take(100'000);
  EXPECT_EQ(pool.bytes(), array.bytes);
  EXPECT_EQ(arena.bytes(), 0U);
  pool.give(array.memory, array.ref);
  EXPECT_EQ(pool.bytes(), 0U);
}

TEST(ArrayPool, ArraysGivenBackAreTakenAgain) {
  PageArena arena;
  ArrayPool pool(arena);
  std::vector<ArrayPool::Array> arrays;
  for (int i = 0; i < 1000; ++i) arrays.push_back(pool.take(48));
  const std::size_t bytes = arena.bytes();
  for (int round = 0; round < 5; ++round) {
    for (const ArrayPool::Array& array : arrays) pool.give(array.memory, array.ref);
    for (ArrayPool::Array& array : arrays) array = pool.take(48);
    EXPECT_EQ(arena.bytes(), bytes);
  }
  for (const ArrayPool::Array& array : arrays) pool.give(array.memory, array.ref);
  EXPECT_EQ(arena.bytes(), 0U);
}

TEST(ArrayPool, LargeArraysGoWithThePool) {
  PageArena arena;
  ArrayPool pool(arena);
  const ArrayPool::Array first = pool.take(5'000);
  const ArrayPool::Array second = pool.take(500'000);
  EXPECT_EQ(pool.bytes(), first.bytes + second.bytes);
  pool.give(first.memory, first.ref);
  EXPECT_EQ(pool.bytes(), second.bytes);
}

}  // namespace
}  // namespace baton::kvcache
