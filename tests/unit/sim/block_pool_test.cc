// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/block_pool.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace baton::sim {
namespace {

std::vector<TokenId> prompt(std::size_t tokens, TokenId first = 100) {
  std::vector<TokenId> out(tokens);
  std::iota(out.begin(), out.end(), first);
  return out;
}

TEST(BlockPool, GivesBlocksThatCarryThePromptsTokens) {
  BlockPool pool(10, 4);
  const auto tokens = prompt(6);
  const auto allocation = pool.allocate(tokens, 3);
  ASSERT_TRUE(allocation);
  ASSERT_EQ(allocation->blocks.size(), 3U);
  const auto first = pool.tokens_of(allocation->blocks[0]);
  const auto second = pool.tokens_of(allocation->blocks[1]);
  EXPECT_EQ(std::vector(first.begin(), first.end()), prompt(4));
  EXPECT_EQ(std::vector(second.begin(), second.end()), prompt(2, 104));
  EXPECT_TRUE(pool.tokens_of(allocation->blocks[2]).empty());
  EXPECT_EQ(pool.available(), 7U);
}

TEST(BlockPool, RefusesWithoutSideEffectWhenThereIsNoRoom) {
  BlockPool pool(2, 4);
  EXPECT_FALSE(pool.allocate(prompt(8), 1));
  EXPECT_EQ(pool.available(), 2U);
  EXPECT_EQ(pool.cached(), 0U);
}

TEST(BlockPool, SharesTheFullBlocksOfAPrefixWhileHeld) {
  BlockPool pool(10, 4);
  const auto one = pool.allocate(prompt(9), 1);
  const auto two = pool.allocate(prompt(9), 1);
  EXPECT_EQ(two->cached_tokens, 8U);
  EXPECT_EQ(two->blocks[0], one->blocks[0]);
  EXPECT_EQ(two->blocks[1], one->blocks[1]);
  EXPECT_NE(two->blocks[2], one->blocks[2]);
  pool.release(one->blocks);
  EXPECT_EQ(pool.available(), 7U);
}

TEST(BlockPool, ReusesAReleasedPrefixButAlwaysComputesTheLastToken) {
  BlockPool pool(10, 4);
  pool.release(pool.allocate(prompt(8), 0)->blocks);
  EXPECT_EQ(pool.available(), 10U);
  EXPECT_EQ(pool.cached(), 2U);
  EXPECT_EQ(pool.allocate(prompt(8), 0)->cached_tokens, 4U);
}

TEST(BlockPool, EqualBlocksBehindDifferentPrefixesAreNotConfused) {
  BlockPool pool(10, 2);
  pool.release(pool.allocate(std::vector<TokenId>{1, 2, 7, 8, 9}, 0)->blocks);
  EXPECT_EQ(pool.allocate(std::vector<TokenId>{3, 4, 7, 8, 9}, 0)->cached_tokens, 0U);
}

TEST(BlockPool, EvictsTheLeastRecentlyUsedAndTheTailOfAPrefixFirst) {
  BlockPool pool(4, 2);
  pool.release(pool.allocate(prompt(4, 10), 0)->blocks);
  pool.release(pool.allocate(prompt(4, 20), 0)->blocks);
  // One block is needed and none is free: the tail of the older prefix goes.
  const auto other = pool.allocate(prompt(1, 90), 1);
  ASSERT_TRUE(other);
  EXPECT_EQ(pool.cached(), 3U);
  EXPECT_EQ(pool.allocate(prompt(3, 10), 0)->cached_tokens, 2U);
}

TEST(BlockPool, NeverEvictsWhatIsHeld) {
  BlockPool pool(2, 2);
  const auto held = pool.allocate(prompt(4), 0);
  EXPECT_FALSE(pool.allocate(prompt(1, 50), 0));
  const auto content = pool.tokens_of(held->blocks[0]);
  EXPECT_EQ(std::vector(content.begin(), content.end()), prompt(2));
}

TEST(BlockPool, CountsAddUpUnderRandomUse) {
  BlockPool pool(32, 4);
  std::mt19937 random(7);
  std::vector<std::vector<BlockId>> held;
  std::vector<std::uint32_t> references(32, 0);
  for (int i = 0; i < 5000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      const auto tokens = prompt(1 + random() % 30, static_cast<TokenId>(random() % 3));
      const auto allocation = pool.allocate(tokens, static_cast<std::uint32_t>(random() % 5));
      if (!allocation) continue;
      for (const BlockId block : allocation->blocks) ++references[block];
      held.push_back(allocation->blocks);
    } else {
      const std::size_t which = random() % held.size();
      for (const BlockId block : held[which]) --references[block];
      pool.release(held[which]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
    const auto unheld = std::ranges::count(references, 0U);
    ASSERT_EQ(pool.available(), static_cast<std::uint32_t>(unheld));
  }
}

}  // namespace
}  // namespace baton::sim
