// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/memory_budget.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace baton {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

TEST(MemoryBudget, SharesTogetherHaveNoMoreThanTheLimit) {
  MemoryBudget budget(kMiB);
  MemoryShare one(&budget);
  MemoryShare other(&budget);
  EXPECT_TRUE(one.cover(600 * kKiB));
  EXPECT_FALSE(other.cover(600 * kKiB));
  EXPECT_EQ(other.held(), 0U);
  EXPECT_TRUE(other.cover(300 * kKiB));
  EXPECT_FALSE(other.cover(500 * kKiB));
  EXPECT_TRUE(other.cover(300 * kKiB)) << "what it has stays";
  EXPECT_LE(budget.used(), kMiB);
  one.shrink(0);
  EXPECT_TRUE(other.cover(900 * kKiB));
}

TEST(MemoryBudget, WhatEndsGivesEverythingBack) {
  MemoryBudget budget(4 * kMiB);
  {
    MemoryShare share(&budget);
    EXPECT_TRUE(share.cover(kMiB));
    MemoryShare moved(std::move(share));
    EXPECT_EQ(budget.used(), kMiB);
    MemoryShare assigned(&budget);
    EXPECT_TRUE(assigned.cover(2 * kMiB));
    assigned = std::move(moved);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(MemoryBudget, ShortTextsAreNeitherCountedNorRefused) {
  MemoryBudget budget(kMiB);
  MemoryShare large(&budget);
  ASSERT_TRUE(large.cover(kMiB));
  MemoryShare small(&budget);
  EXPECT_TRUE(small.cover(MemoryBudget::kUncounted));
  EXPECT_TRUE(small.cover_work(MemoryBudget::kUncounted, 13));
  EXPECT_TRUE(budget.has_room(MemoryBudget::kUncounted));
  EXPECT_FALSE(small.cover(MemoryBudget::kUncounted + 1));
  EXPECT_FALSE(budget.has_room(MemoryBudget::kUncounted + 1));
  EXPECT_EQ(budget.used(), kMiB);
}

TEST(MemoryBudget, WorkTakesSeveralTimesItsText) {
  MemoryBudget budget(kMiB);
  MemoryShare share(&budget);
  EXPECT_TRUE(share.cover_work(100 * kKiB, 5));
  EXPECT_GE(share.held(), 500 * kKiB);
  EXPECT_FALSE(share.cover_work(100 * kKiB, 13));
  share.shrink(100 * kKiB);
  EXPECT_LT(share.held(), 200 * kKiB);
  EXPECT_EQ(share.held(), budget.used());
}

TEST(MemoryBudget, WithoutALimitEverythingFitsAndIsCounted) {
  MemoryBudget budget(0);
  MemoryShare share(&budget);
  EXPECT_TRUE(share.cover_work(std::size_t{64} << 30U, 13));
  EXPECT_GT(budget.used(), 0U);
  EXPECT_EQ(budget.limit(), 0U);
  EXPECT_GT(budget.largest_body(), std::size_t{1} << 50U);
  MemoryShare of_none;
  EXPECT_TRUE(of_none.cover(std::size_t{1} << 50U));
}

TEST(MemoryBudget, TheLargestBodyIsOneThatCanBeRead) {
  MemoryBudget budget(10 * kMiB);
  MemoryShare share(&budget);
  EXPECT_TRUE(share.cover_work(budget.largest_body(), MemoryBudget::kToRead));
  share.shrink(0);
  EXPECT_FALSE(share.cover_work(budget.largest_body() + kMiB, MemoryBudget::kToRead));
}

TEST(MemoryBudget, TellsOfAnEbbOnceForEachMuch) {
  int ebbs = 0;
  MemoryBudget budget(1024 * kMiB, [&ebbs] { ++ebbs; });
  std::optional<MemoryShare> share(std::in_place, &budget);
  ASSERT_TRUE(share->cover(100 * kMiB));
  share->shrink(95 * kMiB);
  EXPECT_EQ(ebbs, 0);
  share->shrink(50 * kMiB);
  EXPECT_EQ(ebbs, 1);
  share->shrink(45 * kMiB);
  EXPECT_EQ(ebbs, 1);
  share.reset();
  EXPECT_EQ(ebbs, 2);
}

TEST(MemoryBudget, ThreadsNeverHaveMoreThanTheLimitTogether) {
  MemoryBudget budget(4 * kMiB);
  std::atomic<bool> too_much = false;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 2'000; ++round) {
          MemoryShare share(&budget);
          for (std::size_t size = 1; size <= 32; size *= 2) {
            if (!share.cover(size * 100 * kKiB)) break;
            if (budget.used() > budget.limit()) too_much = true;
          }
        }
      });
    }
  }
  EXPECT_FALSE(too_much);
  EXPECT_EQ(budget.used(), 0U);
}

TEST(MemoryBudget, ARefusalSaysWhenToComeAgainAndBlamesNobody) {
  const Error error = no_memory_for("the request's body");
  EXPECT_EQ(error.http_status(), 503);
  EXPECT_EQ(error.info().fault, Fault::Us);
  EXPECT_FALSE(error.info().retryable);
  EXPECT_TRUE(error.retry_after());
  EXPECT_EQ(error.limit(), Limit::Memory);
}

}  // namespace
}  // namespace baton
