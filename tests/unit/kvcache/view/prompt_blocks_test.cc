// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/prompt_blocks.h"

#include "unit/kvcache/view/counting.h"

#include <gtest/gtest.h>

#include <vector>

namespace baton::kvcache {
namespace {

TEST(PromptBlocksTest, CutsAPromptOnceForEachShape) {
  const HashPlan plan{.shapes = {{.size = 4}, {.size = 3}, {.size = 3, .bigram = true}},
                      .lora = {}};
  const auto tokens = counting(12);
  const PromptBlocks blocks = hash_prompt(plan, tokens, "");
  EXPECT_EQ(blocks.tokens, 12U);
  ASSERT_EQ(blocks.by_shape.size(), 3U);
  EXPECT_EQ(blocks.by_shape[0].sequence.size(), 3U);
  EXPECT_EQ(blocks.by_shape[1].sequence.size(), 4U);
  EXPECT_EQ(blocks.by_shape[2].sequence.size(), 3U);  // the last one's last pair is not there yet
  for (std::size_t i = 0; i < plan.shapes.size(); ++i)
    EXPECT_EQ(blocks.by_shape[i].shape, plan.shapes[i]);
}

TEST(PromptBlocksTest, HashesBlocksInTheirChain) {
  const auto tokens = counting(8);
  const auto sequence =
      hash_prompt({.shapes = {{.size = 4}}, .lora = {}}, tokens, "").by_shape[0].sequence;
  const std::uint64_t seed = seed_of({});
  const std::span all(tokens);
  const SequenceHash first = first_sequence(hash_block(all.first(4), seed));
  EXPECT_EQ(sequence[0], first);
  EXPECT_EQ(sequence[1], next_sequence(first, hash_block(all.last(4), seed)));
}

TEST(PromptBlocksTest, AdaptersAndSaltsSetPromptsApart) {
  const auto tokens = counting(8);
  const auto first = [&](const std::string& lora, std::string_view salt) {
    return hash_prompt({.shapes = {{.size = 4}}, .lora = lora}, tokens, salt)
        .by_shape[0]
        .sequence[0];
  };
  EXPECT_NE(first("", ""), first("adapter", ""));
  EXPECT_NE(first("", ""), first("", "salt"));
  EXPECT_NE(first("adapter", ""), first("adapter", "salt"));
  EXPECT_EQ(first("adapter", "salt"), first("adapter", "salt"));
}

TEST(PromptBlocksTest, KeysThatNoEventTellsSetPromptsApartToo) {
  const auto tokens = counting(8);
  const HashPlan plan{.shapes = {{.size = 4}}, .lora = {}};
  const auto first = [&](const PromptScope& scope) {
    return hash_prompt(plan, tokens, scope).by_shape[0].sequence[0];
  };
  EXPECT_NE(first({.salt = {}, .key = "k"}), first({}));
  EXPECT_NE(first({.salt = {}, .key = "k"}), first({.salt = "k", .key = {}}));
  EXPECT_NE(first({.salt = "s", .key = "k"}), first({.salt = {}, .key = "k"}));
  EXPECT_EQ(first({.salt = "s", .key = {}}),
            hash_prompt(plan, tokens, "s").by_shape[0].sequence[0]);
  const PromptBlocks plain = hash_prompt(plan, tokens, "");
  EXPECT_FALSE(plain.salted || plain.keyed || plain.adapted);
  const PromptBlocks both = hash_prompt(plan, tokens, PromptScope{.salt = "s", .key = "k"});
  EXPECT_TRUE(both.salted && both.keyed);
}

TEST(PromptBlocksTest, WithoutShapesNothingIsHashed) {
  const PromptBlocks blocks = hash_prompt({}, counting(100), "");
  EXPECT_TRUE(blocks.by_shape.empty());
  EXPECT_EQ(blocks.tokens, 100U);
}

TEST(PromptBlocksTest, TheLastTokenIsAlwaysComputed) {
  EXPECT_EQ(reusable_blocks(0, {.size = 4}), 0U);
  EXPECT_EQ(reusable_blocks(4, {.size = 4}), 0U);
  EXPECT_EQ(reusable_blocks(5, {.size = 4}), 1U);
  EXPECT_EQ(reusable_blocks(8, {.size = 4}), 1U);
  EXPECT_EQ(reusable_blocks(9, {.size = 4}), 2U);
  EXPECT_EQ(reusable_blocks(1, {.size = 1, .bigram = true}), 0U);
  EXPECT_EQ(reusable_blocks(5, {.size = 4, .bigram = true}), 0U);
  EXPECT_EQ(reusable_blocks(6, {.size = 4, .bigram = true}), 1U);
}

}  // namespace
}  // namespace baton::kvcache
