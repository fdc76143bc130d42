// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/applier.h"

#include "unit/kvcache/events/feed_fixture.h"
#include "unit/kvcache/events/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace baton::kvcache {
namespace {

using baton::test::MsgpackEncoder;
using test::cleared;
using test::counting;
using test::Overlap;
using test::RemovedEvent;
using test::StoredEvent;
using test::Tokens;

class ApplierTest : public test::FeedFixture {};

std::string keys(std::initializer_list<MsgpackEncoder> of_blocks) {
  MsgpackEncoder encoder;
  encoder.array(of_blocks.size());
  for (const auto& block : of_blocks) encoder.raw(block.encoded());
  return encoder.encoded();
}

TEST_F(ApplierTest, StoresBlocksAndWhatFollowsThem) {
  EXPECT_TRUE(apply({StoredEvent{.hashes = {10, 11}, .tokens = counting(1, 8), .block_size = 4}}));
  EXPECT_TRUE(apply(
      {StoredEvent{.hashes = {12}, .parent = 11, .tokens = counting(9, 4), .block_size = 4}}));
  EXPECT_EQ(held(counting(1, 12), 4), 3U);
  EXPECT_EQ(held(counting(1, 11), 4), 2U);
  EXPECT_EQ(held(counting(5, 8), 4), 0U) << "only from the beginning";
  EXPECT_EQ(feed().shape(), (BlockShape{.size = 4}));
  EXPECT_EQ(feed().tally().batches, 2U);
  EXPECT_EQ(feed().tally().events, 2U);
  EXPECT_EQ(feed().tally().stored, 3U);
  EXPECT_EQ(skipped(), 0U);
}

TEST_F(ApplierTest, RemovesAndClears) {
  EXPECT_TRUE(apply({StoredEvent{.hashes = {10, 11}, .tokens = counting(1, 8), .block_size = 4},
                     RemovedEvent{.hashes = {11, 99}}}));
  EXPECT_EQ(held(counting(1, 8), 4), 1U);
  EXPECT_EQ(feed().tally().removed, 1U);
  EXPECT_TRUE(apply({cleared()}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(feed().tally().cleared, 1U);
  EXPECT_EQ(skipped(), 0U);
}

// vLLM says one by one what it removes, others all at once.
TEST_F(ApplierTest, RemovesManyInOrder) {
  std::vector<std::uint64_t> all(2000);
  std::iota(all.begin(), all.end(), 1U);
  const StoredEvent event{.hashes = all, .tokens = counting(1, 2000), .block_size = 1};
  MsgpackEncoder one_by_one;
  for (std::uint64_t hash = 1; hash <= 1000; ++hash)
    one_by_one.array(2).text("BlockRemoved").array(1).unsigned_integer(hash);
  MsgpackEncoder batch;
  batch.array(2).number(1.0).array(1004).raw(MsgpackEncoder(event).encoded());
  batch.raw(one_by_one.encoded());
  batch.raw(MsgpackEncoder(event).encoded());
  batch.raw(MsgpackEncoder(RemovedEvent{.hashes = {5}, .medium = "CPU"}).encoded());
  batch.raw(MsgpackEncoder(RemovedEvent{.hashes = {7}}).encoded());
  EXPECT_TRUE(apply(batch.encoded()));
  EXPECT_EQ(blocks(), 1999U);
  EXPECT_EQ(held(counting(1, 2000), 1), 6U);
  EXPECT_EQ(feed().tally().stored, 3000U);
  EXPECT_EQ(feed().tally().removed, 1001U);
  EXPECT_EQ(feed().tally().events, 1004U);
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {9}}, RemovedEvent{.hashes = all}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(feed().tally().removed, 3000U);
}

TEST_F(ApplierTest, SaysWhatTheBatchSaysOfItself) {
  for (const auto& vector : test::vectors()) {
    SCOPED_TRACE(vector.name);
    const std::string payload = test::from_hex(vector.hex);
    const auto bytes = std::as_bytes(std::span(payload));
    const auto applied = feed().apply_batch(bytes);
    const auto read = read_batch_head(bytes);
    ASSERT_EQ(applied.has_value(), vector.ok);
    ASSERT_EQ(read.has_value(), vector.ok);
    if (!vector.ok) {
      EXPECT_EQ(applied.error().code(), Errc::EngineProtocol);
      continue;
    }
    EXPECT_EQ(applied->timestamp, vector.timestamp);
    EXPECT_EQ(applied->rank, vector.rank);
    EXPECT_EQ(read->timestamp, vector.timestamp);
    EXPECT_EQ(read->rank, vector.rank);
  }
  EXPECT_EQ(feed().tally().malformed_batches, static_cast<std::uint64_t>(std::ranges::count(
                                                  test::vectors(), false, &test::Vector::ok)));
  EXPECT_EQ(feed().tally().batches, test::vectors().size());
}

// What each of the vectors leaves behind in an index that has what they refer to, by reading them.
TEST_F(ApplierTest, TheVectorsLeaveWhatTheySay) {
  const Tokens first = {1, 127, 128, 255};
  const Tokens both = {1, 127, 128, 255, 256, 65535, 65536, 128000};
  struct Leaves {
    std::string_view vector;
    Tokens prompt;
    Overlap overlap;
    Namespace name_space = {};
    bool bigram = false;
  };
  const std::vector<Leaves> all = {
      {"vllm-0.9-array-minimal", first, {0, 0, 0, 0}},
      {"vllm-0.11-array-medium", both, {1, 1, 1, 1}},
      {"vllm-0.23-array-full-tail", first, {1, 1, 1, 1}},
      {"vllm-0.24-map-stored", both, {2, 2, 2, 2}},
      {"vllm-0.24-map-swa-fewer-hashes", both, {0, 0, 0, 0}},
      {"vllm-0.26-map-cpu-placeholder", first, {0, 0, 0, 0}},
      {"vllm-bytes-hashes", first, {0, 0, 0, 0}},  // its parent is not known
      {"vllm-next-ownership-session", first, {0, 0, 0, 0}},
      {"sglang-0.5.8-array", first, {1, 1, 1, 1}},
      {"sglang-0.5.9-array-medium", both, {0, 0, 0, 0}},  // its parent is not known
      {"sglang-bigram", {10, 11, 12, 13, 14}, {1, 1, 1, 1}, {}, true},
      {"sglang-0.5.18-salted", first, {0, 0, 0, 0}},
      {"sglang-0.5.18-salted", first, {1, 1, 1, 1}, {.salt = "tenant-a"}},
      {"trtllm-dynamo-relay-map", first, {1, 1, 1, 1}, {.salt = "tenant-a"}},
      {"trtllm-native-map", first, {0, 0, 0, 0}},
      {"llmd-sim-array", first, {0, 0, 0, 0}},
      {"llmd-sim-map", first, {1, 1, 1, 1}},
      {"vllm-0.20-array-group", first, {0, 0, 0, 0}},
      {"tolerate-map-key-order", first, {1, 1, 1, 1}},
      {"tolerate-array-extra-suffix", first, {1, 1, 1, 1}},
  };
  for (const Leaves& leaves : all) {
    SCOPED_TRACE(leaves.vector);
    feed().forget();
    const auto& vectors = test::vectors();
    const auto vector = std::ranges::find(vectors, leaves.vector, &test::Vector::name);
    ASSERT_NE(vector, vectors.end());
    EXPECT_TRUE(apply(test::from_hex(vector->hex)));
    EXPECT_EQ(overlap(leaves.prompt, {.size = 4, .bigram = leaves.bigram}, leaves.name_space),
              leaves.overlap);
  }
}

TEST_F(ApplierTest, ABadEventDoesNotCostTheOthers) {
  EXPECT_TRUE(apply({MsgpackEncoder().unsigned_integer(1),
                     MsgpackEncoder().array(2).text("BlockSnapshot").nil(),
                     StoredEvent{.hashes = {10}, .tokens = counting(1, 4), .block_size = 4},
                     MsgpackEncoder().array(2).text("BlockRemoved").text("all"),
                     MsgpackEncoder().map(1).text("type").text("Future")}));
  EXPECT_EQ(held(counting(1, 4), 4), 1U);
  EXPECT_EQ(feed().tally().events, 5U);
  EXPECT_EQ(skipped(Skipped::Malformed), 2U);
  EXPECT_EQ(skipped(Skipped::UnknownType), 2U);
  EXPECT_EQ(feed().tally().malformed_batches, 0U);
}

TEST_F(ApplierTest, BothEncodingsInOneBatch) {
  MsgpackEncoder array;
  array.array(5).text("BlockStored").array(1).signed_integer(-5).nil().array(2);
  array.unsigned_integer(1).unsigned_integer(2).unsigned_integer(2);
  EXPECT_TRUE(apply({array, StoredEvent{.hashes = {7},
                                        .parent = static_cast<std::uint64_t>(-5),
                                        .tokens = {3, 4},
                                        .block_size = 2}}));
  EXPECT_EQ(held({1, 2, 3, 4}, 2), 2U);
}

TEST_F(ApplierTest, DigestsAreTheSameAsNumbers) {
  MsgpackEncoder array;
  array.array(5)
      .text("BlockStored")
      .array(1)
      .bytes("0123456789abcdef01234567\x01\x02\x03\x04\x05\x06\x07\x08");
  array.nil().array(1).unsigned_integer(1).unsigned_integer(1);
  EXPECT_TRUE(apply(
      {array,
       StoredEvent{.hashes = {7}, .parent = 0x0102030405060708, .tokens = {2}, .block_size = 1}}));
  EXPECT_EQ(held({1, 2}, 1), 2U);
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {0x0102030405060708}}}));
  EXPECT_EQ(held({1, 2}, 1), 0U);
}

TEST_F(ApplierTest, LeavesOutWhatFollowsAnUnknownBlock) {
  EXPECT_TRUE(apply(
      {StoredEvent{.hashes = {2, 3}, .parent = 1, .tokens = counting(1, 8), .block_size = 4}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(skipped(Skipped::UnknownParent), 2U);
  EXPECT_EQ(feed().tally().stored, 0U);
}

TEST_F(ApplierTest, TiersAreKnownByManyNames) {
  const std::map<std::string_view, std::size_t> tiers = {
      {"GPU", 0},        {"gpu", 0},       {"device", 0},    {"CPU", 1},      {"cpu", 1},
      {"CPU_PINNED", 1}, {"CPU_TIER1", 1}, {"CPU_TIER2", 2}, {"DISK", 2},     {"nvme", 2},
      {"STORAGE", 2},    {"FS", 2},        {"OBJ", 3},       {"EXTERNAL", 3}, {"NETWORK", 3},
      {"remote", 3},     {"SHARED", 3}};
  for (const auto& [medium, tier] : tiers) {
    SCOPED_TRACE(medium);
    EXPECT_TRUE(apply(
        {cleared(),
         StoredEvent{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4, .medium = medium}}));
    Overlap expected{};
    std::fill(expected.begin() + static_cast<std::ptrdiff_t>(tier), expected.end(), 1U);
    EXPECT_EQ(overlap(counting(1, 4), {.size = 4}), expected);
    EXPECT_TRUE(apply({RemovedEvent{.hashes = {1}, .medium = medium}}));
    EXPECT_EQ(blocks(), 0U);
  }
  EXPECT_TRUE(apply(
      {StoredEvent{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4, .medium = "TAPE"}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(skipped(Skipped::UnknownMedium), 1U);
}

TEST_F(ApplierTest, EventsWithoutTokensCopyWhatIsKnown) {
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1, 2}, .tokens = counting(1, 8), .block_size = 4},
                     StoredEvent{.hashes = {1, 9}, .medium = "CPU"}}));
  EXPECT_EQ(overlap(counting(1, 8), {.size = 4}), (Overlap{2, 2, 2, 2}));
  EXPECT_EQ(skipped(Skipped::UnknownBlock), 1U);
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {1, 2}, .medium = "GPU"}}));
  EXPECT_EQ(overlap(counting(1, 8), {.size = 4}), (Overlap{0, 1, 1, 1}));
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {1}, .medium = "cpu"}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(skipped(), 1U);
}

TEST_F(ApplierTest, WhatOthersHoldDoesNotCount) {
  StoredEvent event{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4};
  event.locality = "REMOTE";
  StoredEvent elsewhere = event;
  elsewhere.locality = "MOON";
  StoredEvent owned = event;
  owned.locality = "LOCAL";
  owned.ownership = "kvcr";
  EXPECT_TRUE(apply({event, elsewhere, owned}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(skipped(Skipped::NotLocal), 2U);
  EXPECT_EQ(skipped(Skipped::Owned), 1U);
  event.locality = "local";
  EXPECT_TRUE(apply({event, RemovedEvent{.hashes = {1}, .locality = "REMOTE"}}));
  EXPECT_EQ(blocks(), 1U);
  // Each of those that are read as one counts.
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {1}, .locality = "REMOTE"},
                     RemovedEvent{.hashes = {2}, .locality = "REMOTE"},
                     RemovedEvent{.hashes = {3}, .locality = "REMOTE"}}));
  EXPECT_EQ(skipped(Skipped::NotLocal), 6U);
}

TEST_F(ApplierTest, OfHybridModelsOnlyTheMainAttentionCounts) {
  StoredEvent main{.hashes = {1, 2}, .tokens = counting(1, 8), .block_size = 4};
  main.group = 2;
  main.kind = "full_attention";
  StoredEvent window{.hashes = {2}, .tokens = counting(1, 8), .block_size = 4};
  window.group = 1;
  window.kind = "sliding_window";
  StoredEvent states{.hashes = {5}, .tokens = counting(1, 8), .block_size = 8};
  states.group = 0;
  states.kind = "mamba";
  EXPECT_TRUE(apply({states, window, main}));
  EXPECT_EQ(held(counting(1, 8), 4), 2U);
  EXPECT_EQ(skipped(Skipped::NotMainAttention), 2U);
  // Removals do not say of which kind the group is.
  EXPECT_TRUE(
      apply({RemovedEvent{.hashes = {1}, .group = 1}, RemovedEvent{.hashes = {1}, .group = 0},
             RemovedEvent{.hashes = {1}, .group = 7}}));
  EXPECT_EQ(held(counting(1, 8), 4), 2U);
  EXPECT_EQ(skipped(Skipped::NotMainAttention), 4U);
  EXPECT_EQ(skipped(Skipped::UnknownGroup), 1U);
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {2}, .group = 2}}));
  EXPECT_EQ(held(counting(1, 8), 4), 1U);
}

TEST_F(ApplierTest, BlocksOfAnotherSizeDoNotCount) {
  EXPECT_TRUE(
      apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4},
             StoredEvent{.hashes = {2, 3}, .parent = 1, .tokens = counting(5, 4), .block_size = 2},
             StoredEvent{.hashes = {4}, .parent = 1, .tokens = counting(5, 1), .block_size = 0}}));
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(skipped(Skipped::BlockSize), 3U);
}

TEST_F(ApplierTest, AConfiguredSizeHoldsFromTheBeginning) {
  feed(8);
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(feed().shape(), std::nullopt);
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 8), .block_size = 8}}));
  EXPECT_EQ(held(counting(1, 8), 8), 1U);
  feed().forget();
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4}}));
  EXPECT_EQ(blocks(), 0U) << "also after it";
}

TEST_F(ApplierTest, BlocksWithoutAllTheirTokensAreLeftOut) {
  EXPECT_TRUE(
      apply({StoredEvent{.hashes = {1, 2, 3}, .tokens = counting(1, 10), .block_size = 4}}));
  EXPECT_EQ(held(counting(1, 12), 4), 2U);
  EXPECT_EQ(skipped(Skipped::BlockSize), 1U);
  feed().forget();
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = {1}, .block_size = 8}}));
  EXPECT_EQ(feed().shape(), std::nullopt) << "nothing was stored";
}

// Which of them were left out, nobody says.
TEST_F(ApplierTest, TokensOfMoreBlocksThanHashesAreRefused) {
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 8), .block_size = 4}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(skipped(Skipped::Malformed), 1U);
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 7), .block_size = 4}}));
  EXPECT_EQ(held(counting(1, 4), 4), 1U);
}

TEST_F(ApplierTest, BlocksThatFollowThemselvesAreRefused) {
  std::vector<std::uint64_t> many(40);
  std::iota(many.begin(), many.end(), 100U);
  many[31] = many[3];
  EXPECT_TRUE(
      apply({StoredEvent{.hashes = {1, 1}, .tokens = counting(1, 2), .block_size = 1},
             StoredEvent{.hashes = {1, 2}, .parent = 2, .tokens = counting(1, 2), .block_size = 1},
             StoredEvent{.hashes = many, .tokens = counting(1, 40), .block_size = 1}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(skipped(Skipped::Malformed), 3U);
  many[31] = 131;
  EXPECT_TRUE(apply({StoredEvent{.hashes = many, .tokens = counting(1, 40), .block_size = 1}}));
  EXPECT_EQ(held(counting(1, 40), 1), 40U);
}

TEST_F(ApplierTest, AStoreMayBeRepeated) {
  const StoredEvent event{.hashes = {1, 2}, .tokens = counting(1, 8), .block_size = 4};
  EXPECT_TRUE(apply({event, event}));
  EXPECT_EQ(blocks(), 2U);
  EXPECT_EQ(skipped(), 0U);
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {1, 2}}}));
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(ApplierTest, EagleBlocksOverlapByAToken) {
  EXPECT_TRUE(apply(
      {StoredEvent{.hashes = {1, 2}, .tokens = counting(1, 9), .block_size = 4, .pairs = true}}));
  EXPECT_TRUE(apply({StoredEvent{
      .hashes = {3}, .parent = 2, .tokens = counting(9, 5), .block_size = 4, .pairs = true}}));
  const BlockShape shape{.size = 4, .bigram = true};
  EXPECT_EQ(feed().shape(), shape);
  EXPECT_EQ(overlap(counting(1, 13), shape).front(), 3U);
  EXPECT_EQ(overlap(counting(1, 12), shape).front(), 2U);
  EXPECT_EQ(held(counting(1, 12), 4), 0U);
  EXPECT_TRUE(apply({StoredEvent{.hashes = {4}, .tokens = counting(1, 4), .block_size = 4}}));
  EXPECT_EQ(skipped(Skipped::BlockSize), 1U) << "not both at once";
}

TEST_F(ApplierTest, AdaptersAreApart) {
  StoredEvent named{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4};
  named.lora_id = 3;
  named.lora_name = "sql";
  StoredEvent follows{.hashes = {2}, .parent = 1, .tokens = counting(5, 4), .block_size = 4};
  follows.lora_id = 3;
  follows.lora_name = "sql";
  EXPECT_TRUE(apply({named, follows}));
  EXPECT_EQ(held(counting(1, 8), 4), 0U);
  EXPECT_EQ(held(counting(1, 8), 4, {.lora = "sql"}), 2U);
  EXPECT_EQ(held(counting(1, 8), 4, {.lora = "poet"}), 0U);
}

TEST_F(ApplierTest, AnAdapterWithoutANameIsNotTheBaseModel) {
  StoredEvent nameless{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4};
  nameless.lora_id = 3;
  StoredEvent other = nameless;
  other.hashes = {2};
  other.lora_id = 4;
  EXPECT_TRUE(apply({nameless, other}));
  EXPECT_EQ(blocks(), 2U);
  EXPECT_EQ(held(counting(1, 4), 4), 0U);
  EXPECT_EQ(held(counting(1, 4), 4, {.lora = "3"}), 0U);
  std::vector<SequenceHash> hashes;
  index_.visit(slot_, [&](const auto& block) { hashes.push_back(block.sequence); });
  EXPECT_NE(hashes[0], hashes[1]);
  StoredEvent base{.hashes = {5}, .tokens = counting(1, 4), .block_size = 4};
  base.lora_id = 0;
  EXPECT_TRUE(apply({base}));
  EXPECT_EQ(held(counting(1, 4), 4), 1U) << "adapters count from one";
}

TEST_F(ApplierTest, ASaltIsInherited) {
  const std::string salt = keys({MsgpackEncoder().array(1).text("tenant"), MsgpackEncoder().nil()});
  EXPECT_TRUE(apply({StoredEvent{
      .hashes = {1, 2}, .tokens = counting(1, 8), .block_size = 4, .extra_keys = salt}}));
  EXPECT_TRUE(
      apply({StoredEvent{.hashes = {3}, .parent = 2, .tokens = counting(9, 4), .block_size = 4},
             StoredEvent{.hashes = {4}, .parent = 3, .tokens = counting(13, 4), .block_size = 4}}));
  EXPECT_EQ(held(counting(1, 16), 4, {.salt = "tenant"}), 4U);
  EXPECT_EQ(held(counting(1, 16), 4), 0U);
  // The same tokens without it beside them.
  EXPECT_TRUE(apply({StoredEvent{.hashes = {5, 6}, .tokens = counting(1, 8), .block_size = 4}}));
  EXPECT_EQ(held(counting(1, 16), 4), 2U);
  // It is known as long as a tier has the block.
  EXPECT_TRUE(
      apply({StoredEvent{.hashes = {3}, .medium = "CPU"}, RemovedEvent{.hashes = {3, 4}},
             StoredEvent{.hashes = {4}, .parent = 3, .tokens = counting(13, 4), .block_size = 4}}));
  EXPECT_EQ(overlap(counting(1, 16), {.size = 4}, {.salt = "tenant"}), (Overlap{2, 4, 4, 4}));
}

TEST_F(ApplierTest, CanBeResumedWhereNoSaltIsRemembered) {
  EXPECT_TRUE(feed().resumable());
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4}}));
  EXPECT_TRUE(feed().resumable());
  EXPECT_TRUE(apply({StoredEvent{.hashes = {2},
                                 .tokens = counting(1, 4),
                                 .block_size = 4,
                                 .extra_keys = keys({MsgpackEncoder().array(1).text("tenant")})}}));
  EXPECT_FALSE(feed().resumable());
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {2}}}));
  EXPECT_TRUE(feed().resumable());
}

TEST_F(ApplierTest, ASaltIsToldFromAdaptersAndImages) {
  const std::string digest(64, 'a');
  const auto first_with = [&](MsgpackEncoder of_block) {
    StoredEvent event{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4};
    event.lora_name = "sql";
    event.extra_keys = keys({of_block});
    return event;
  };
  EXPECT_TRUE(apply({first_with(MsgpackEncoder().array(1).text("sql"))}));
  EXPECT_EQ(held(counting(1, 4), 4, {.lora = "sql"}), 1U);
  EXPECT_TRUE(apply({cleared(), first_with(MsgpackEncoder().array(2).text("sql").text("tenant"))}));
  EXPECT_EQ(held(counting(1, 4), 4, {.lora = "sql", .salt = "tenant"}), 1U);
  EXPECT_TRUE(apply({cleared(), first_with(MsgpackEncoder().array(2).text("sql").text(digest))}));
  EXPECT_EQ(held(counting(1, 4), 4, {.lora = "sql", .salt = digest}), 1U)
      << "engines that send maps send images with their places";
  // In arrays a digest is an image.
  MsgpackEncoder array;
  array.array(9)
      .text("BlockStored")
      .array(1)
      .unsigned_integer(1)
      .nil()
      .array(1)
      .unsigned_integer(1);
  array.unsigned_integer(1).nil().nil().nil().array(1).array(2).text(digest).text("tenant");
  feed().forget();
  EXPECT_TRUE(apply({array}));
  const Tokens one = {1};
  const std::uint64_t image = 0xaaaaaaaaaaaaaaaa;
  EXPECT_EQ(overlap_of({hash_block(one, seed_of({.salt = "tenant"}), {&image, 1})}).front(), 1U);
}

TEST_F(ApplierTest, BlocksOfImagesAreNeverThoseOfText) {
  const std::string digest = "0123456789abcdef" + std::string(48, 'f');
  const std::string image = keys(
      {MsgpackEncoder().nil(), MsgpackEncoder().array(1).array(2).text(digest).signed_integer(-2)});
  EXPECT_TRUE(apply({StoredEvent{
      .hashes = {1, 2}, .tokens = counting(1, 8), .block_size = 4, .extra_keys = image}}));
  EXPECT_EQ(held(counting(1, 8), 4), 1U);
  const std::uint64_t hash = 0x0123456789abcdef;
  const auto first = hash_block(counting(1, 4), seed_of({}));
  const auto second = hash_block(counting(5, 4), seed_of({}), {&hash, 1});
  EXPECT_EQ(overlap_of({first, next_sequence(first, second)}).front(), 2U);
  // Whatever else sets a block apart does too.
  for (const MsgpackEncoder& key :
       {MsgpackEncoder().array(1).bytes("digest"),
        MsgpackEncoder().array(1).array(2).text("my cat").nil(),
        MsgpackEncoder().array(1).unsigned_integer(1), MsgpackEncoder().array(1).map(0)}) {
    feed().forget();
    EXPECT_TRUE(apply({StoredEvent{
        .hashes = {1}, .tokens = counting(1, 4), .block_size = 4, .extra_keys = keys({key})}}));
    EXPECT_EQ(blocks(), 1U);
    EXPECT_EQ(held(counting(1, 4), 4), 0U);
  }
}

TEST_F(ApplierTest, KeysOfOtherBlocksThanThereAreAreRefused) {
  const std::string two = keys({MsgpackEncoder().array(1).text("tenant"), MsgpackEncoder().nil()});
  EXPECT_TRUE(apply(
      {StoredEvent{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4, .extra_keys = two}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(skipped(Skipped::Malformed), 1U);
}

TEST_F(ApplierTest, WhereASaltIsUncertainNothingFollows) {
  StoredEvent salted{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4};
  salted.cache_salt = "a";
  StoredEvent again = salted;
  again.cache_salt = "b";
  const StoredEvent follows{.hashes = {2}, .parent = 1, .tokens = counting(5, 4), .block_size = 4};
  EXPECT_TRUE(apply({salted, again, follows}));
  EXPECT_EQ(skipped(Skipped::AmbiguousSalt), 1U);
  EXPECT_EQ(blocks(), 1U);
  // Nor does a block with another salt than what it follows.
  feed().forget();
  StoredEvent other = follows;
  other.cache_salt = "b";
  EXPECT_TRUE(apply({salted, other}));
  EXPECT_EQ(skipped(Skipped::AmbiguousSalt), 2U);
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(ApplierTest, ForgettingStartsOver) {
  StoredEvent event{.hashes = {1}, .tokens = counting(1, 4), .block_size = 4};
  event.group = 1;
  event.kind = "full_attention";
  event.cache_salt = "tenant";
  EXPECT_TRUE(apply({event}));
  feed().forget();
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(feed().shape(), std::nullopt);
  EXPECT_EQ(feed().tally().stored, 1U) << "what was, was";
  EXPECT_TRUE(apply({RemovedEvent{.hashes = {1}, .group = 1}}));
  EXPECT_EQ(skipped(Skipped::UnknownGroup), 1U);
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = counting(1, 8), .block_size = 8}}));
  EXPECT_EQ(held(counting(1, 8), 8), 1U);
}

TEST_F(ApplierTest, AFullIndexIsSaid) {
  Index small({.blocks = 2});
  Applier applier(small, small.join({.worker = {1}, .rank = 0}), 1);
  const MsgpackEncoder event =
      StoredEvent{.hashes = {1, 2, 3, 4}, .tokens = {1, 2, 3, 4}, .block_size = 1};
  MsgpackEncoder batch;
  batch.array(2).number(1.0).array(1).raw(event.encoded());
  EXPECT_TRUE(applier.apply_batch(batch.span()));
  EXPECT_EQ(applier.tally().stored, 2U);
  EXPECT_EQ(applier.tally().skipped[static_cast<std::size_t>(Skipped::NoRoom)], 2U);
}

}  // namespace
}  // namespace baton::kvcache
