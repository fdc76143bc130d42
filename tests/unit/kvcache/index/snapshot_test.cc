// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace baton::kvcache {
namespace {

const Holder kHolder{.worker = {1}, .rank = 2};

// A tree with branches, several tiers and names of its own.
void fill(Index& index, Slot slot, std::uint32_t seed) {
  std::mt19937 chance(seed);
  std::vector<EngineHash> names;
  for (int i = 0; i < 200; ++i) {
    std::optional<EngineHash> parent;
    if (!names.empty() && chance() % 4 != 0) parent = names[chance() % names.size()];
    std::vector<NewBlock> blocks;
    for (std::uint32_t count = 1 + chance() % 20; count > 0; --count) {
      blocks.push_back({.engine = chance(), .block = 1 + chance() % 3});
      names.push_back(blocks.back().engine);
    }
    index.store(slot, parent, blocks, static_cast<Tier>(chance() % kTiers));
  }
}

std::vector<Match> matches_of(const Index& index, std::span<const SequenceHash> prompt) {
  std::vector<Match> matches;
  index.match(prompt, matches);
  return matches;
}

// A parent may have several names, any of which will do.
using Described = std::tuple<SequenceHash, std::uint8_t, bool, std::optional<SequenceHash>>;
std::map<EngineHash, Described> by_name(std::span<const Index::Held> blocks) {
  std::map<EngineHash, Described> named;
  for (const Index::Held& held : blocks) {
    std::optional<SequenceHash> parent;
    if (held.parent) parent = std::get<0>(named.at(*held.parent));
    named.emplace(held.engine, Described(held.sequence, held.tiers, held.first, parent));
  }
  return named;
}

std::vector<HolderSnapshot> example() {
  Index index({});
  const Slot slot = index.join(kHolder);
  fill(index, slot, 3);
  return {{.worker = "http://10.0.0.1:8000",
           .rank = 1,
           .position = {.sequence = 77, .payload_hash = 99},
           .shape = {.size = 64, .bigram = true},
           .blocks = list_blocks(index.list(slot))},
          {.worker = "", .rank = 0, .position = {}, .shape = {.size = 1}, .blocks = {}}};
}

std::string why(const std::string& bytes) {
  const auto decoded = decode_snapshot(bytes);
  return decoded ? "" : decoded.error().message();
}

TEST(Snapshot, IsReadAsItWasWritten) {
  const auto holders = example();
  ASSERT_GT(holders[0].blocks.size(), 500U);
  const auto decoded = decode_snapshot(encode_snapshot(holders));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message();
  EXPECT_EQ(*decoded, holders);
  EXPECT_TRUE(decode_snapshot(encode_snapshot({}))->empty());
}

TEST(Snapshot, ARestoredIndexIsLikeTheOldOne) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    Index old({});
    const Slot slot = old.join(kHolder);
    fill(old, slot, seed);
    const auto blocks = list_blocks(old.list(slot));
    Index restored({});
    const Slot again = restored.join(kHolder);
    EXPECT_EQ(restore_blocks(restored, again, blocks),
              (Applied{.done = static_cast<std::uint32_t>(blocks.size())}));
    EXPECT_EQ(by_name(list_blocks(restored.list(again))), by_name(blocks));
    EXPECT_EQ(restored.holding(again).blocks, old.holding(slot).blocks);

    std::mt19937 chance(seed);
    for (int i = 0; i < 200; ++i) {
      std::vector<SequenceHash> prompt;
      for (int depth = 0; depth < 30; ++depth) {
        const BlockHash block = 1 + chance() % 3;
        prompt.push_back(prompt.empty() ? first_sequence(block)
                                        : next_sequence(prompt.back(), block));
      }
      EXPECT_EQ(matches_of(restored, prompt), matches_of(old, prompt));
      const std::array name{blocks[chance() % blocks.size()].engine};
      const auto tier = static_cast<Tier>(chance() % kTiers);
      EXPECT_EQ(restored.remove(again, name, tier), old.remove(slot, name, tier));
    }
  }
}

TEST(Snapshot, LeavesOutWhatFollowsAHole) {
  Index index({});
  const Slot slot = index.join(kHolder);
  const std::array<NewBlock, 5> blocks{{{.engine = 1, .block = 1},
                                        {.engine = 2, .block = 2},
                                        {.engine = 3, .block = 3},
                                        {.engine = 4, .block = 4},
                                        {.engine = 5, .block = 5}}};
  index.store(slot, {}, blocks, Tier::Device);
  index.remove(slot, std::array<EngineHash, 1>{3}, Tier::Device);
  Index restored({});
  const Slot again = restored.join(kHolder);
  EXPECT_EQ(restore_blocks(restored, again, list_blocks(index.list(slot))),
            (Applied{.done = 2, .unknown_parent = 2}));
}

TEST(Snapshot, RefusesWhatIsNoneAndSaysWhy) {
  const std::string good = encode_snapshot(example());
  EXPECT_NE(why("").find("no saved index"), std::string::npos);
  EXPECT_NE(why("batonkvi").find("cut off"), std::string::npos);
  std::string newer = good;
  newer[8] = 2;
  EXPECT_NE(why(newer).find("version 2"), std::string::npos);
  EXPECT_NE(why(good.substr(0, good.size() / 2)).find("checksum"), std::string::npos);
  for (std::size_t at = 12; at < good.size(); at += 97) {
    std::string wrong = good;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    EXPECT_NE(why(wrong).find("checksum"), std::string::npos) << at;
  }
  auto shapeless = example();
  shapeless[0].shape = {};
  EXPECT_NE(why(encode_snapshot(shapeless)).find("no shape"), std::string::npos);
}

}  // namespace
}  // namespace baton::kvcache
