// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// What a slot lists of itself, and what becomes of it when it is restored.
#include "kvcache/index/index.h"
#include "kvcache/index/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

namespace baton::kvcache {
namespace {

const Holder kOwner{.worker = {4}, .rank = 1};

// Blocks named 1, 2, …, each after the one before.
std::vector<NewBlock> counted(std::size_t count, EngineHash from = 1) {
  std::vector<NewBlock> blocks;
  for (EngineHash name = from; name < from + count; ++name) {
    blocks.push_back({.engine = name, .block = name * 1000});
  }
  return blocks;
}

std::vector<SequenceHash> prefixes(std::span<const NewBlock> blocks) {
  std::vector<SequenceHash> result;
  for (const NewBlock& block : blocks) {
    result.push_back(result.empty() ? first_sequence(block.block)
                                    : next_sequence(result.back(), block.block));
  }
  return result;
}

std::vector<Index::Held> listed(const Index& index, Slot slot) {
  std::vector<Index::Held> blocks;
  index.visit(slot, [&](const Index::Held& held) { blocks.push_back(held); });
  return blocks;
}

TEST(Listing, OfNothingIsEmpty) {
  Index index({});
  const Slot slot = index.join(kOwner);
  EXPECT_TRUE(listed(index, slot).empty());
}

TEST(Listing, NamesEachBlockAfterItsParent) {
  Index index({});
  const Slot slot = index.join(kOwner);
  const auto blocks = counted(300);  // several runs
  const auto sequences = prefixes(blocks);
  index.store(slot, {}, blocks, Tier::Device);
  const auto held = listed(index, slot);
  ASSERT_EQ(held.size(), 300U);
  for (std::size_t i = 0; i < held.size(); ++i) {
    Index::Held expected{.engine = blocks[i].engine, .sequence = sequences[i]};
    if (i > 0) expected.parent = blocks[i - 1].engine;
    expected.first = i == 0;
    expected.tiers = 1;
    EXPECT_EQ(held[i], expected) << i;
  }
}

TEST(Listing, SaysWhereEachBlockIs) {
  Index index({});
  const Slot slot = index.join(kOwner);
  index.store(slot, {}, counted(4), Tier::Device);
  index.copy(slot, std::array<EngineHash, 2>{2, 3}, Tier::Disk);
  index.copy(slot, std::array<EngineHash, 1>{3}, Tier::External);
  index.remove(slot, std::array<EngineHash, 2>{3, 4}, Tier::Device);
  std::map<EngineHash, unsigned> tiers;
  for (const Index::Held& held : listed(index, slot)) tiers[held.engine] = held.tiers;
  EXPECT_EQ(tiers, (std::map<EngineHash, unsigned>{{1, 1}, {2, 5}, {3, 12}}));
}

TEST(Listing, ABlockBehindAHoleHasNoParent) {
  Index index({});
  const Slot slot = index.join(kOwner);
  index.store(slot, {}, counted(4), Tier::Device);
  index.remove(slot, std::array<EngineHash, 1>{2}, Tier::Device);
  for (const Index::Held& held : listed(index, slot)) {
    EXPECT_EQ(held.parent.has_value(), held.engine == 4) << held.engine;
    EXPECT_EQ(held.first, held.engine == 1);
  }
}

TEST(Listing, IsOfOneSlotAlone) {
  Index index({});
  const Slot mine = index.join(kOwner);
  const Slot other = index.join({.worker = {5}, .rank = 0});
  index.store(mine, {}, counted(5), Tier::Device);
  index.store(other, {}, counted(9), Tier::Host);
  EXPECT_EQ(listed(index, mine).size(), 5U);
  EXPECT_EQ(listed(index, other).size(), 9U);
  index.leave(other);
  EXPECT_EQ(listed(index, mine).size(), 5U);
}

TEST(Listing, StaysAsItWasTaken) {
  Index index({});
  const Slot slot = index.join(kOwner);
  index.store(slot, {}, counted(10), Tier::Device);
  const Index::Listing listing = index.list(slot);
  index.clear(slot);
  index.store(slot, {}, counted(3, 500), Tier::Host);
  std::set<EngineHash> names;
  listing.visit([&](const Index::Held& held) {
    names.insert(held.engine);
    EXPECT_EQ(held.tiers, 1);
  });
  EXPECT_EQ(names.size(), 10U);
  EXPECT_EQ(*names.rbegin(), 10U);
}

TEST(Listing, EachNameOfABlockHasItsOwnTiers) {
  Index index({});
  const Slot slot = index.join(kOwner);
  index.store(slot, {}, std::array{NewBlock{.engine = 1, .block = 5}}, Tier::Device);
  index.store(slot, {}, std::array{NewBlock{.engine = 2, .block = 5}}, Tier::Host);
  std::map<EngineHash, unsigned> tiers;
  for (const Index::Held& held : listed(index, slot)) {
    tiers[held.engine] = held.tiers;
    EXPECT_TRUE(held.first);
  }
  EXPECT_EQ(tiers, (std::map<EngineHash, unsigned>{{1, 1}, {2, 2}}));
}

TEST(Restore, TakesTiersAsTheyAre) {
  Index index({});
  const Slot slot = index.join(kOwner);
  const auto sequences = prefixes(counted(4));
  const std::vector<Index::Restored> blocks{{.engine = 1, .sequence = sequences[0], .tiers = 1},
                                            {.engine = 2, .sequence = sequences[1], .tiers = 2},
                                            {.engine = 3, .sequence = sequences[2], .tiers = 6},
                                            {.engine = 4, .sequence = sequences[3], .tiers = 8}};
  EXPECT_EQ(index.restore(slot, {}, blocks), (Applied{.done = 4}));
  EXPECT_EQ(index.holding(slot).blocks, (std::array<std::size_t, kTiers>{1, 2, 1, 1}));
  const auto match = index.match_one(slot, sequences);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->holder, kOwner);
  EXPECT_EQ(match->blocks, (std::array<std::uint32_t, kTiers>{1, 3, 3, 4}));
}

TEST(Restore, OfWhatIsThereIsKnown) {
  Index index({});
  const Slot slot = index.join(kOwner);
  index.store(slot, {}, counted(5), Tier::Device);
  const auto held = listed(index, slot);
  EXPECT_EQ(restore_blocks(index, slot, held), (Applied{.known = 5}));
  EXPECT_EQ(index.size().blocks, 5U);
}

TEST(Restore, NothingFollowsABlockThatIsNowhere) {
  Index index({});
  const Slot slot = index.join(kOwner);
  const std::vector<Index::Restored> blocks{{.engine = 1, .sequence = 10, .tiers = 1},
                                            {.engine = 2, .sequence = 20, .tiers = 0},
                                            {.engine = 3, .sequence = 30, .tiers = 1}};
  EXPECT_EQ(index.restore(slot, {}, blocks), (Applied{.done = 1, .unknown_parent = 2}));
  EXPECT_EQ(index.size().blocks, 1U);
}

TEST(Restore, OnlyTiersThatThereAreCount) {
  Index index({});
  const Slot slot = index.join(kOwner);
  const std::vector<Index::Restored> blocks{{.engine = 1, .sequence = 10, .tiers = 0x31},
                                            {.engine = 2, .sequence = 20, .tiers = 0x30}};
  EXPECT_EQ(index.restore(slot, {}, blocks), (Applied{.done = 1, .unknown_parent = 1}));
  EXPECT_EQ(index.holding(slot).blocks, (std::array<std::size_t, kTiers>{1, 0, 0, 0}));
}

TEST(Restore, AfterAParentThatTheSlotHas) {
  Index index({});
  const Slot slot = index.join(kOwner);
  const Slot other = index.join({.worker = {9}, .rank = 0});
  const auto blocks = counted(3);
  const auto sequences = prefixes(blocks);
  index.store(slot, {}, std::span(blocks).first(2), Tier::Device);
  const std::array rest{Index::Restored{.engine = 3, .sequence = sequences[2], .tiers = 1}};
  EXPECT_EQ(index.restore(other, 2, rest), (Applied{.unknown_parent = 1}));
  EXPECT_EQ(index.restore(slot, 2, rest), (Applied{.done = 1}));
  EXPECT_EQ(index.match_one(slot, sequences)->blocks[0], 3U);
}

TEST(Restore, StopsWhereThereIsNoRoom) {
  Index index({.blocks = 3});
  const Slot slot = index.join(kOwner);
  std::vector<Index::Restored> blocks;
  for (std::uint64_t i = 0; i < 6; ++i) {
    blocks.push_back(
        {.engine = i, .sequence = 100 + i, .tiers = static_cast<std::uint8_t>(1 + i % 2)});
  }
  EXPECT_EQ(index.restore(slot, {}, blocks), (Applied{.done = 3, .no_room = 3}));
  EXPECT_EQ(index.size().blocks, 3U);
}

TEST(RestoreBlocks, OfNothingIsNothing) {
  Index index({});
  const Slot slot = index.join(kOwner);
  EXPECT_EQ(restore_blocks(index, slot, {}), Applied{});
}

// Whatever an engine did before the snapshot, the restored index answers like the old one as far as
// prefixes reach from a first block, and any blocks behind a hole are the ones that are missing.
TEST(RestoreBlocks, BringsBackAllThatHangsTogether) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    Index old({});
    const Slot slot = old.join(kOwner);
    std::vector<EngineHash> names;
    std::vector<std::vector<SequenceHash>> prompts;
    for (int i = 0; i < 30; ++i) {
      std::vector<NewBlock> blocks;
      for (std::uint32_t n = 1 + random() % 200; n > 0; --n) {
        blocks.push_back({.engine = 0, .block = blocks.size() < 40 ? 7 : 7 + random() % 2});
      }
      prompts.push_back(prefixes(blocks));
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        blocks[k].engine = prompts.back()[k] / 2;  // of its place, as engines have it
        names.push_back(blocks[k].engine);
      }
      old.store(slot, {}, blocks, static_cast<Tier>(random() % 2));
    }
    for (std::uint32_t n = random() % 20; n > 0; --n) {  // from anywhere, as a cache evicts
      const std::array name{names[random() % names.size()]};
      old.remove(slot, name, Tier::Device);
      old.remove(slot, name, Tier::Host);
    }
    const auto before = listed(old, slot);
    Index fresh({});
    const Slot again = fresh.join(kOwner);
    const Applied applied = restore_blocks(fresh, again, before);
    EXPECT_EQ(applied.done + applied.unknown_parent, before.size());
    for (const auto& prompt : prompts) {
      const auto was = old.match_one(slot, prompt);
      const auto is = fresh.match_one(again, prompt);
      ASSERT_EQ(is, was) << seed;
    }
    std::set<EngineHash> had;
    for (const Index::Held& held : before) had.insert(held.engine);
    for (const Index::Held& held : listed(fresh, again)) EXPECT_TRUE(had.contains(held.engine));
  }
}

}  // namespace
}  // namespace baton::kvcache
