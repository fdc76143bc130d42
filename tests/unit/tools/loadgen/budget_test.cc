// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/budget.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace baton::loadgen {
namespace {

TEST(RunBudget, OfNothingIsSpent) {
  Budget budget(0);
  EXPECT_TRUE(budget.spent());
  EXPECT_EQ(budget.take_request(), std::nullopt);
}

TEST(RunBudget, WithoutALimitIsNeverSpent) {
  Budget budget(std::nullopt);
  for (std::uint64_t i = 0; i < 100'000; ++i) ASSERT_EQ(budget.take_request(), i);
  EXPECT_FALSE(budget.spent());
}

TEST(RunBudget, IsSpentWithItsLastRequestAndStaysSo) {
  Budget budget(2);
  EXPECT_EQ(budget.take_request(), 0U);
  EXPECT_FALSE(budget.spent());
  EXPECT_EQ(budget.take_request(), 1U);
  EXPECT_TRUE(budget.spent());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(budget.take_request(), std::nullopt);
}

TEST(RunBudget, ConversationsAreNumberedApartFromRequests) {
  Budget budget(1);
  EXPECT_EQ(budget.take_conversation(), 0U);
  EXPECT_EQ(budget.take_request(), 0U);
  EXPECT_EQ(budget.take_conversation(), 1U);
  EXPECT_EQ(budget.take_request(), std::nullopt);
  EXPECT_EQ(budget.take_conversation(), 2U);
}

TEST(RunBudget, NoConversationHasTwoThreads) {
  Budget budget(std::nullopt);
  std::vector<std::vector<std::uint64_t>> taken(3);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : taken) {
      threads.emplace_back([&budget, &mine] {
        for (int i = 0; i < 2000; ++i) {
          budget.begin();
          mine.push_back(budget.take_conversation());
          budget.end();
        }
      });
    }
  }
  std::set<std::uint64_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 6000U);
  EXPECT_EQ(*all.rbegin(), 5999U);
  EXPECT_EQ(budget.in_flight(), 0U);
}

TEST(RunBudget, CountsWhatIsUnderWay) {
  Budget budget(10);
  budget.begin();
  budget.begin();
  EXPECT_EQ(budget.in_flight(), 2U);
  budget.end();
  EXPECT_EQ(budget.in_flight(), 1U);
}

}  // namespace
}  // namespace baton::loadgen
