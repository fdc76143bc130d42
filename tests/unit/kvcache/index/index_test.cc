// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace baton::kvcache {
namespace {

using Lengths = std::array<std::uint32_t, kTiers>;

Holder worker(std::uint64_t id, std::uint32_t rank = 0) { return {.worker = {id}, .rank = rank}; }

// A prompt of blocks that are not in any other salt's, with the names that an engine gives them.
struct Chain {
  std::vector<NewBlock> blocks;
  std::vector<SequenceHash> sequences;
  std::vector<EngineHash> names;

  Chain(std::uint64_t salt, std::size_t count, std::uint64_t name_step = 0x10001) {
    for (std::size_t i = 0; i < count; ++i) {
      const BlockHash block = next_sequence(salt, i);
      blocks.push_back({.engine = (salt * 1'000'000 + i) * name_step, .block = block});
      sequences.push_back(i == 0 ? first_sequence(block) : next_sequence(sequences.back(), block));
      names.push_back(blocks.back().engine);
    }
  }
  std::span<const EngineHash> name(std::size_t at) const { return std::span(names).subspan(at, 1); }
};

std::vector<Match> match(const Index& index, std::span<const SequenceHash> prompt) {
  std::vector<Match> matches;
  index.match(prompt, matches);
  std::ranges::sort(matches, {}, &Match::holder);
  return matches;
}

TEST(Index, FindsHowMuchOfAPromptEachHolderHas) {
  Index index({});
  const Chain chain(1, 10);
  const Slot first = index.join(worker(1));
  const Slot second = index.join(worker(1, 1));
  index.store(first, {}, chain.blocks, Tier::Device);
  index.store(second, {}, std::span(chain.blocks).first(4), Tier::Device);
  const std::vector<Match> wanted{{.holder = worker(1), .blocks = {10, 10, 10, 10}},
                                  {.holder = worker(1, 1), .blocks = {4, 4, 4, 4}}};
  EXPECT_EQ(match(index, chain.sequences), wanted);
  EXPECT_TRUE(match(index, Chain(2, 10).sequences).empty());
  EXPECT_TRUE(match(index, {}).empty());
}

TEST(Index, CountsOnlyUpToAHoleAndPastItWhenItIsFilled) {
  Index index({});
  const Chain chain(1, 8);
  const Slot slot = index.join(worker(1));
  index.store(slot, {}, chain.blocks, Tier::Device);
  index.remove(slot, chain.name(3), Tier::Device);
  EXPECT_EQ(match(index, chain.sequences).at(0).blocks, (Lengths{3, 3, 3, 3}));
  index.store(slot, chain.names[2], std::span(chain.blocks).subspan(3, 1), Tier::Host);
  EXPECT_EQ(match(index, chain.sequences).at(0).blocks, (Lengths{3, 8, 8, 8}));
  EXPECT_EQ(index.holding(slot).blocks, (std::array<std::size_t, kTiers>{7, 1, 0, 0}));
}

TEST(Index, TellsWhatBecameOfEachBlock) {
  Index index({});
  const Chain chain(1, 4);
  const Slot slot = index.join(worker(1));
  const auto half = std::span(chain.blocks).first(2);
  EXPECT_EQ(index.store(slot, chain.names[0], half, Tier::Device), (Applied{.unknown_parent = 2}));
  EXPECT_EQ(index.store(slot, {}, half, Tier::Device), (Applied{.done = 2}));
  EXPECT_EQ(index.store(slot, {}, chain.blocks, Tier::Device), (Applied{.done = 2, .known = 2}));
  EXPECT_EQ(index.copy(slot, chain.names, Tier::Disk), (Applied{.done = 4}));
  EXPECT_EQ(index.copy(slot, std::array<EngineHash, 1>{77}, Tier::Disk),
            (Applied{.unknown_parent = 1}));
  EXPECT_EQ(index.remove(slot, chain.names, Tier::Host), (Applied{.known = 4}));
  EXPECT_EQ(index.remove(slot, chain.names, Tier::Device), (Applied{.done = 4}));
  EXPECT_EQ(match(index, chain.sequences).at(0).blocks, (Lengths{0, 0, 4, 4}));
}

TEST(Index, TakesAStoreThatNamesItsOwnParent) {
  Index index({});
  const Slot slot = index.join(worker(1));
  const BlockHash first = 11;
  const BlockHash second = 22;
  index.store(slot, {}, std::array{NewBlock{.engine = 1, .block = first}}, Tier::Device);
  index.store(slot, 1, std::array{NewBlock{.engine = 1, .block = second}}, Tier::Device);
  const std::array prompt{first, next_sequence(first, second)};
  // The name means the second block now, so the first is gone.
  EXPECT_TRUE(match(index, prompt).empty());
  EXPECT_EQ(index.size().blocks, 1U);
  index.store(slot, {}, std::array{NewBlock{.engine = 2, .block = first}}, Tier::Device);
  EXPECT_EQ(match(index, prompt).at(0).blocks[0], 2U);
}

TEST(Index, KeepsABlockUntilItsLastNameGoes) {
  Index index({});
  const Slot slot = index.join(worker(1));
  index.store(slot, {}, std::array{NewBlock{.engine = 1, .block = 5}}, Tier::Device);
  index.store(slot, {}, std::array{NewBlock{.engine = 2, .block = 5}}, Tier::Device);
  const std::array<SequenceHash, 1> prompt{5};
  index.remove(slot, std::array<EngineHash, 1>{1}, Tier::Device);
  EXPECT_EQ(match(index, prompt).size(), 1U);
  index.remove(slot, std::array<EngineHash, 1>{2}, Tier::Device);
  EXPECT_TRUE(match(index, prompt).empty());
}

TEST(Index, AnswersForChainsOfAnyLength) {
  Index index({});
  const Chain chain(1, 200'000);
  const Slot slot = index.join(worker(1));
  EXPECT_EQ(index.store(slot, {}, chain.blocks, Tier::Device).done, chain.blocks.size());
  EXPECT_EQ(match(index, chain.sequences).at(0).blocks[0], chain.blocks.size());
  index.remove(slot, chain.name(0), Tier::Device);
  EXPECT_TRUE(match(index, chain.sequences).empty());
  index.store(slot, {}, std::span(chain.blocks).first(1), Tier::Device);
  EXPECT_EQ(match(index, chain.sequences).at(0).blocks[0], chain.blocks.size());
  index.leave(slot);
  EXPECT_EQ(index.size().blocks, 0U);
}

TEST(Index, ManyHoldersOfOnePromptEndAtDifferentBlocks) {
  Index index({});
  const Chain chain(1, 3000);
  std::vector<Match> wanted;
  for (std::uint32_t i = 0; i < 2500; ++i) {
    const std::uint32_t length = 1 + i * 7919 % 3000;
    const Slot slot = index.join(worker(i + 1));
    index.store(slot, {}, std::span(chain.blocks).first(length), Tier::Device);
    wanted.push_back({.holder = worker(i + 1), .blocks = {length, length, length, length}});
  }
  EXPECT_EQ(match(index, chain.sequences), wanted);
}

TEST(Index, NamesThatFollowAPatternCostNoMoreThanOthers) {
  for (const std::uint64_t step :
       {std::uint64_t{1}, std::uint64_t{1} << 20, std::uint64_t{1} << 32, std::uint64_t{1} << 44}) {
    Index index({});
    const Chain chain(0, 50'000, step);
    const Slot slot = index.join(worker(1));
    EXPECT_EQ(index.store(slot, {}, chain.blocks, Tier::Device).done, 50'000U);
    EXPECT_EQ(index.remove(slot, chain.names, Tier::Device).done, 50'000U);
    EXPECT_EQ(index.size().blocks, 0U);
  }
}

TEST(Index, TakesNoMoreBlocksThanItMay) {
  Index index({.blocks = 100});
  const Slot slot = index.join(worker(1));
  const Slot other = index.join(worker(2));
  const Chain chain(1, 150);
  EXPECT_EQ(index.store(slot, {}, chain.blocks, Tier::Device),
            (Applied{.done = 100, .no_room = 50}));
  // What is there already has another holder without more room.
  EXPECT_EQ(index.store(other, {}, chain.blocks, Tier::Device),
            (Applied{.done = 100, .no_room = 50}));
  index.clear(slot);
  EXPECT_EQ(index.store(slot, {}, Chain(2, 1).blocks, Tier::Device), (Applied{.no_room = 1}));
  index.clear(other);
  EXPECT_EQ(index.store(slot, {}, Chain(2, 1).blocks, Tier::Device), (Applied{.done = 1}));
}

TEST(Index, TakesNoMoreMembershipsThanItMay) {
  Index index({.blocks = 100, .memberships = 250});
  const Chain chain(1, 100);
  std::vector<Slot> slots;
  for (std::uint64_t i = 1; i <= 4; ++i) slots.push_back(index.join(worker(i)));
  EXPECT_EQ(index.store(slots[0], {}, chain.blocks, Tier::Device), (Applied{.done = 100}));
  EXPECT_EQ(index.store(slots[1], {}, chain.blocks, Tier::Device), (Applied{.done = 100}));
  EXPECT_EQ(index.store(slots[2], {}, chain.blocks, Tier::Device),
            (Applied{.done = 50, .no_room = 50}));
  EXPECT_EQ(index.store(slots[3], {}, chain.blocks, Tier::Device), (Applied{.no_room = 100}));
  EXPECT_EQ(index.size().memberships, 250U);
  // What somebody has already is said again, or of another tier, without more room.
  EXPECT_EQ(index.store(slots[0], {}, chain.blocks, Tier::Device), (Applied{.known = 100}));
  EXPECT_EQ(index.store(slots[0], {}, chain.blocks, Tier::Host), (Applied{.done = 100}));
  // New names for it take room.
  auto renamed = chain.blocks;
  for (NewBlock& block : renamed) block.engine += 1'000'000;
  EXPECT_EQ(index.store(slots[0], {}, renamed, Tier::Device), (Applied{.no_room = 100}));
  index.leave(slots[1]);
  EXPECT_EQ(index.store(slots[3], {}, chain.blocks, Tier::Device), (Applied{.done = 100}));
}

TEST(Index, EightHoldersOfEachBlockFitUnlessSomethingElseIsSaid) {
  EXPECT_EQ(Index({.blocks = 100}).limits().memberships, 800U);
}

TEST(Index, GivesBackWhatItNoLongerNeeds) {
  Index index({});
  std::vector<Slot> slots;
  for (std::uint32_t i = 0; i < 4; ++i) slots.push_back(index.join(worker(i + 1)));
  const std::size_t empty = index.size().bytes;
  for (std::uint64_t salt = 0; salt < 500; ++salt) {
    const Chain chain(salt, 200);
    for (const Slot slot : slots) index.store(slot, {}, chain.blocks, Tier::Device);
  }
  const Index::Size full = index.size();
  EXPECT_EQ(full.blocks, 100'000U);
  EXPECT_EQ(full.memberships, 400'000U);
  EXPECT_GT(full.bytes, empty + 3'000'000);
  for (const Slot slot : slots) index.clear(slot);
  EXPECT_EQ(index.size().blocks, 0U);
  EXPECT_LT(index.size().bytes, empty + 100'000);
  EXPECT_EQ(index.holding(slots[0]).bytes, 0U);
}

TEST(Index, StaysAsLargeWhileBlocksComeAndGo) {
  Index index({});
  const Slot slot = index.join(worker(1));
  std::size_t after_first = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    for (std::uint64_t salt = 0; salt < 100; ++salt) {
      if (round > 0) index.remove(slot, Chain((round - 1) * 100 + salt, 100).names, Tier::Device);
      index.store(slot, {}, Chain(round * 100 + salt, 100).blocks, Tier::Device);
    }
    if (round == 4) after_first = index.size().bytes;
  }
  EXPECT_LT(index.size().bytes, after_first + after_first / 4);
}

TEST(Index, SlotsAreUsedAgain) {
  Index index({});
  const Chain chain(1, 3);
  const Slot slot = index.join(worker(1));
  index.store(slot, {}, chain.blocks, Tier::Device);
  index.leave(slot);
  EXPECT_EQ(index.join(worker(2)), slot);
  EXPECT_TRUE(match(index, chain.sequences).empty());
}

TEST(Index, OfNoRoomTakesNothing) {
  Index index({.blocks = 0});
  const Slot slot = index.join(worker(1));
  EXPECT_EQ(index.store(slot, {}, Chain(1, 3).blocks, Tier::Device), (Applied{.no_room = 3}));
  EXPECT_EQ(index.size().memberships, 0U);
}

TEST(Index, ChangesOfNothingChangeNothing) {
  Index index({});
  const Slot slot = index.join(worker(1));
  EXPECT_EQ(index.store(slot, {}, {}, Tier::Device), Applied{});
  EXPECT_EQ(index.store(slot, 7, {}, Tier::Device), Applied{});
  EXPECT_EQ(index.copy(slot, {}, Tier::Host), Applied{});
  EXPECT_EQ(index.remove(slot, {}, Tier::Host), Applied{});
  EXPECT_EQ(index.restore(slot, {}, {}), Applied{});
  index.clear(slot);
  EXPECT_EQ(index.size().blocks, 0U);
  EXPECT_EQ(index.match_one(slot, {}), std::nullopt);
}

TEST(Index, CountsEachNameOfARemovalThatStandsTwice) {
  Index index({});
  const Chain chain(1, 3);
  const Slot slot = index.join(worker(1));
  index.store(slot, {}, chain.blocks, Tier::Device);
  const std::array twice{chain.names[1], chain.names[1], EngineHash{99}};
  EXPECT_EQ(index.remove(slot, twice, Tier::Device), (Applied{.done = 1, .known = 2}));
  EXPECT_EQ(index.copy(slot, std::array{chain.names[0], chain.names[0]}, Tier::Host),
            (Applied{.done = 1, .known = 1}));
}

TEST(Index, ANearerTierCountsForTheFartherOnes) {
  Index index({});
  const Chain chain(1, 4);
  const Slot slot = index.join(worker(1));
  // Block i in tier i only.
  for (std::size_t i = 0; i < 4; ++i) {
    const std::optional<EngineHash> parent =
        i == 0 ? std::optional<EngineHash>() : chain.names[i - 1];
    index.store(slot, parent, std::span(chain.blocks).subspan(i, 1), static_cast<Tier>(i));
  }
  EXPECT_EQ(match(index, chain.sequences).at(0).blocks, (Lengths{1, 2, 3, 4}));
  index.remove(slot, chain.name(0), Tier::Device);
  EXPECT_TRUE(match(index, chain.sequences).empty());
  index.store(slot, {}, std::span(chain.blocks).first(1), Tier::External);
  EXPECT_EQ(match(index, chain.sequences).at(0).blocks, (Lengths{0, 0, 0, 4}));
}

TEST(Index, HoldersLeaveWithoutTakingBlocksOfOthers) {
  Index index({});
  const Chain chain(1, 20);
  const Slot stays = index.join(worker(1));
  for (std::uint64_t i = 2; i < 40; ++i) {
    const Slot goes = index.join(worker(i));
    index.store(goes, {}, chain.blocks, Tier::Device);
    if (i == 20) index.store(stays, {}, chain.blocks, Tier::Device);
    index.leave(goes);
    EXPECT_EQ(match(index, chain.sequences).size(), i >= 20 ? 1U : 0U);
  }
  EXPECT_EQ(index.size().memberships, 20U);
}

TEST(Index, ANameMayMeanAnotherBlockLater) {
  Index index({});
  const Slot slot = index.join(worker(1));
  const Chain one(1, 2);
  const Chain other(2, 2);
  index.store(slot, {}, one.blocks, Tier::Device);
  const std::array renamed{NewBlock{.engine = one.names[1], .block = other.blocks[0].block}};
  EXPECT_EQ(index.store(slot, {}, renamed, Tier::Device), (Applied{.done = 1}));
  EXPECT_EQ(match(index, one.sequences).at(0).blocks[0], 1U);  // its second block is gone
  EXPECT_EQ(match(index, other.sequences).at(0).blocks[0], 1U);
  EXPECT_EQ(index.size().memberships, 2U);
}

TEST(Index, EmptiesTheListItWritesTo) {
  Index index({});
  std::vector<Match> matches{{.holder = worker(9)}};
  index.match(Chain(1, 3).sequences, matches);
  EXPECT_TRUE(matches.empty());
  matches.push_back({.holder = worker(9)});
  index.match({}, matches);
  EXPECT_TRUE(matches.empty());
}

}  // namespace
}  // namespace baton::kvcache
