// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/kvcache/events/feed_fixture.h"
#include "unit/kvcache/events/vectors.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace baton::kvcache {
namespace {

using baton::test::MsgpackEncoder;
using test::counting;
using test::StoredEvent;

class ApplierMalformedTest : public test::FeedFixture {
 protected:
  // Exactly its bytes, so that a sanitizer sees a step beyond them.
  bool apply_exactly(std::string_view payload) {
    const std::vector<std::byte> bytes(
        reinterpret_cast<const std::byte*>(payload.data()),
        reinterpret_cast<const std::byte*>(payload.data()) + payload.size());
    const bool head = read_batch_head(bytes).has_value();
    const bool applied = feed().apply_batch(bytes).has_value();
    EXPECT_EQ(head, applied) << "both judge alike";
    return applied;
  }
};

// A batch without its end is refused wherever it ends.
TEST_F(ApplierMalformedTest, NoBatchIsTakenWithoutItsEnd) {
  for (const auto& vector : test::vectors()) {
    const std::string payload = test::from_hex(vector.hex);
    for (std::size_t size = 0; size < payload.size(); ++size) {
      feed().forget();
      EXPECT_FALSE(apply_exactly(payload.substr(0, size))) << vector.name << " cut at " << size;
    }
  }
}

// Nothing is applied of an event that is cut off, whatever stands in front of the cut.
TEST_F(ApplierMalformedTest, NoPartOfAnEventIsApplied) {
  const MsgpackEncoder event =
      StoredEvent{.hashes = {1, 2}, .tokens = counting(100, 8), .block_size = 4};
  MsgpackEncoder batch;
  batch.array(3).number(1.0).array(1).raw(event.encoded());
  const std::string whole = batch.encoded();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(apply_exactly(whole.substr(0, size)));
    EXPECT_EQ(blocks(), 0U) << "cut at " << size;
  }
  EXPECT_FALSE(apply_exactly(whole)) << "the rank is missing";
  EXPECT_EQ(blocks(), 2U) << "what came before the fault stays";
}

TEST_F(ApplierMalformedTest, ChangedBytesDoNoHarm) {
  std::minstd_rand random(7);  // NOLINT: the same numbers in every run
  for (const auto& vector : test::vectors()) {
    const std::string payload = test::from_hex(vector.hex);
    for (std::size_t at = 0; at < payload.size(); ++at) {
      for (const int bit : {0, 1, 2, 3, 4, 5, 6, 7}) {
        std::string changed = payload;
        changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
        feed().forget();
        apply_exactly(changed);
        EXPECT_LE(blocks(), 2U) << vector.name << ": no vector stores more";
      }
      std::string changed = payload;
      for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
      apply_exactly(changed);
    }
  }
}

TEST_F(ApplierMalformedTest, HugeLengthsAllocateNothing) {
  using namespace std::string_literals;
  const std::string opening = "\x93\xcb\x41\xda\x26\xcb\x30\x10\x00\x00"s;
  const std::string stored = "\x91\x95\xab"s + "BlockStored";
  for (const std::string& length :
       {"\xdd\xff\xff\xff\xff"s, "\xdd\x7f\xff\xff\xff"s, "\xdd\x00\x10\x00\x00"s, "\xdc\xff\xff"s,
        "\xdf\xff\xff\xff\xff"s, "\xdb\xff\xff\xff\xff"s, "\xc6\xff\xff\xff\xff"s,
        "\xc9\xff\xff\xff\xff\x01"s}) {
    EXPECT_FALSE(apply_exactly(length));
    EXPECT_FALSE(apply_exactly("\x93"s + length));
    EXPECT_FALSE(apply_exactly(opening + length));
    EXPECT_FALSE(apply_exactly(opening + stored + length));
    EXPECT_FALSE(apply_exactly(opening + stored + "\x90\xc0" + length));
    EXPECT_FALSE(apply_exactly(opening + stored + "\x91" + length));
  }
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(ApplierMalformedTest, TooLargeEventsAreLeftOutAlone) {
  MsgpackEncoder large;
  large.array(2).text("BlockRemoved").array(70'000);
  for (int i = 0; i < 70'000; ++i) large.unsigned_integer(1);
  EXPECT_TRUE(apply({StoredEvent{.hashes = {1}, .tokens = {1}, .block_size = 1}, large}));
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(skipped(Skipped::TooLarge), 1U);
}

TEST_F(ApplierMalformedTest, NoiseIsNoBatch) {
  std::minstd_rand random(11);  // NOLINT: the same numbers in every run
  for (int round = 0; round < 20'000; ++round) {
    std::string noise(random() % 60, '\0');
    for (char& c : noise) c = static_cast<char>(random() >> 8U);
    if (round % 2 == 0)
      noise.insert(0,
                   "\x92\x01\x91\x95\xab"
                   "BlockStored");
    apply_exactly(noise);
  }
  EXPECT_EQ(feed().tally().batches, 20'000U);
}

}  // namespace
}  // namespace baton::kvcache
