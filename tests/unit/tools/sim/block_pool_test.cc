// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <variant>
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

PoolSettings recording(std::uint32_t host_blocks = 0, HashRule rule = HashRule::TrtllmV1) {
  return {.hasher = BlockHasher(rule), .recording = true, .host_blocks = host_blocks};
}

TEST(BlockPool, TellsOfAPromptsNewBlocksAsOne) {
  BlockPool pool(10, 4, recording());
  const auto one = pool.allocate(prompt(9), 1);
  auto changes = pool.take_changes();
  ASSERT_EQ(changes.size(), 1U);
  const auto first = std::get<BlocksStored>(changes[0]);
  EXPECT_FALSE(first.parent);
  EXPECT_EQ(first.hashes.size(), 2U);
  EXPECT_EQ(first.tokens, prompt(8));

  auto longer = prompt(9);
  longer.push_back(7);
  longer.insert(longer.end(), {7, 7, 7});
  pool.allocate(longer, 0);
  changes = pool.take_changes();
  ASSERT_EQ(changes.size(), 1U);
  const auto second = std::get<BlocksStored>(changes[0]);
  EXPECT_EQ(second.parent, first.hashes[1]);
  EXPECT_EQ(second.tokens, (std::vector<TokenId>{108, 7, 7, 7}));
  EXPECT_TRUE(pool.take_changes().empty());
}

TEST(BlockPool, FindsWhatWasGeneratedOnceABlockIsFull) {
  BlockPool pool(10, 4, recording());
  auto sequence = *pool.allocate(prompt(6), 6);
  pool.take_changes();
  pool.append(sequence, std::vector<TokenId>{106});
  EXPECT_TRUE(pool.take_changes().empty());
  pool.append(sequence, std::vector<TokenId>{107, 108});
  const auto changes = pool.take_changes();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(std::get<BlocksStored>(changes[0]).tokens, prompt(4, 104));
  pool.release(sequence.blocks);
  EXPECT_EQ(pool.cached(), 2U);
  EXPECT_EQ(pool.allocate(prompt(9), 0)->cached_tokens, 8U);
}

TEST(BlockPool, TwoThatGenerateTheSameShareOneBlock) {
  BlockPool pool(10, 2, recording());
  auto one = *pool.allocate(prompt(2), 4);
  auto two = *pool.allocate(prompt(2), 4);
  EXPECT_EQ(one.blocks[0], two.blocks[0]);
  const auto more = prompt(3, 102);
  pool.append(one, more);
  pool.append(two, more);
  EXPECT_EQ(one.blocks[1], two.blocks[1]);
  EXPECT_EQ(pool.take_changes().size(), 2U);
  pool.release(one.blocks);
  pool.release(two.blocks);
  EXPECT_EQ(pool.available(), 10U);
  EXPECT_EQ(pool.cached(), 2U);
}

TEST(BlockPool, ScopesDoNotShareBlocks) {
  BlockPool pool(20, 4, recording(0, HashRule::Sglang));
  const CacheScope adapter{.lora = "a", .lora_id = 1};
  pool.release(pool.allocate(prompt(9), 0)->blocks);
  EXPECT_EQ(pool.allocate(prompt(9), 0, adapter)->cached_tokens, 0U);
  EXPECT_EQ(pool.allocate(prompt(9), 0, {.salt = "s"})->cached_tokens, 0U);
  EXPECT_EQ(pool.allocate(prompt(9), 0, adapter)->cached_tokens, 8U);
}

TEST(BlockPool, WithoutACacheNothingIsFoundOrTold) {
  BlockPool pool(10, 4, {.caching = false, .recording = true});
  auto sequence = *pool.allocate(prompt(9), 4);
  pool.append(sequence, prompt(3, 109));
  pool.release(sequence.blocks);
  EXPECT_EQ(pool.allocate(prompt(9), 0)->cached_tokens, 0U);
  EXPECT_TRUE(pool.take_changes().empty());
  EXPECT_TRUE(pool.table().empty());
}

TEST(BlockPool, ClearedBlocksAreNotFoundAndWhatFollowsThemIsNotEither) {
  BlockPool pool(10, 4, recording());
  auto held = *pool.allocate(prompt(9), 4);
  pool.release(pool.allocate(prompt(5, 50), 0)->blocks);
  pool.take_changes();
  pool.clear();
  EXPECT_TRUE(std::holds_alternative<CacheCleared>(pool.take_changes().at(0)));
  EXPECT_TRUE(pool.table().empty());
  pool.append(held, prompt(3, 109));
  EXPECT_TRUE(pool.take_changes().empty());
  pool.release(held.blocks);
  EXPECT_EQ(pool.available(), 10U);
  EXPECT_EQ(pool.allocate(prompt(9), 0)->cached_tokens, 0U);
}

TEST(BlockPool, AForgottenBlockIsGoneUnnoticed) {
  BlockPool pool(10, 4, recording());
  pool.release(pool.allocate(prompt(5), 0)->blocks);
  const auto stored = std::get<BlocksStored>(pool.take_changes().at(0));
  pool.forget(stored.hashes[0], {});
  EXPECT_TRUE(pool.take_changes().empty());
  EXPECT_TRUE(pool.table().empty());
  EXPECT_EQ(pool.available(), 10U);
  EXPECT_EQ(pool.allocate(prompt(5), 0)->cached_tokens, 0U);
}

TEST(BlockPool, APartialBlockIsToldOfAndServesNobody) {
  BlockPool pool(10, 4, recording());
  auto sequence = *pool.allocate(prompt(6), 0);
  pool.take_changes();
  pool.cache_partial(sequence);
  const auto told = std::get<BlocksStored>(pool.take_changes().at(0));
  EXPECT_EQ(told.tokens, prompt(2, 104));
  pool.release(sequence.blocks);
  EXPECT_EQ(pool.allocate(prompt(7), 0)->cached_tokens, 4U);
}

TEST(BlockPool, EvictedBlocksAreFoundInHostMemory) {
  BlockPool pool(4, 2, recording(2));
  pool.release(pool.allocate(prompt(8, 10), 0)->blocks);
  pool.take_changes();
  pool.release(pool.allocate(prompt(4, 50), 0)->blocks);  // pushes out the last two
  const auto changes = pool.take_changes();
  ASSERT_EQ(changes.size(), 5U);
  EXPECT_EQ(std::get<BlockRemoved>(changes[0]).tier, Tier::Device);
  EXPECT_EQ(std::get<BlocksStored>(changes[1]).tier, Tier::Host);
  EXPECT_EQ(std::get<BlocksStored>(changes[1]).tokens, prompt(2, 16));
  EXPECT_EQ(pool.allocate(prompt(7, 10), 0)->cached_tokens, 6U);
}

// What a reader of all changes knows: tokens by (parent and hash, tier).
class Reader {
 public:
  using Row = std::tuple<BlockHash, std::optional<BlockHash>, std::vector<TokenId>>;

  void read(const std::vector<BlockChange>& changes, std::uint32_t block_size) {
    for (const BlockChange& change : changes) {
      if (const auto* stored = std::get_if<BlocksStored>(&change)) {
        std::optional<BlockHash> parent = stored->parent;
        ASSERT_EQ(stored->tokens.size(), stored->hashes.size() * block_size);
        for (std::size_t i = 0; i < stored->hashes.size(); ++i) {
          const auto begin = stored->tokens.begin() + static_cast<std::ptrdiff_t>(i * block_size);
          const bool added = known_[stored->tier]
                                 .try_emplace(stored->hashes[i], stored->hashes[i], parent,
                                              std::vector<TokenId>(begin, begin + block_size))
                                 .second;
          ASSERT_TRUE(added) << "stored twice";
          parent = stored->hashes[i];
        }
      } else if (const auto* removed = std::get_if<BlockRemoved>(&change)) {
        ASSERT_EQ(known_[removed->tier].erase(removed->hash), 1U) << "removed what was not there";
      } else {
        known_.clear();
      }
    }
  }

  std::map<Tier, std::map<BlockHash, Row>> known_;
};

void replay_against_the_table(std::uint32_t host_blocks, HashRule rule) {
  constexpr std::uint32_t kBlockSize = 4;
  BlockPool pool(40, kBlockSize, recording(host_blocks, rule));
  std::mt19937 random(11);
  std::vector<BlockPool::Allocation> held;
  Reader reader;
  const std::vector<CacheScope> scopes{{}, {.salt = "s"}, {.salt = "t"}};
  for (int i = 0; i < 4000; ++i) {
    const auto pick = random() % 100;
    if (pick < 45) {
      const auto tokens = prompt(1 + random() % 40, static_cast<TokenId>(random() % 4));
      auto allocation = pool.allocate(tokens, 6, scopes[random() % scopes.size()]);
      if (allocation) held.push_back(std::move(*allocation));
    } else if (pick < 70 && !held.empty()) {
      auto& sequence = held[random() % held.size()];
      const std::size_t room = sequence.blocks.size() * kBlockSize - sequence.tokens;
      std::vector<TokenId> more(std::min<std::size_t>(room, random() % 6));
      for (TokenId& token : more) token = static_cast<TokenId>(random() % 2);
      pool.append(sequence, more);
    } else if (pick < 99 && !held.empty()) {
      const std::size_t which = random() % held.size();
      pool.release(held[which].blocks);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    } else if (pick == 99 && random() % 10 == 0) {
      pool.clear();
    }
    reader.read(pool.take_changes(), kBlockSize);
    std::map<Tier, std::map<BlockHash, Reader::Row>> truth;
    for (const CachedBlock& block : pool.table()) {
      truth[block.tier].emplace(block.hash, Reader::Row{block.hash, block.parent, block.tokens});
    }
    for (const Tier tier : {Tier::Device, Tier::Host}) {
      ASSERT_EQ(reader.known_[tier], truth[tier]) << "after " << i;
    }
    for (const auto& [hash, row] : truth[Tier::Device]) {
      const auto& parent = std::get<1>(row);
      ASSERT_TRUE(!parent || truth[Tier::Device].contains(*parent)) << "orphan after " << i;
    }
  }
}

TEST(BlockPool, ItsChangesReplayedAreItsTable) {
  replay_against_the_table(0, HashRule::VllmCbor);
  replay_against_the_table(0, HashRule::TrtllmV1);
}

TEST(BlockPool, ItsChangesReplayedAreItsTableOnBothTiers) {
  replay_against_the_table(12, HashRule::Sglang);
}

}  // namespace
}  // namespace baton::sim
