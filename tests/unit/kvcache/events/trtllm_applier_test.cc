// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/kvcache/events/feed_fixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::kvcache {
namespace {

using test::counting;
using test::Overlap;
using test::Tokens;

std::string block(std::uint64_t hash, const Tokens& tokens, std::string_view more = {}) {
  std::string list;
  for (const auto token : tokens) {
    list += fmt::format("{}{{\"type\":\"unique_token\",\"token_id\":{},\"token_extra_id\":0}}",
                        list.empty() ? "" : ",", token);
  }
  return fmt::format("{{\"type\":\"stored_block\",\"block_hash\":{},\"tokens\":[{}]{}}}", hash,
                     list, more);
}

class TrtllmApplierTest : public test::FeedFixture {
 protected:
  std::string entry(std::string_view data, std::string_view more = {}) {
    return fmt::format("{{\"event_id\":{},\"data\":{}{}}}", id_++, data, more);
  }
  std::string stored(std::string_view parent, std::initializer_list<std::string> blocks,
                     std::string_view more = {}) {
    return entry(fmt::format("{{\"type\":\"stored\",\"parent_hash\":{},\"blocks\":[{}]}}", parent,
                             fmt::join(blocks, ",")),
                 more);
  }
  std::string removed(std::uint64_t hash, std::string_view more = {}) {
    return entry(fmt::format("{{\"type\":\"removed\",\"block_hashes\":[{}]}}", hash), more);
  }
  std::string moved(std::uint64_t hash, int from, int to) {
    return entry(
        fmt::format("{{\"type\":\"updated\",\"block_hash\":{},\"cache_level\":{{"
                    "\"type\":\"event_diff\",\"old_value\":{},\"new_value\":{}}}}}",
                    hash, from, to));
  }
  Polled poll(std::initializer_list<std::string> entries, std::uint32_t rank = 0) {
    const auto polled = feed().apply_trtllm(fmt::format("[{}]", fmt::join(entries, ",")), rank);
    EXPECT_TRUE(polled) << polled.error().message();
    return polled.value_or(Polled{});
  }

  std::uint64_t id_ = 0;
};

TEST_F(TrtllmApplierTest, StoresMovesAndRemoves) {
  const Polled polled = poll({entry(R"({"type":"created","num_blocks_per_cache_level":[10,10]})"),
                              stored("null", {block(1, counting(1, 4)), block(2, counting(5, 4))}),
                              stored("2", {block(3, counting(9, 4))})});
  EXPECT_EQ(polled.events, 3U);
  EXPECT_EQ(polled.last_id, 2U);
  EXPECT_EQ(polled.lost, 0U);
  EXPECT_EQ(overlap(counting(1, 12), {.size = 4}), (Overlap{3, 3, 3, 3}));
  poll({moved(2, 0, 1)});
  EXPECT_EQ(overlap(counting(1, 12), {.size = 4}), (Overlap{1, 3, 3, 3}));
  poll({moved(2, 1, 0), moved(3, 0, 1), removed(3)});
  EXPECT_EQ(overlap(counting(1, 12), {.size = 4}), (Overlap{2, 2, 2, 2}));
  EXPECT_EQ(blocks(), 2U) << "a removal is from every tier";
  EXPECT_EQ(skipped(), 0U);
}

TEST_F(TrtllmApplierTest, TakesOnlyTheEntriesOfItsRank) {
  const std::string mine = stored("null", {block(1, counting(1, 4))}, ",\"attention_dp_rank\":3");
  const std::string unnamed = stored("null", {block(2, counting(11, 4))});
  const std::string other = removed(1, ",\"attention_dp_rank\":2");
  EXPECT_EQ(poll({mine, unnamed, other}, 3).events, 1U);
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(held(counting(1, 4), 4), 1U);
  EXPECT_EQ(feed().tally().events, 1U);
}

TEST_F(TrtllmApplierTest, KeepsOnlyTheLargestWindow) {
  poll({entry(R"({"type":"created"})", ",\"window_size\":4096"),
        entry(R"({"type":"created"})", ",\"window_size\":128"),
        stored("null", {block(1, counting(1, 4))}, ",\"window_size\":128"),
        stored("null", {block(2, counting(11, 4))}, ",\"window_size\":4096"),
        removed(2, ",\"window_size\":128")});
  EXPECT_EQ(held(counting(1, 4), 4), 0U);
  EXPECT_EQ(held(counting(11, 4), 4), 1U);
  EXPECT_EQ(skipped(Skipped::NotMainAttention), 2U);
}

// Where nobody heard how the caches were made.
TEST_F(TrtllmApplierTest, ALargerWindowTakesOver) {
  poll({stored("null", {block(1, counting(1, 4))}, ",\"window_size\":128"),
        stored("null", {block(2, counting(11, 4))}, ",\"window_size\":4096")});
  EXPECT_EQ(held(counting(1, 4), 4), 0U);
  EXPECT_EQ(held(counting(11, 4), 4), 1U);
}

TEST_F(TrtllmApplierTest, IncompleteBlocksAreRememberedButNotStored) {
  poll({stored("null", {block(1, counting(1, 4)), block(2, counting(5, 3))})});
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(held(counting(1, 8), 4), 1U);
  poll({moved(2, 0, 1)});
  EXPECT_EQ(skipped(), 0U);
  poll({removed(2), moved(2, 0, 1)});
  EXPECT_EQ(skipped(Skipped::UnknownBlock), 1U) << "now it is one that nobody told of";
}

TEST_F(TrtllmApplierTest, OnlyTheLastBlockMayBeIncomplete) {
  poll({stored("null",
               {block(1, counting(1, 4)), block(2, counting(5, 3)), block(3, counting(8, 4))})});
  EXPECT_EQ(held(counting(1, 8), 4), 1U);
  EXPECT_EQ(skipped(Skipped::BlockSize), 2U);
}

// The first block may be incomplete, and nobody says how large they are.
TEST_F(TrtllmApplierTest, LearnsTheSizeOfItsBlocks) {
  poll({stored("null", {block(1, counting(1, 3))})});
  EXPECT_EQ(feed().shape(), std::nullopt) << "three is no size";
  poll({stored("null", {block(2, counting(1, 2))})});
  EXPECT_EQ(feed().shape(), (BlockShape{.size = 2}));
  poll({stored("null",
               {block(3, counting(1, 8)), block(4, counting(9, 8)), block(5, counting(17, 2))})});
  EXPECT_EQ(feed().shape(), (BlockShape{.size = 8}));
  EXPECT_EQ(held(counting(1, 16), 8), 2U);
  EXPECT_EQ(blocks(), 2U);
}

TEST_F(TrtllmApplierTest, AConfiguredSizeHolds) {
  feed(8);
  poll({stored("null", {block(1, counting(1, 4))}),
        stored("null", {block(2, counting(1, 8)), block(3, counting(9, 4))}),
        stored("null", {block(4, counting(1, 16))})});
  EXPECT_EQ(held(counting(1, 8), 8), 1U);
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(skipped(Skipped::BlockSize), 1U);
}

TEST_F(TrtllmApplierTest, ALostEventDropsWhatWasKnown) {
  poll({stored("null", {block(1, counting(1, 4))})});
  id_ += 5;
  const Polled polled = poll({stored("null", {block(2, counting(11, 4))})});
  EXPECT_EQ(polled.lost, 5U);
  EXPECT_EQ(polled.restarts, 0U);
  EXPECT_EQ(held(counting(1, 4), 4), 0U);
  EXPECT_EQ(held(counting(11, 4), 4), 1U);
}

TEST_F(TrtllmApplierTest, NumbersFromTheBeginningAreARestart) {
  poll({stored("null", {block(1, counting(1, 4))}, ",\"window_size\":4096"),
        stored("1", {block(2, counting(5, 4))}, ",\"window_size\":4096")});
  id_ = 0;
  const Polled polled = poll({stored("null", {block(3, counting(1, 8))}, ",\"window_size\":2048")});
  EXPECT_EQ(polled.restarts, 1U);
  EXPECT_EQ(polled.lost, 0U);
  EXPECT_EQ(held(counting(1, 8), 8), 1U) << "windows and sizes may be others";
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(TrtllmApplierTest, StoresEachBlockInItsTier) {
  poll({stored("null", {block(1, counting(1, 4)), block(2, counting(5, 4), ",\"cache_level\":1"),
                        block(3, counting(9, 4), ",\"cache_level\":0")})});
  EXPECT_EQ(overlap(counting(1, 12), {.size = 4}), (Overlap{1, 3, 3, 3}));
  poll({stored("3", {block(4, counting(13, 4), ",\"cache_level\":9")}), moved(3, 0, 9)});
  EXPECT_EQ(skipped(Skipped::UnknownMedium), 2U);
}

TEST_F(TrtllmApplierTest, AdaptersSaltsAndImagesAreApart) {
  poll({stored("null", {block(1, counting(1, 4), ",\"cache_salt\":\"tenant\""),
                        block(2, counting(5, 4), ",\"cache_salt\":\"tenant\"")}),
        stored("2", {block(3, counting(9, 4))}),
        stored("null", {block(4, counting(21, 4), ",\"lora_id\":7")}),
        stored("null", {block(5, counting(31, 4),
                              R"(,"mm_keys":[{"type":"mm_key","hash":"00000000000000ff"}])")})});
  EXPECT_EQ(held(counting(1, 12), 4, {.salt = "tenant"}), 3U);
  EXPECT_EQ(held(counting(1, 12), 4), 0U);
  EXPECT_EQ(held(counting(21, 4), 4), 0U);
  EXPECT_EQ(held(counting(31, 4), 4), 0U);
  const std::uint64_t image = 0xff;
  EXPECT_EQ(
      overlap_of({kvcache::hash_block(counting(31, 4), kvcache::seed_of({}), {&image, 1})}).front(),
      1U);
}

TEST_F(TrtllmApplierTest, ABadEntryDoesNotCostTheOthers) {
  const Polled polled = poll(
      {entry("{}"), entry(R"({"type":"new"})"), "17", stored("null", {block(1, counting(1, 4))})});
  EXPECT_EQ(polled.events, 4U);
  EXPECT_EQ(polled.lost, 0U) << "they were not lost";
  EXPECT_EQ(skipped(Skipped::Malformed), 2U);
  EXPECT_EQ(skipped(Skipped::UnknownType), 1U);
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(TrtllmApplierTest, ABrokenAnswerIsCounted) {
  EXPECT_FALSE(feed().apply_trtllm("[{", 0));
  EXPECT_EQ(feed().tally().batches, 1U);
  EXPECT_EQ(feed().tally().malformed_batches, 1U);
}

TEST_F(TrtllmApplierTest, ForgettingStartsOver) {
  poll({stored("null", {block(1, counting(1, 4))}, ",\"window_size\":4096")});
  feed().forget();
  EXPECT_EQ(blocks(), 0U);
  id_ = 100;
  const Polled polled = poll({stored("null", {block(1, counting(1, 4))}, ",\"window_size\":64")});
  EXPECT_EQ(polled.lost, 0U);
  EXPECT_EQ(polled.restarts, 0U);
  EXPECT_EQ(blocks(), 1U);
}

}  // namespace
}  // namespace baton::kvcache
