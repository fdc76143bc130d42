// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/engine_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>

namespace baton::kvcache {
namespace {

TEST(EngineMap, IsLikeAMap) {
  std::mt19937_64 chance(5);
  PageArena arena;
  EngineMap map(arena);
  std::map<std::uint64_t, BlockPlace> model;
  for (int i = 0; i < 200'000; ++i) {
    // Few names at first, then many, then few again.
    const std::uint64_t names = i < 20'000 ? 30 : i < 150'000 ? 20'000 : 100;
    const std::uint64_t name = chance() % names << (i % 2 == 0 ? 0 : 40);
    const EngineMap::Entry found = map.find(name);
    const auto wanted = model.find(name);
    ASSERT_EQ(static_cast<bool>(found), wanted != model.end());
    if (found) ASSERT_EQ(found.place(), wanted->second);
    if (found && chance() % 2 == 0) {
      map.erase(found);
      model.erase(wanted);
      map.shrink();
    } else if (!found) {
      map.reserve(1);
      map.put(name, static_cast<BlockPlace>(i));
      model[name] = static_cast<BlockPlace>(i);
    }
    ASSERT_EQ(map.size(), model.size());
  }
  std::map<std::uint64_t, BlockPlace> listed;
  map.for_each([&](std::uint64_t name, BlockPlace place) { listed.emplace(name, place); });
  EXPECT_EQ(listed, model);
}

TEST(EngineMap, FindsNamesMadeToBelongToOneLine) {
  PageArena arena;
  EngineMap map(arena);
  // The inverse of mix()'s factor: the hashes of these names are small numbers.
  std::uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E3779B97F4A7C15U * inverse;
  ASSERT_EQ(mix(inverse), 1U);
  constexpr std::uint32_t kNames = 6000;
  map.reserve(kNames);
  for (std::uint32_t i = 0; i < kNames; ++i) ASSERT_FALSE(map.put(i * inverse, i));
  for (std::uint32_t i = 0; i < kNames; i += 2) map.erase(map.find(i * inverse));
  for (std::uint32_t i = 0; i < kNames; ++i) {
    const EngineMap::Entry found = map.find(i * inverse);
    ASSERT_EQ(static_cast<bool>(found), i % 2 == 1);
    if (found) ASSERT_EQ(found.place(), i);
  }
}

TEST(EngineMap, TakesLittleMoreThanItsNames) {
  PageArena arena;
  EngineMap map(arena);
  for (std::uint64_t name = 0; name < 100'000; ++name) {
    map.reserve(1);
    map.put(name, 1);
    if (name > 10'000) ASSERT_LT(map.bytes(), name * 20);
  }
  while (map.size() > 100) {
    map.erase(map.find(map.size() - 1));
    map.shrink();
  }
  EXPECT_LT(map.bytes(), 100 * 64U);
  map.clear();
  EXPECT_EQ(map.bytes(), 0U);
}

TEST(EngineMap, APutOfANameThatIsThereSaysWhere) {
  PageArena arena;
  EngineMap map(arena);
  map.reserve(2);
  EXPECT_FALSE(map.put(7, 70));
  const EngineMap::Entry entry = map.put(7, 71);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry.place(), 70U);  // as it was
  EXPECT_TRUE(entry.is(7));
  EXPECT_FALSE(entry.is(8));
  entry.set_place(72);
  EXPECT_EQ(map.find(7).place(), 72U);
  EXPECT_EQ(map.size(), 1U);
}

TEST(EngineMap, TellsNamesApartThatShareAHalf) {
  PageArena arena;
  EngineMap map(arena);
  constexpr std::uint64_t kLow = 0x11112222;
  map.reserve(64);
  for (std::uint64_t high = 0; high < 32; ++high) {
    map.put(high << 32 | kLow, static_cast<BlockPlace>(high));
  }
  for (std::uint64_t high = 0; high < 32; ++high) {
    ASSERT_TRUE(map.find(high << 32 | kLow));
    EXPECT_EQ(map.find(high << 32 | kLow).place(), high);
    EXPECT_FALSE(map.find(high << 32 | (kLow + 1)));
    EXPECT_FALSE(map.find(kLow << 32 | high));
  }
}

TEST(EngineMap, EveryNameIsOneAlsoTheExtremes) {
  PageArena arena;
  EngineMap map(arena);
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(map.find(0));
  EXPECT_FALSE(map.find(kLast));
  map.reserve(2);
  map.put(0, 1);
  EXPECT_FALSE(map.find(kLast));
  map.put(kLast, kNoPlace);
  EXPECT_EQ(map.find(0).place(), 1U);
  EXPECT_EQ(map.find(kLast).place(), kNoPlace);
}

TEST(EngineMap, ThatIsClearedTakesNamesAgain) {
  PageArena arena;
  EngineMap map(arena);
  for (int round = 0; round < 5; ++round) {
    map.reserve(1000);
    for (std::uint64_t name = 0; name < 1000; ++name) map.put(name * 977, 5);
    EXPECT_EQ(map.size(), 1000U);
    map.clear();
    EXPECT_EQ(map.size(), 0U);
    EXPECT_EQ(map.bytes(), 0U);
    EXPECT_FALSE(map.find(977));
  }
}

}  // namespace
}  // namespace baton::kvcache
