// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/seed_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace baton::kvcache {
namespace {

const std::uint64_t kPlain = seed_of({});

std::optional<std::uint64_t> seed_of(const SeedMemory& memory, EngineHash block) {
  const auto seed = memory.find(block);
  if (!seed) return std::nullopt;
  EXPECT_FALSE(seed->ambiguous);
  return seed->value;
}

TEST(SeedMemory, RemembersOnlyWhatIsNotPlain) {
  SeedMemory memory;
  memory.stored(std::vector<NewBlock>{{1, 0}, {2, 0}}, kPlain, Tier::Device);
  EXPECT_EQ(memory.size(), 0U);
  memory.stored(std::vector<NewBlock>{{3, 0}, {4, 0}}, 99, Tier::Device);
  memory.stored(std::vector<NewBlock>{{5, 0}}, kPlain, Tier::Device);
  EXPECT_EQ(memory.size(), 2U);
  EXPECT_EQ(seed_of(memory, 3), 99U);
  EXPECT_EQ(seed_of(memory, 1), std::nullopt);
  EXPECT_EQ(seed_of(memory, 5), std::nullopt);
}

TEST(SeedMemory, ABlockIsRememberedWhileATierHasIt) {
  SeedMemory memory;
  const std::vector<EngineHash> block{1};
  memory.stored(std::vector<NewBlock>{{1, 0}}, 99, Tier::Device);
  memory.copied(std::vector<EngineHash>{1, 2}, Tier::Host);
  memory.removed(block, Tier::Device);
  EXPECT_EQ(seed_of(memory, 1), 99U);
  memory.removed(block, Tier::Disk);
  EXPECT_EQ(seed_of(memory, 1), 99U);
  memory.removed(block, Tier::Host);
  EXPECT_EQ(seed_of(memory, 1), std::nullopt);
  EXPECT_EQ(memory.size(), 0U);
}

TEST(SeedMemory, TwoSeedsForOneBlockAreNone) {
  SeedMemory memory;
  memory.stored(std::vector<NewBlock>{{1, 0}, {2, 0}}, 99, Tier::Device);
  memory.stored(std::vector<NewBlock>{{1, 0}}, 98, Tier::Device);
  memory.stored(std::vector<NewBlock>{{2, 0}}, kPlain, Tier::Device);
  ASSERT_TRUE(memory.find(1));
  EXPECT_TRUE(memory.find(1)->ambiguous);
  EXPECT_TRUE(memory.find(2)->ambiguous) << "the plain one is one as well";
  memory.removed(std::vector<EngineHash>{1}, Tier::Device);
  memory.stored(std::vector<NewBlock>{{1, 0}}, 98, Tier::Device);
  EXPECT_EQ(seed_of(memory, 1), 98U);
}

TEST(SeedMemory, HasABound) {
  SeedMemory memory(3);
  EXPECT_TRUE(memory.has_room(3, 99));
  EXPECT_FALSE(memory.has_room(4, 99));
  memory.stored(std::vector<NewBlock>{{1, 0}, {2, 0}}, 99, Tier::Device);
  EXPECT_TRUE(memory.has_room(1, 99));
  EXPECT_FALSE(memory.has_room(2, 99));
  EXPECT_TRUE(memory.has_room(1000, kPlain)) << "these take none";
  memory.clear();
  EXPECT_TRUE(memory.has_room(3, 99));
}

TEST(SeedMemory, StaysRightWhileItShrinks) {
  SeedMemory memory;
  constexpr EngineHash kBlocks = 50'000;
  for (EngineHash block = 0; block < kBlocks; ++block)
    memory.stored(std::vector<NewBlock>{{block, 0}}, 1000 + block, Tier::Device);
  for (EngineHash block = 0; block < kBlocks; ++block) {
    if (block % 100 != 0) memory.removed(std::vector<EngineHash>{block}, Tier::Device);
  }
  EXPECT_EQ(memory.size(), kBlocks / 100);
  for (EngineHash block = 0; block < kBlocks; block += 100)
    EXPECT_EQ(seed_of(memory, block), 1000 + block);
}

}  // namespace
}  // namespace baton::kvcache
