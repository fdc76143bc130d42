// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/paged_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace baton {
namespace {

int alive = 0;

struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) = delete;
  ~Counted() { --alive; }
  std::uint64_t value = 0;
};

TEST(PagedPool, EachIsItsOwnAndOutlivesItsMaker) {
  constexpr std::uint64_t kCount = 5'000;  // of several pages
  std::vector<std::shared_ptr<Counted>> made;
  {
    PagedPool<Counted> maker;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      made.push_back(maker.make());
      EXPECT_EQ(made.back()->value, 0U);
      made.back()->value = i + 1;
    }
  }
  for (std::uint64_t i = 0; i < kCount; i += 2) made[i].reset();
  for (std::uint64_t i = 1; i < kCount; i += 2) EXPECT_EQ(made[i]->value, i + 1);
  made.clear();
  EXPECT_EQ(alive, 0);
}

TEST(PagedPool, KeepsNothingOfWhatIsGone) {
  PagedPool<Counted> maker;
  EXPECT_EQ(maker.make()->value, 0U);
  EXPECT_EQ(alive, 0);
  const auto next = maker.make();
  EXPECT_GT(alive, 0);
  next->value = 7;
  EXPECT_EQ(maker.make()->value, 0U);
}

TEST(PagedPool, NeighboursAreNear) {
  PagedPool<std::uint64_t> maker;
  const auto one = maker.make();
  const auto other = maker.make();
  EXPECT_EQ(other.get(), one.get() + 1);
}

TEST(PagedPool, WhatIsLargeAndAlignedStaysSo) {
  struct alignas(128) Large {
    std::array<char, 20'000> bytes{};
  };
  PagedPool<Large> maker;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(maker.make().get()) % 128, 0U);
}

}  // namespace
}  // namespace baton
