// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/event_decoder.h"

#include "support/msgpack_encoder.h"
#include "unit/kvcache/events/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::kvcache {
namespace {

using baton::test::MsgpackEncoder;
using test::ExpectedEvent;
using testing::ElementsAre;
using testing::IsEmpty;
using wire::MsgpackReader;

std::string_view name_of(Event::Type type) {
  switch (type) {
    case Event::Type::Stored:
      return "BlockStored";
    case Event::Type::Removed:
      return "BlockRemoved";
    case Event::Type::Cleared:
      return "AllBlocksCleared";
  }
  return {};
}

void expect_event(const Event& event, const ExpectedEvent& expected) {
  EXPECT_EQ(name_of(event.type), expected.type);
  EXPECT_EQ(event.hashes, expected.hashes);
  EXPECT_EQ(event.parent, expected.parent);
  EXPECT_EQ(std::vector(event.tokens.begin(), event.tokens.end()), expected.tokens);
  EXPECT_EQ(event.block_size, expected.block_size);
  EXPECT_EQ(event.lora_id, expected.lora_id);
  EXPECT_EQ(event.medium, expected.medium);
  EXPECT_EQ(event.lora_name, expected.lora_name);
  EXPECT_EQ(event.group, expected.group);
  EXPECT_EQ(event.kind, expected.kind);
  EXPECT_EQ(event.sliding_window, expected.sliding_window);
  EXPECT_EQ(event.locality, expected.locality);
  EXPECT_EQ(event.ownership, expected.ownership);
  EXPECT_EQ(event.session_id, expected.session_id);
  EXPECT_EQ(event.cache_salt, expected.cache_salt);
  EXPECT_EQ(event.bigram, expected.bigram);
  ASSERT_EQ(event.extra_keys.size(), expected.keys.size());
  for (std::size_t i = 0; i < expected.keys.size(); ++i) {
    EXPECT_EQ(event.extra_keys[i].block, expected.keys[i].block);
    EXPECT_EQ(event.extra_keys[i].kind == ExtraKey::Kind::Item, expected.keys[i].item);
    EXPECT_EQ(event.extra_keys[i].bytes, expected.keys[i].name);
  }
}

TEST(EventDecoder, ReadsWhatEnginesSend) {
  Event event;  // used again for all of them, as in earnest
  for (const auto& vector : test::vectors()) {
    SCOPED_TRACE(vector.name);
    const std::string payload = test::from_hex(vector.hex);
    MsgpackReader reader(std::as_bytes(std::span(payload)));
    const auto opening = open_batch(reader);
    if (!vector.ok) {
      bool refused = !opening;
      for (std::uint32_t i = 0; !refused && i < opening->events; ++i)
        refused = decode_event(reader, event) == Decoded::Broken;
      EXPECT_TRUE(refused);
      if (opening) EXPECT_FALSE(close_batch(reader, *opening));
      continue;
    }
    ASSERT_TRUE(opening) << opening.error().message();
    EXPECT_EQ(opening->timestamp, vector.timestamp);
    ASSERT_EQ(opening->events, vector.events.size());
    for (const ExpectedEvent& expected : vector.events) {
      const Decoded outcome = decode_event(reader, event);
      if (expected.type == "Unknown") {
        EXPECT_EQ(outcome, Decoded::UnknownType);
        continue;
      }
      ASSERT_EQ(outcome, Decoded::Event);
      expect_event(event, expected);
    }
    const auto rank = close_batch(reader, *opening);
    ASSERT_TRUE(rank) << rank.error().message();
    EXPECT_EQ(*rank, vector.rank);
  }
}

// The event is valid until the next call.
Decoded decode(const MsgpackEncoder& encoder, Event& event) {
  static MsgpackEncoder followed;
  followed = MsgpackEncoder();
  followed.raw(encoder.encoded()).unsigned_integer(42);
  MsgpackReader reader(followed.span());
  const Decoded outcome = decode_event(reader, event);
  if (outcome != Decoded::Broken) {
    EXPECT_EQ(reader.read_integer(), 42U) << "it moves past the event";
  }
  return outcome;
}
Decoded decode(const MsgpackEncoder& encoder) {
  Event event;
  return decode(encoder, event);
}

MsgpackEncoder stored(std::size_t fields) {
  MsgpackEncoder encoder;
  encoder.array(fields).text("BlockStored");
  return encoder;
}

TEST(EventDecoder, RefusesEventsWithoutWhatTheyAreAbout) {
  MsgpackEncoder map;
  map.map(2).text("type").text("BlockStored").text("block_hashes").array(0);
  EXPECT_EQ(decode(map), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().map(1).text("type").text("BlockRemoved")), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().array(1).text("BlockRemoved")), Decoded::Malformed);
  EXPECT_EQ(decode(stored(2).array(0)), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().map(1).text("medium").text("GPU")), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().array(0)), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().array(2).unsigned_integer(1).nil()), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().text("BlockStored")), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().nil()), Decoded::Malformed);
  EXPECT_EQ(decode(MsgpackEncoder().map(1).text("type").unsigned_integer(1)), Decoded::Malformed);
}

// Each of its own, the rest being right.
TEST(EventDecoder, RefusesFieldsOfAnotherKind) {
  const MsgpackEncoder text = MsgpackEncoder().text("x");
  const MsgpackEncoder number = MsgpackEncoder().unsigned_integer(1);
  const MsgpackEncoder texts = MsgpackEncoder().array(1).text("x");
  const MsgpackEncoder negatives = MsgpackEncoder().array(1).signed_integer(-1);
  const MsgpackEncoder mixed =
      MsgpackEncoder().array(2).array(2).unsigned_integer(1).unsigned_integer(2).unsigned_integer(
          3);
  const MsgpackEncoder torn = MsgpackEncoder()
                                  .array(2)
                                  .array(2)
                                  .unsigned_integer(1)
                                  .unsigned_integer(2)
                                  .array(2)
                                  .unsigned_integer(3)
                                  .unsigned_integer(4);
  const MsgpackEncoder triples =
      MsgpackEncoder().array(1).array(3).unsigned_integer(1).unsigned_integer(2).unsigned_integer(
          3);
  const MsgpackEncoder no_bytes = MsgpackEncoder().array(1).bytes("");
  const std::vector<std::pair<std::string_view, MsgpackEncoder>> wrong = {
      {"block_hashes", text},      {"block_hashes", texts},
      {"block_hashes", no_bytes},  {"block_hashes", MsgpackEncoder().nil()},
      {"parent_block_hash", text}, {"token_ids", text},
      {"token_ids", texts},        {"token_ids", negatives},
      {"token_ids", mixed},        {"token_ids", torn},
      {"token_ids", triples},      {"block_size", text},
      {"block_size", negatives},   {"lora_id", text},
      {"medium", number},          {"lora_name", number},
      {"extra_keys", text},        {"extra_keys", texts},
      {"group_idx", text},         {"kv_cache_spec_kind", number},
      {"locality", number},        {"ownership", number},
      {"cache_salt", number},      {"block_mm_infos", number},
  };
  for (const auto& [name, value] : wrong) {
    MsgpackEncoder event;
    event.map(5).text("type").text("BlockStored");
    event.text("block_hashes").array(1).unsigned_integer(7);
    event.text("token_ids").array(1).unsigned_integer(1);
    event.text("block_size").unsigned_integer(1);
    event.text(name).raw(value.encoded());
    EXPECT_EQ(decode(event), Decoded::Malformed) << name;
  }
}

TEST(EventDecoder, BoundsHashesAndTokens) {
  const auto removed = [](std::size_t hashes) {
    MsgpackEncoder event;
    event.array(2).text("BlockRemoved").array(hashes);
    for (std::size_t i = 0; i < hashes; ++i) event.unsigned_integer(i);
    return event;
  };
  EXPECT_EQ(decode(removed(kMostHashes)), Decoded::Event);
  EXPECT_EQ(decode(removed(kMostHashes + 1)), Decoded::TooLarge);
  const auto with_tokens = [](std::size_t tokens) {
    MsgpackEncoder event;
    event.array(5).text("BlockStored").array(1).unsigned_integer(1).nil().array(tokens);
    for (std::size_t i = 0; i < tokens; ++i) event.unsigned_integer(i % 100);
    event.unsigned_integer(1);
    return event;
  };
  EXPECT_EQ(decode(with_tokens(kMostTokens)), Decoded::Event);
  EXPECT_EQ(decode(with_tokens(kMostTokens + 1)), Decoded::TooLarge);
  MsgpackEncoder keys = stored(9);
  keys.array(1).unsigned_integer(1).nil().array(1).unsigned_integer(1).unsigned_integer(1);
  keys.nil().nil().nil().array(1).array(kMostHashes + 1);
  for (std::size_t i = 0; i <= kMostHashes; ++i) keys.text("k");
  EXPECT_EQ(decode(keys), Decoded::TooLarge);
}

TEST(EventDecoder, ReadsKeysOfEveryKind) {
  MsgpackEncoder encoder = stored(9);
  encoder.array(2).unsigned_integer(1).unsigned_integer(2).nil();
  encoder.array(2).unsigned_integer(1).unsigned_integer(2).unsigned_integer(1);
  encoder.nil().nil().text("adapter");
  encoder.array(2).nil().array(4).text("adapter").array(2).text("image").signed_integer(-3);
  encoder.bytes("digest").nil();
  Event event;
  ASSERT_EQ(decode(encoder, event), Decoded::Event);
  EXPECT_EQ(event.extra_key_blocks, 2U);
  ASSERT_EQ(event.extra_keys.size(), 3U);
  EXPECT_EQ(event.extra_keys[0].kind, ExtraKey::Kind::Text);
  EXPECT_EQ(event.extra_keys[0].bytes, "adapter");
  EXPECT_EQ(event.extra_keys[1].kind, ExtraKey::Kind::Item);
  EXPECT_EQ(event.extra_keys[1].bytes, "image");
  EXPECT_EQ(event.extra_keys[2].kind, ExtraKey::Kind::Other);
  for (const ExtraKey& key : event.extra_keys) EXPECT_EQ(key.block, 1U);
}

// Dynamo's relays tell of images in a field of their own, in arrays in front of the group.
TEST(EventDecoder, ReadsMultimodalInfos) {
  const auto infos = [](MsgpackEncoder& to) {
    to.array(2).nil().map(2).text("other").nil().text("mm_objects").array(1);
    to.map(2).text("mm_hash").unsigned_integer(255).text("offsets").array(0);
  };
  MsgpackEncoder array = stored(12);
  array.array(1).unsigned_integer(1).nil().array(0).unsigned_integer(0).nil().nil().nil().nil();
  infos(array);
  array.unsigned_integer(3).text("full_attention");
  MsgpackEncoder map;
  map.map(6).text("type").text("BlockStored").text("block_mm_infos");
  infos(map);
  map.text("block_hashes").array(1).unsigned_integer(1).text("token_ids").array(0);
  map.text("block_size").unsigned_integer(0).text("group_idx").unsigned_integer(3);
  for (const auto& encoder : {array, map}) {
    Event event;
    ASSERT_EQ(decode(encoder, event), Decoded::Event);
    ASSERT_EQ(event.extra_keys.size(), 1U);
    EXPECT_EQ(event.extra_keys[0].kind, ExtraKey::Kind::Number);
    EXPECT_EQ(event.extra_keys[0].number, 255U);
    EXPECT_EQ(event.extra_keys[0].block, 1U);
    EXPECT_EQ(event.group, 3U);
  }
}

TEST(EventDecoder, KeepsNothingOfTheEventBefore) {
  Event event;
  MsgpackEncoder full = stored(8);
  full.array(1).unsigned_integer(9).unsigned_integer(8).array(1).array(2);
  full.unsigned_integer(1).unsigned_integer(2).unsigned_integer(1).unsigned_integer(5).text("CPU");
  full.map(1).text("cache_salt").text("salt");
  ASSERT_EQ(decode(full, event), Decoded::Event);
  EXPECT_TRUE(event.bigram);
  EXPECT_EQ(event.cache_salt, "salt");
  ASSERT_EQ(decode(MsgpackEncoder().array(2).text("BlockRemoved").array(0), event), Decoded::Event);
  EXPECT_THAT(event.hashes, IsEmpty());
  EXPECT_THAT(event.tokens, IsEmpty());
  EXPECT_EQ(event.parent, std::nullopt);
  EXPECT_EQ(event.lora_id, std::nullopt);
  EXPECT_EQ(event.medium, "");
  EXPECT_EQ(event.cache_salt, "");
  EXPECT_FALSE(event.bigram);
}

TEST(EventDecoder, TakesTheLastOfRepeatedNames) {
  MsgpackEncoder map;
  map.map(3).text("type").text("BlockRemoved");
  map.text("block_hashes").array(2).unsigned_integer(1).unsigned_integer(2);
  map.text("block_hashes").array(1).unsigned_integer(3);
  Event event;
  ASSERT_EQ(decode(map, event), Decoded::Event);
  EXPECT_THAT(event.hashes, ElementsAre(3U));
}

MsgpackEncoder removal(const MsgpackEncoder& hashes, std::string_view medium = "GPU") {
  MsgpackEncoder event;
  event.map(3).text("type").text("BlockRemoved").text("block_hashes").raw(hashes.encoded());
  return event.text("medium").text(medium);
}
MsgpackEncoder removal(std::uint64_t hash, std::string_view medium = "GPU") {
  return removal(MsgpackEncoder().array(1).unsigned_integer(hash), medium);
}

TEST(EventDecoder, ReadsRemovalsThatAreAlikeAsOne) {
  MsgpackEncoder events;
  for (const std::uint64_t hash : {1ULL, 1ULL << 60, 300ULL}) events.raw(removal(hash).encoded());
  events.raw(removal(4, "CPU").encoded()).raw(removal(5, "CPU").encoded());
  events.raw(removal(MsgpackEncoder().array(2).unsigned_integer(6).unsigned_integer(7)).encoded());
  events.raw(removal(8).encoded());
  events.raw(removal(MsgpackEncoder().array(1).bytes("12345678")).encoded());
  MsgpackReader reader(events.span());
  Event event;
  const auto next = [&](std::uint32_t most) {
    EXPECT_EQ(decode_events(reader, event, most), Decoded::Event);
    EXPECT_EQ(event.type, Event::Type::Removed);
    return event.events;
  };
  EXPECT_EQ(next(8), 3U);
  EXPECT_THAT(event.hashes, ElementsAre(1U, 1ULL << 60, 300U));
  EXPECT_EQ(event.medium, "GPU");
  EXPECT_EQ(next(1), 1U) << "no more than are left of the batch";
  EXPECT_THAT(event.hashes, ElementsAre(4U));
  EXPECT_EQ(event.medium, "CPU");
  EXPECT_EQ(next(8), 1U);
  EXPECT_THAT(event.hashes, ElementsAre(5U));
  EXPECT_EQ(next(8), 1U) << "two blocks are not one";
  EXPECT_THAT(event.hashes, ElementsAre(6U, 7U));
  EXPECT_EQ(next(8), 1U) << "the next is no number";
  EXPECT_THAT(event.hashes, ElementsAre(8U));
  EXPECT_EQ(next(8), 1U);
  EXPECT_TRUE(reader.at_end());
}

TEST(EventDecoder, BoundsWhatIsReadAsOne) {
  const MsgpackEncoder one = removal(1);
  std::string events;
  for (std::size_t i = 0; i < kMostHashes + 1; ++i) events += one.encoded();
  MsgpackReader reader(std::as_bytes(std::span(events)));
  Event event;
  ASSERT_EQ(decode_events(reader, event, 1'000'000), Decoded::Event);
  EXPECT_EQ(event.events, kMostHashes);
  EXPECT_EQ(event.hashes.size(), kMostHashes);
  ASSERT_EQ(decode_events(reader, event, 1'000'000), Decoded::Event);
  EXPECT_EQ(event.events, 1U);
  EXPECT_TRUE(reader.at_end());
}

TEST(EventDecoder, ReadsAlikeUpToWhatIsCutOff) {
  MsgpackEncoder events = removal(1);
  events.raw(removal(std::uint64_t{1} << 60).encoded());
  for (std::size_t left = events.encoded().size() - 1; left > removal(1).encoded().size(); --left) {
    MsgpackReader reader(events.span().first(left));
    Event event;
    ASSERT_EQ(decode_events(reader, event, 2), Decoded::Event);
    EXPECT_THAT(event.hashes, ElementsAre(1U));
    EXPECT_EQ(decode_events(reader, event, 1), Decoded::Broken);
  }
}

TEST(EventDecoder, RefusesWhatIsNoBatch) {
  const auto refuses = [](const MsgpackEncoder& encoder) {
    MsgpackReader reader(encoder.span());
    const auto opening = open_batch(reader);
    if (!opening) {
      EXPECT_EQ(opening.error().code(), Errc::EngineProtocol);
      return true;
    }
    return !close_batch(reader, *opening).has_value();
  };
  EXPECT_TRUE(refuses(MsgpackEncoder()));
  EXPECT_TRUE(refuses(MsgpackEncoder().nil()));
  EXPECT_TRUE(refuses(MsgpackEncoder().array(1).number(1.0)));
  EXPECT_TRUE(refuses(MsgpackEncoder().array(2).text("now").array(0)));
  EXPECT_TRUE(refuses(MsgpackEncoder().array(2).number(1.0).nil()));
  EXPECT_TRUE(refuses(MsgpackEncoder().array(3).number(1.0).array(0).text("0")));
  EXPECT_TRUE(refuses(MsgpackEncoder().array(3).number(1.0).array(0).signed_integer(-1)));
  EXPECT_TRUE(refuses(MsgpackEncoder().array(3).number(1.0).array(0).unsigned_integer(1ULL << 40)));
  EXPECT_TRUE(refuses(MsgpackEncoder().array(2).number(1.0).array(0).nil())) << "bytes behind it";
  EXPECT_FALSE(refuses(MsgpackEncoder().array(2).number(1.0).array(0)));
  EXPECT_FALSE(refuses(MsgpackEncoder().array(3).number(1.0).array(0).nil()));
  EXPECT_FALSE(refuses(MsgpackEncoder().array(5).number(1.0).array(0).nil().map(0).text("new")));
}

}  // namespace
}  // namespace baton::kvcache
