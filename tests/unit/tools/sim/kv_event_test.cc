// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Payloads against bytes that were made by hand for each release.
#include "tools/sim/kv_event.h"

#include "unit/tools/sim/hex.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::sim {
namespace {

using model::Engine;
using Type = KvEvent::Type;

constexpr double kTime = 1755000000.25;
constexpr std::uint64_t kOne = 0x0123456789abcdef;
constexpr std::uint64_t kTwo = 0xfedcba9876543210;
const std::vector<TokenId> kFour{1, 127, 128, 255};
const std::vector<TokenId> kNextFour{256, 65535, 65536, 128000};
const std::vector<TokenId> kEight{1, 127, 128, 255, 256, 65535, 65536, 128000};

Options engine(Engine engine, std::string version) {
  Options options;
  options.engine = engine;
  options.version = std::move(version);
  options.block_size = 4;
  options.kv.events = "tcp://127.0.0.1:0";
  return options;
}

// A hash that is this number whichever end of it an engine takes.
BlockHash hash(std::uint64_t number) {
  BlockHash out{};
  for (unsigned i = 0; i < 8; ++i) {
    out[i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
    out[24 + i] = out[i];
  }
  return out;
}

std::string batch(const Options& options, const std::vector<BlockChange>& changes,
                  std::uint32_t rank = 0) {
  const EventFormat format = event_format(options);
  return hex(encode_batch(format, kTime, events_of(format, changes), rank));
}

TEST(KvEvent, VllmUpTo0_10HasSixFields) {
  EXPECT_EQ(
      batch(engine(Engine::Vllm, "0.10.1"), {BlocksStored{.hashes = {hash(kOne)}, .tokens = kFour},
                                             BlockRemoved{.hash = hash(kOne)}, CacheCleared{}}),
      "93cb41da26cb301000009396ab426c6f636b53746f72656491cf0123456789abcdefc094017fcc80ccff04c092"
      "ac426c6f636b52656d6f76656491cf0123456789abcdef91b0416c6c426c6f636b73436c656172656400");
}

TEST(KvEvent, VllmGetsTheMediumThenTheAdaptersNameThenTheGroup) {
  EXPECT_EQ(
      batch(engine(Engine::Vllm, "0.11.0"),
            {BlocksStored{.hashes = {hash(kOne), hash(kTwo)}, .tokens = kEight},
             BlockRemoved{.hash = hash(kTwo)}}),
      "93cb41da26cb301000009297ab426c6f636b53746f72656492cf0123456789abcdefcffedcba9876543210c098"
      "017fcc80ccffcd0100cdffffce00010000ce0001f40004c0a347505593ac426c6f636b52656d6f76656491cffe"
      "dcba9876543210a347505500");
  EXPECT_EQ(
      batch(engine(Engine::Vllm, "0.14.0"),
            {BlocksStored{.parent = hash(kOne),
                          .hashes = {hash(kTwo)},
                          .tokens = kNextFour,
                          .scope = {.lora = "sql-adapter", .lora_id = 1}}},
            1),
      "93cb41da26cb301000009198ab426c6f636b53746f72656491cffedcba9876543210cf0123456789abcdef94cd"
      "0100cdffffce00010000ce0001f4000401a3475055ab73716c2d6164617074657201");
  EXPECT_EQ(
      batch(engine(Engine::Vllm, "0.20.0"), {BlocksStored{.hashes = {hash(kOne)}, .tokens = kFour},
                                             BlockRemoved{.hash = hash(kOne)}}),
      "93cb41da26cb30100000929aab426c6f636b53746f72656491cf0123456789abcdefc094017fcc80ccff04c0a3"
      "475055c0c00094ac426c6f636b52656d6f76656491cf0123456789abcdefa34750550000");
}

TEST(KvEvent, VllmTellsSaltsAndAdaptersAsExtraKeysOfEachBlock) {
  const EventFormat format = event_format(engine(Engine::Vllm, "0.28.0"));
  const auto events = events_of(
      format,
      std::vector<BlockChange>{BlocksStored{.hashes = {hash(kOne), hash(kTwo)},
                                            .tokens = kEight,
                                            .scope = {.lora = "a", .lora_id = 2, .salt = "s"}},
                               BlocksStored{.parent = hash(kOne),
                                            .hashes = {hash(kTwo)},
                                            .tokens = kNextFour,
                                            .scope = {.salt = "s"}}});
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].extra_keys, (std::vector<std::vector<std::string>>{{"a", "s"}, {"a"}}));
  EXPECT_EQ(events[0].lora_id, 2U);
  EXPECT_EQ(events[0].lora_name, "a");
  EXPECT_EQ(events[1].extra_keys, (std::vector<std::vector<std::string>>{{}}));
}

TEST(KvEvent, VllmFrom0_24UsesMaps) {
  EXPECT_EQ(
      batch(engine(Engine::Vllm, "0.24.0"),
            {BlocksStored{.hashes = {hash(kOne), hash(kTwo)}, .tokens = kEight}}),
      "93cb41da26cb30100000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf01"
      "23456789abcdefcffedcba9876543210b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473"
      "98017fcc80ccffcd0100cdffffce00010000ce0001f400aa626c6f636b5f73697a6504a76c6f72615f6964c0a6"
      "6d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797392c0c0a967726f75705f696478"
      "00b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e00");
  EXPECT_EQ(
      batch(engine(Engine::Vllm, "0.28.0"), {BlockRemoved{.hash = hash(kTwo)}, CacheCleared{}}),
      "93cb41da26cb301000009284a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cf"
      "fedcba9876543210a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b"
      "73436c656172656400");
}

TEST(KvEvent, VllmMayTellOfTheHostByHashAlone) {
  Options options = engine(Engine::Vllm, "0.26.0");
  options.kv.host_hashes_only = true;
  EXPECT_EQ(
      batch(
          options,
          {BlocksStored{
              .parent = hash(kTwo), .hashes = {hash(kOne)}, .tokens = kFour, .tier = Tier::Host}}),
      "93cb41da26cb301000009189a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cf01"
      "23456789abcdefb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647390aa626c6f636b5f73"
      "697a6500a76c6f72615f6964c0a66d656469756da3435055a96c6f72615f6e616d65c0a967726f75705f696478"
      "0000");
}

TEST(KvEvent, WholeHashesAreBytes) {
  Options options = engine(Engine::Vllm, "0.24.0");
  options.kv.hash_bytes = true;
  BlockHash one{};
  BlockHash parent{};
  for (unsigned i = 0; i < 32; ++i) {
    one[i] = static_cast<std::uint8_t>(i);
    parent[i] = static_cast<std::uint8_t>(100 + i);
  }
  const EventFormat format = event_format(options);
  const std::vector<KvEvent> events{
      {.type = Type::Stored,
       .hashes = {one},
       .parent = parent,
       .tokens = kFour,
       .block_size = 4,
       .medium = "GPU",
       .group = 0,
       .kind = "full_attention"},
      {.type = Type::Removed, .hashes = {parent}, .medium = "GPU", .group = 0}};
  EXPECT_EQ(
      hex(encode_batch(format, kTime, events, 0)),
      "93cb41da26cb30100000928aa474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391c420"
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb1706172656e745f626c6f636b"
      "5f68617368c4206465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f80818283a9746f6b656e"
      "5f69647394017fcc80ccffaa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c"
      "6f72615f6e616d65c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f"
      "617474656e74696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391c42064"
      "65666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f80818283a66d656469756da3475055a96772"
      "6f75705f6964780000");
}

TEST(KvEvent, SglangHasSignedHashesAndTellsNeighboursTogether) {
  EXPECT_EQ(
      batch(engine(Engine::Sglang, "0.5.8"),
            {CacheCleared{}, BlocksStored{.hashes = {hash(0x8000000000000005)}, .tokens = kFour},
             BlockRemoved{.hash = hash(~std::uint64_t{0})}}),
      "93cb41da26cb301000009391b0416c6c426c6f636b73436c656172656496ab426c6f636b53746f72656491d380"
      "00000000000005c094017fcc80ccff04c092ac426c6f636b52656d6f76656491ff00");
  EXPECT_EQ(
      batch(engine(Engine::Sglang, "0.5.9"),
            {BlocksStored{.parent = hash(~std::uint64_t{0}),
                          .hashes = {hash(0x8000000000000005), hash(0x7000000000000001)},
                          .tokens = kEight},
             BlocksStored{.parent = hash(0x8000000000000005),
                          .hashes = {hash(0x7000000000000001)},
                          .tokens = kNextFour,
                          .tier = Tier::Host},
             BlockRemoved{.hash = hash(0x7000000000000001), .tier = Tier::Host}},
            3),
      "93cb41da26cb301000009397ab426c6f636b53746f72656492d38000000000000005cf7000000000000001ff98"
      "017fcc80ccffcd0100cdffffce00010000ce0001f40004c0a347505597ab426c6f636b53746f72656491cf7000"
      "000000000001d3800000000000000594cd0100cdffffce00010000ce0001f40004c0aa4350555f50494e4e4544"
      "93ac426c6f636b52656d6f76656491cf7000000000000001aa4350555f50494e4e454403");
  const EventFormat format = event_format(engine(Engine::Sglang, "0.5.18"));
  const auto removals = events_of(
      format, std::vector<BlockChange>{BlockRemoved{.hash = hash(1)}, BlockRemoved{.hash = hash(2)},
                                       BlockRemoved{.hash = hash(3), .tier = Tier::Host}});
  ASSERT_EQ(removals.size(), 2U);
  EXPECT_EQ(removals[0].hashes, (std::vector{hash(1), hash(2)}));
}

TEST(KvEvent, SglangTellsASaltInAMap) {
  const std::vector<BlockChange> salted{BlocksStored{
      .hashes = {hash(0x7000000000000001)}, .tokens = kFour, .scope = {.salt = "tenant-a"}}};
  EXPECT_EQ(
      batch(engine(Engine::Sglang, "0.5.18"), salted),
      "93cb41da26cb301000009198ab426c6f636b53746f72656491cf7000000000000001c094017fcc80ccff04c0a3"
      "47505581aa63616368655f73616c74a874656e616e742d6100");
  EXPECT_EQ(batch(engine(Engine::Sglang, "0.5.17"), salted).find("74656e616e742d61"),
            std::string::npos);
}

// Of 0.5.23 on: what is nothing is left out, and an adapter is told.
TEST(KvEvent, SglangHasMapsWithoutNulls) {
  const EventFormat format = event_format(engine(Engine::Sglang, "0.5.23"));
  EXPECT_EQ(format.encoding, KvEncoding::Map);
  EXPECT_EQ(batch(engine(Engine::Sglang, "0.5.23"),
                  {BlocksStored{.hashes = {hash(0x7000000000000001)},
                                .tokens = kFour,
                                .scope = {.lora = "sql", .lora_id = 1, .salt = "t"}},
                   BlockRemoved{.hash = hash(0x7000000000000001)}}),
            "93cb41da26cb3010000092"
            "89a474797065ab426c6f636b53746f726564"
            "ac626c6f636b5f68617368657391cf7000000000000001"
            "b1706172656e745f626c6f636b5f68617368c0"
            "a9746f6b656e5f69647394017fcc80ccff"
            "aa626c6f636b5f73697a6504"
            "a76c6f72615f6964c0"
            "a66d656469756da3475055"
            "aa63616368655f73616c74a174"
            "a96c6f72615f6e616d65a373716c"
            "83a474797065ac426c6f636b52656d6f766564"
            "ac626c6f636b5f68617368657391cf7000000000000001a66d656469756da347505500");
}

TEST(KvEvent, TrtllmHasMapsWithoutGroups) {
  EXPECT_EQ(
      batch(engine(Engine::Trtllm, "1.3.0"),
            {BlocksStored{.hashes = {hash(0x8000000000000005)}, .tokens = kFour},
             BlockRemoved{.hash = hash(0x8000000000000005)}}),
      "93cb41da26cb301000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391d380"
      "00000000000005b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647394017fcc80ccffaa62"
      "6c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c083a47479"
      "7065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391d38000000000000005a66d656469756d"
      "a347505500");
}

TEST(KvEvent, LlmdsParentOfAFirstBlockIsZero) {
  Options options = engine(Engine::Vllm, "0.17.0");
  options.kv.root_parent_zero = true;
  EXPECT_EQ(
      batch(options, {BlocksStored{.hashes = {hash(kOne)}, .tokens = kFour},
                      BlockRemoved{.hash = hash(kOne)}}),
      "93cb41da26cb301000009299ab426c6f636b53746f72656491cf0123456789abcdef0094017fcc80ccff04c0a3"
      "475055c0c093ac426c6f636b52656d6f76656491cf0123456789abcdefa347505500");
}

TEST(KvEvent, WhatIsAskedForWinsOverTheRelease) {
  Options options = engine(Engine::Vllm, "0.28.0");
  EXPECT_EQ(event_format(options).encoding, KvEncoding::Map);
  EXPECT_EQ(replay_frames(options), 4U);
  options.kv.encoding = KvEncoding::Array;
  options.kv.replay_frames = 3;
  EXPECT_EQ(event_format(options).encoding, KvEncoding::Array);
  EXPECT_EQ(replay_frames(options), 3U);
  EXPECT_EQ(replay_frames(engine(Engine::Vllm, "0.25.1")), 3U);
  EXPECT_EQ(replay_frames(engine(Engine::Sglang, "0.5.18")), 3U);
  EXPECT_EQ(replay_frames(engine(Engine::Sglang, "0.5.23")), 4U);
  EXPECT_EQ(replay_frames(engine(Engine::Trtllm, "1.3.0")), 4U);
}

TEST(KvEvent, APartialBlockIsNoNews) {
  const EventFormat format = event_format(engine(Engine::Trtllm, "1.3.0"));
  EXPECT_TRUE(events_of(format, std::vector<BlockChange>{BlocksStored{.hashes = {hash(1)},
                                                                      .tokens = {1, 2, 3}}})
                  .empty());
}

}  // namespace
}  // namespace baton::sim
