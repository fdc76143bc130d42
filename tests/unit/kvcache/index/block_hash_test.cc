// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#define XXH_INLINE_ALL
#include "kvcache/index/block_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>
#include <xxhash.h>

namespace baton::kvcache {
namespace {

std::vector<TokenId> counting(std::size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1U);
  return tokens;
}

std::vector<TokenId> range(TokenId first, TokenId last) {
  std::vector<TokenId> tokens(last - first + 1);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// The expected numbers are published ones, computed with stock libxxhash and matched with constants
// of Dynamo's own tests.

TEST(BlockHash, IsDynamos) {
  const std::uint64_t seed = seed_of({});
  EXPECT_EQ(seed, 1337U);
  EXPECT_EQ(hash_block(range(1, 4), seed), 14643705804678351452U);
  EXPECT_EQ(hash_block(range(5, 8), seed), 16777012769546811212U);
  EXPECT_EQ(hash_block(range(9, 12), seed), 483935686894639516U);
  EXPECT_EQ(hash_block(range(1, 16), seed), 16863443419780771464U);
  EXPECT_EQ(hash_block(range(1, 64), seed), 17732852320395450624U);
}

TEST(BlockHash, ChainsBlocks) {
  EXPECT_EQ(sequence_hashes(counting(12), {.size = 4}, 1337),
            (std::vector<SequenceHash>{14643705804678351452U, 4945711292740353085U,
                                       12583592247330656132U}));
}

TEST(BlockHash, AdaptersAndSaltsChangeTheSeed) {
  EXPECT_EQ(seed_of({.lora = "my-lora"}), 12827409268353072861U);
  EXPECT_EQ(hash_block(range(1, 4), seed_of({.lora = "my-lora"})), 15671544057904749233U);
  EXPECT_EQ(seed_of({.salt = "tenant-a"}), 1948188790972764086U);
  EXPECT_EQ(hash_block(range(1, 4), seed_of({.salt = "tenant-a"})), 5738685477468498325U);
  EXPECT_EQ(seed_of({.lora = "my-lora", .salt = "tenant-a"}), 14775598059325835610U);
  EXPECT_EQ(hash_block(range(1, 4), seed_of({.lora = "my-lora", .salt = "tenant-a"})),
            6157910915076630503U);
}

// The cases `dynamo_router` of engine-hash-vectors.json.
TEST(BlockHash, IsTheOneOfTheVectors) {
  const std::vector<TokenId> tokens{1, 2, 3, 4, 100, 1000, 70000, 128000, 9};
  struct Case {
    const char* name;
    Namespace name_space;
    bool bigram;
    std::vector<BlockHash> local;
    std::vector<SequenceHash> sequence;
  };
  const std::vector<Case> cases{
      {"plain",
       {},
       false,
       {0xcb38e4d7fb2dca5c, 0xa7c73420d58b7577},
       {0xcb38e4d7fb2dca5c, 0x10632d455b4b477e}},
      {"lora",
       {.lora = "adapter-a"},
       false,
       {0x9df1b8814fdc3b69, 0xb6f801afc4819461},
       {0x9df1b8814fdc3b69, 0xa9b76da72a015454}},
      {"salt",
       {.salt = "tenant-a"},
       false,
       {0x4fa3e8097233e995, 0x2fad558dade9801a},
       {0x4fa3e8097233e995, 0x1b4eebefa1301a6a}},
      {"lora+salt",
       {.lora = "adapter-a", .salt = "tenant-a"},
       false,
       {0x8a5492a027cc43fa, 0x45cde248bea0e271},
       {0x8a5492a027cc43fa, 0x797dd6c8e2a3c200}},
      {"eagle",
       {},
       true,
       {0x186f091355d12932, 0xa22fd78987caa868},
       {0x186f091355d12932, 0x62de97b654103852}},
  };
  for (const Case& one : cases) {
    const std::uint64_t seed = seed_of(one.name_space);
    const std::size_t spans = one.bigram ? 5 : 4;
    for (std::size_t block = 0; block < 2; ++block)
      EXPECT_EQ(hash_block(std::span(tokens).subspan(4 * block, spans), seed), one.local[block])
          << one.name;
    EXPECT_EQ(sequence_hashes(tokens, {.size = 4, .bigram = one.bigram}, seed), one.sequence)
        << one.name;
  }
}

// No tokens: these are nine bytes. But it is the same function.
TEST(BlockHash, TheLibraryHashesBytesAsPublished) {
  EXPECT_EQ(XXH3_64bits_withSeed("test data", 9, 1337), 13226331709069118873U);
}

TEST(BlockHash, MultimodalHashesCountInAnyOrder) {
  constexpr std::uint64_t kExpected = 3497545641356191295U;
  EXPECT_EQ(hash_block(range(1, 4), 1337, std::vector<std::uint64_t>{7, 3}), kExpected);
  EXPECT_EQ(hash_block(range(1, 4), 1337, std::vector<std::uint64_t>{3, 7}), kExpected);
}

TEST(BlockHash, BigramBlocksOverlapByAToken) {
  EXPECT_EQ(hash_block(range(1, 5), 1337), 1914873892905420881U);
  EXPECT_EQ(hash_block(range(5, 9), 1337), 1929047464662796003U);
  const auto hashes = sequence_hashes(counting(9), {.size = 4, .bigram = true}, 1337);
  EXPECT_EQ(hashes,
            (std::vector<SequenceHash>{1914873892905420881U,
                                       next_sequence(1914873892905420881U, 1929047464662796003U)}));
}

TEST(BlockHash, OnlyCompleteBlocksCount) {
  for (const std::size_t tokens : {0U, 1U, 3U}) {
    EXPECT_TRUE(sequence_hashes(counting(tokens), {.size = 4}, 1337).empty()) << tokens;
  }
  EXPECT_EQ(sequence_hashes(counting(7), {.size = 4}, 1337).size(), 1U);
  EXPECT_TRUE(sequence_hashes(counting(4), {.size = 4, .bigram = true}, 1337).empty());
  EXPECT_EQ(sequence_hashes(counting(8), {.size = 4, .bigram = true}, 1337).size(), 1U);
}

// One hash after another, as the definition says, for every shape.
TEST(BlockHash, SequencesAreTheChainOfTheirBlocks) {
  const std::vector<TokenId> tokens = counting(100);
  const std::uint64_t seed = seed_of({.lora = "a"});
  for (const std::uint32_t size : {1U, 2U, 3U, 7U, 16U, 64U, 100U, 101U}) {
    for (const bool bigram : {false, true}) {
      std::vector<SequenceHash> expected;
      for (std::size_t begin = 0;; begin += size) {
        const std::size_t end = begin + size + (bigram ? 1 : 0);
        if (end > tokens.size()) break;
        const std::vector<TokenId> block(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                         tokens.begin() + static_cast<std::ptrdiff_t>(end));
        const BlockHash hash = hash_block(block, seed);
        expected.push_back(expected.empty() ? hash : next_sequence(expected.back(), hash));
      }
      EXPECT_EQ(sequence_hashes(tokens, {.size = size, .bigram = bigram}, seed), expected) << size;
    }
  }
}

TEST(BlockHash, APrefixHasTheHashesOfItsBeginning) {
  const std::vector<TokenId> tokens = counting(64);
  const auto whole = sequence_hashes(tokens, {.size = 4}, 1337);
  for (std::size_t length = 0; length <= tokens.size(); ++length) {
    const auto part = sequence_hashes(std::span(tokens).first(length), {.size = 4}, 1337);
    ASSERT_EQ(part.size(), length / 4);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  }
}

TEST(BlockHash, AChangedTokenChangesAllThatFollows) {
  auto tokens = counting(32);
  const auto before = sequence_hashes(tokens, {.size = 4}, 1337);
  tokens[17] = 1000;  // in the fifth block
  const auto after = sequence_hashes(tokens, {.size = 4}, 1337);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(before[i] == after[i], i < 4) << i;
}

TEST(BlockHash, AdapterAndSaltDoNotStandForEachOther) {
  EXPECT_NE(seed_of({.lora = "x"}), seed_of({.salt = "x"}));
  EXPECT_NE(seed_of({.lora = "x", .salt = "y"}), seed_of({.lora = "y", .salt = "x"}));
  EXPECT_EQ(seed_of({.lora = "", .salt = ""}), seed_of({}));
}

}  // namespace
}  // namespace baton::kvcache
