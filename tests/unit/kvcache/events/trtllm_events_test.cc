// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/trtllm_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::kvcache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Seen {
  Decoded outcome;
  TrtllmEntry::Type type;
  std::optional<std::uint64_t> id;
  std::uint32_t rank;
};

std::vector<Seen> read(std::string_view json) {
  TrtllmReader reader;
  std::vector<Seen> seen;
  EXPECT_TRUE(reader.read(json, [&](const TrtllmEntry& entry) {
    seen.push_back({entry.outcome, entry.type, entry.id, entry.rank});
  }));
  return seen;
}
Decoded outcome_of(std::string_view data) {
  const auto seen = read("[{\"event_id\":1,\"data\":" + std::string(data) + "}]");
  EXPECT_EQ(seen.size(), 1U);
  return seen.empty() ? Decoded::Broken : seen.front().outcome;
}

TEST(TrtllmEvents, ReadsAStore) {
  TrtllmReader reader;
  int entries = 0;
  const auto result =
      reader.read(R"([{"event_id": 7, "window_size": 4096, "attention_dp_rank": 2,
    "hash_algo": "v1_block_key", "data": {"type": "stored", "parent_hash": 18446744073709551615,
    "lora_name": "sql", "blocks": [
    {"type": "stored_block", "block_hash": 9622824665191806685, "cache_level": 0, "priority": 35,
     "cache_salt": "tenant", "tokens": [
      {"type": "unique_token", "token_id": 1, "token_extra_id": 0},
      {"type": "unique_token", "token_id": 4294967295, "token_extra_id": 12}],
     "mm_keys": [{"type": "mm_key", "hash": "00000000000000ff", "start_offset": 4}]},
    {"type": "stored_block", "block_hash": -3, "cache_level": 1, "tokens": [{"token_id": 5}, 6]}]}}])",
                  [&](const TrtllmEntry& entry) {
                    ++entries;
                    EXPECT_EQ(entry.outcome, Decoded::Event);
                    EXPECT_EQ(entry.type, TrtllmEntry::Type::Stored);
                    EXPECT_EQ(entry.id, 7U);
                    EXPECT_EQ(entry.window, 4096U);
                    EXPECT_EQ(entry.rank, 2U);
                    EXPECT_EQ(entry.event.parent, 18446744073709551615U);
                    EXPECT_EQ(entry.event.lora_name, "sql");
                    EXPECT_EQ(entry.event.cache_salt, "tenant");
                    EXPECT_THAT(entry.event.hashes,
                                ElementsAre(9622824665191806685U, static_cast<std::uint64_t>(-3)));
                    EXPECT_THAT(entry.event.tokens, ElementsAre(1U, 4294967295U, 5U, 6U));
                    EXPECT_THAT(entry.block_tokens, ElementsAre(2U, 2U));
                    EXPECT_THAT(entry.levels, ElementsAre(0U, 1U));
                    ASSERT_EQ(entry.event.extra_keys.size(), 2U);
                    EXPECT_EQ(entry.event.extra_keys[0].number, 12U);
                    EXPECT_EQ(entry.event.extra_keys[1].bytes, "00000000000000ff");
                  });
  EXPECT_TRUE(result);
  EXPECT_EQ(entries, 1);
}

TEST(TrtllmEvents, ReadsHashesInHexadecimal) {
  TrtllmReader reader;
  EXPECT_TRUE(reader.read(
      R"([{"data": {"type": "removed", "block_hashes": ["00112233445566778899aabbccddeeff", "ff"]}}])",
      [](const TrtllmEntry& entry) {
        EXPECT_EQ(entry.outcome, Decoded::Event);
        EXPECT_EQ(entry.id, std::nullopt);
        EXPECT_THAT(entry.event.hashes, ElementsAre(0x8899aabbccddeeffU, 0xffU));
      }));
}

TEST(TrtllmEvents, ReadsTheOtherTypes) {
  const auto seen = read(R"([
    {"event_id": 0, "data": {"type": "created", "num_blocks_per_cache_level": [100, 0]}},
    {"event_id": 1, "data": {"type": "removed", "block_hashes": [1]}},
    {"event_id": 2, "data": {"type": "updated", "block_hash": 1,
      "cache_level": {"type": "event_diff", "old_value": 0, "new_value": 1}, "priority": null}},
    {"event_id": 3, "data": {"type": "updated", "block_hash": 1, "cache_level": null,
      "priority": {"type": "event_diff", "old_value": 35, "new_value": 40}}},
    {"event_id": 4, "data": {"type": "defragmented"}}])");
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(seen[0].type, TrtllmEntry::Type::Created);
  EXPECT_EQ(seen[1].type, TrtllmEntry::Type::Removed);
  EXPECT_EQ(seen[2].type, TrtllmEntry::Type::Moved);
  EXPECT_EQ(seen[3].type, TrtllmEntry::Type::Other);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(seen[i].outcome, Decoded::Event) << i;
  EXPECT_EQ(seen[4].outcome, Decoded::UnknownType);
  EXPECT_EQ(seen[4].id, 4U);
}

TEST(TrtllmEvents, RefusesEntriesOneByOne) {
  for (const auto* data :
       {R"({})",
        R"([])",
        R"(null)",
        R"({"type": 1})",
        R"({"type": "removed"})",
        R"({"type": "removed", "block_hashes": 1})",
        R"({"type": "removed", "block_hashes": [1.5]})",
        R"({"type": "removed", "block_hashes": ["no hex"]})",
        R"({"type": "removed", "block_hashes": [""]})",
        R"({"type": "stored"})",
        R"({"type": "stored", "blocks": {}})",
        R"({"type": "stored", "blocks": [1]})",
        R"({"type": "stored", "blocks": [{"block_hash": 1}]})",
        R"({"type": "stored", "blocks": [{"tokens": []}]})",
        R"({"type": "stored", "parent_hash": {}, "blocks": []})",
        R"({"type": "stored", "blocks": [{"block_hash": 1, "tokens": [-1]}]})",
        R"({"type": "stored", "blocks": [{"block_hash": 1, "tokens": [4294967296]}]})",
        R"({"type": "stored", "blocks": [{"block_hash": 1, "tokens": [{"id": 1}]}]})",
        R"({"type": "stored", "blocks": [{"block_hash": 1, "tokens": [1], "mm_keys": 1}]})",
        R"({"type": "stored", "blocks": [{"block_hash": 1, "tokens": [1], "mm_keys": [{}]}]})",
        R"({"type": "stored", "blocks": [{"block_hash": 1, "tokens": [1], "cache_salt": "a"},
                                         {"block_hash": 2, "tokens": [1], "cache_salt": "b"}]})",
        R"({"type": "updated"})",
        R"({"type": "updated", "block_hash": 1, "cache_level": 1})",
        R"({"type": "updated", "block_hash": 1, "cache_level": {"old_value": 0}})"}) {
    EXPECT_EQ(outcome_of(data), Decoded::Malformed) << data;
  }
  const auto seen = read(R"([1, {"data": {"type": "created"}}, {"event_id": 9, "data": 5}])");
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].outcome, Decoded::Malformed);
  EXPECT_EQ(seen[1].outcome, Decoded::Event);
  EXPECT_EQ(seen[2].outcome, Decoded::Malformed);
  EXPECT_EQ(seen[2].id, 9U);
}

TEST(TrtllmEvents, BoundsHashesAndTokens) {
  const auto many = [](std::size_t count) {
    std::string text = "1";
    for (std::size_t i = 1; i < count; ++i) text += ",1";
    return text;
  };
  const auto removed = [&](std::size_t count) {
    return outcome_of("{\"type\":\"removed\",\"block_hashes\":[" + many(count) + "]}");
  };
  EXPECT_EQ(removed(kMostHashes), Decoded::Event);
  EXPECT_EQ(removed(kMostHashes + 1), Decoded::TooLarge);
  EXPECT_EQ(outcome_of("{\"type\":\"stored\",\"blocks\":[{\"block_hash\":1,\"tokens\":[" +
                       many(kMostTokens + 1) + "]}]}"),
            Decoded::TooLarge);
}

TEST(TrtllmEvents, AnAnswerThatIsNoListIsRefusedWhole) {
  TrtllmReader reader;
  int entries = 0;
  const auto count = [&](const TrtllmEntry&) { ++entries; };
  for (const auto* json :
       {"", "{}", "null", "[", R"([{"data": {"type": "created"}}, {"data")", "[] []", "[NaN]"}) {
    const auto result = reader.read(json, count);
    ASSERT_FALSE(result) << json;
    EXPECT_EQ(result.error().code(), Errc::EngineProtocol);
  }
  EXPECT_EQ(entries, 0) << "not even what can be read of it";
  EXPECT_TRUE(reader.read("[]", count));
  EXPECT_EQ(entries, 0);
}

}  // namespace
}  // namespace baton::kvcache
