// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The bytes of a saved index: what an older program wrote must be readable, and whatever else a file
// holds must do no harm. The writer here knows nothing of the one under test.
#define XXH_INLINE_ALL
#include "kvcache/index/snapshot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>
#include <xxhash.h>

namespace baton::kvcache {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;  // as a parent

std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xFF);
  return text;
}

std::string with_sum(std::string bytes) {
  const std::uint64_t sum = XXH3_64bits(bytes.data(), bytes.size());
  return bytes + little_endian(sum, 8);
}

std::string header(std::uint32_t holders, std::uint32_t version = 1) {
  return "batonkvi" + little_endian(version, 4) + little_endian(holders, 4);
}

struct HolderBytes {
  std::string worker = "w";
  std::uint32_t rank = 0;
  std::uint64_t sequence = 0;
  std::uint64_t payload = 0;
  std::uint32_t block_size = 16;
  std::uint8_t bigram = 0;

  std::string with_blocks(std::uint32_t count) const {
    return little_endian(worker.size(), 4) + worker + little_endian(rank, 4) +
           little_endian(sequence, 8) + little_endian(payload, 8) + little_endian(block_size, 4) +
           little_endian(bigram, 1) + little_endian(count, 4);
  }
};

std::string block_bytes(std::uint64_t engine, std::uint64_t sequence, std::uint32_t parent,
                        std::uint8_t flags) {
  return little_endian(engine, 8) + little_endian(sequence, 8) + little_endian(parent, 4) +
         little_endian(flags, 1);
}

std::string refusal(std::string_view bytes) {
  const auto decoded = decode_snapshot(bytes);
  return decoded ? "nothing" : decoded.error().message();
}

#define EXPECT_REFUSED(bytes, why) \
  EXPECT_EQ(refusal(bytes),        \
            "the saved index cannot be used: " why "; delete the file to start without it")

TEST(SnapshotBytes, AreThoseOfVersionOne) {
  const std::vector<HolderSnapshot> holders{
      {.worker = "http://h:1",
       .rank = 3,
       .position = {.sequence = 0x0102030405060708, .payload_hash = 9},
       .shape = {.size = 32, .bigram = true},
       .blocks = {{.engine = 7, .sequence = 70, .parent = {}, .first = true, .tiers = 1},
                  {.engine = 8, .sequence = 80, .parent = 7, .first = false, .tiers = 10},
                  {.engine = 9, .sequence = 90, .parent = {}, .first = false, .tiers = 15}}},
      {.worker = "", .rank = 0, .position = {}, .shape = {.size = 1}, .blocks = {}}};
  const std::string bytes = with_sum(
      header(2) + HolderBytes{"http://h:1", 3, 0x0102030405060708, 9, 32, 1}.with_blocks(3) +
      block_bytes(7, 70, kNone, 0x10 | 1) + block_bytes(8, 80, 0, 10) +
      block_bytes(9, 90, kNone, 15) + HolderBytes{"", 0, 0, 0, 1, 0}.with_blocks(0));
  EXPECT_EQ(encode_snapshot(holders), bytes);
  const auto decoded = decode_snapshot(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(*decoded, holders);
}

TEST(SnapshotBytes, OfNobodyAreAHeaderAndASum) {
  EXPECT_EQ(encode_snapshot({}), with_sum(header(0)));
  EXPECT_EQ(encode_snapshot({}).size(), 24U);
}

TEST(SnapshotBytes, CutAnywhereAreRefused) {
  const std::string whole = with_sum(header(1) + HolderBytes{}.with_blocks(2) +
                                     block_bytes(1, 1, kNone, 0x11) + block_bytes(2, 2, 0, 1));
  ASSERT_TRUE(decode_snapshot(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string reason = refusal(std::string_view(whole).substr(0, size));
    const std::string_view expected = size < 8    ? "it is no saved index"
                                      : size < 24 ? "it is cut off"
                                                  : "its checksum is wrong";
    EXPECT_EQ(reason,
              fmt::format("the saved index cannot be used: {}; delete the file to start without it",
                          expected))
        << size;
  }
}

TEST(SnapshotBytes, EveryFlippedBitIsNoticed) {
  const std::string whole =
      with_sum(header(1) + HolderBytes{}.with_blocks(1) + block_bytes(1, 1, kNone, 0x11));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string wrong = whole;
    wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(decode_snapshot(wrong)) << bit;
  }
}

TEST(SnapshotBytes, BehindTheEndAreRefused) {
  EXPECT_REFUSED(with_sum(header(0) + "x"), "something follows its end");
  EXPECT_REFUSED(with_sum(header(1) + HolderBytes{}.with_blocks(0) + std::string(50, '\0')),
                 "something follows its end");
  EXPECT_REFUSED(with_sum(header(0)) + "x", "its checksum is wrong");
}

TEST(SnapshotBytes, OfAnotherVersionAreNamed) {
  EXPECT_REFUSED(with_sum(header(0, 2)), "it has version 2 and this program reads 1");
  EXPECT_REFUSED(with_sum(header(0, 0)), "it has version 0 and this program reads 1");
}

// Counts that the bytes cannot hold must not become room in memory.
TEST(SnapshotBytes, CountsBeyondTheBytesAreRefused) {
  EXPECT_REFUSED(with_sum(header(1)), "it counts more holders than it has");
  EXPECT_REFUSED(with_sum(header(0xFFFFFFFF) + HolderBytes{}.with_blocks(0)),
                 "it counts more holders than it has");
  EXPECT_REFUSED(with_sum(header(1) + HolderBytes{}.with_blocks(0xFFFFFFFF)),
                 "it counts more blocks than it has");
  EXPECT_REFUSED(
      with_sum(header(1) + HolderBytes{}.with_blocks(2) + block_bytes(1, 1, kNone, 0x11)),
      "it counts more blocks than it has");
  std::string long_name = HolderBytes{}.with_blocks(0);
  long_name.replace(0, 4, little_endian(0xFFFFFFFF, 4));
  EXPECT_REFUSED(with_sum(header(1) + long_name), "a holder is cut off");
}

TEST(SnapshotBytes, HoldersHaveAShape) {
  EXPECT_REFUSED(with_sum(header(1) + HolderBytes{.block_size = 0}.with_blocks(0)),
                 "a holder's blocks have no shape");
  EXPECT_REFUSED(with_sum(header(1) + HolderBytes{.bigram = 2}.with_blocks(0)),
                 "a holder's blocks have no shape");
  EXPECT_TRUE(decode_snapshot(with_sum(header(1) + HolderBytes{.bigram = 1}.with_blocks(0))));
}

TEST(SnapshotBytes, BlocksAreInATierAndNothingElse) {
  const auto one_block = [](std::uint8_t flags) {
    return with_sum(header(1) + HolderBytes{}.with_blocks(1) + block_bytes(1, 1, kNone, flags));
  };
  for (unsigned flags = 0; flags < 256; ++flags) {
    const bool sound = (flags & 15U) != 0 && flags < 32;
    EXPECT_EQ(decode_snapshot(one_block(static_cast<std::uint8_t>(flags))).has_value(), sound)
        << flags;
  }
  EXPECT_REFUSED(one_block(0x10), "a block is in no tier");
}

TEST(SnapshotBytes, ParentsComeFirst) {
  const auto with_parents = [](std::uint32_t first, std::uint32_t second, std::uint8_t flags = 1) {
    return with_sum(header(1) + HolderBytes{}.with_blocks(2) + block_bytes(1, 1, first, 1) +
                    block_bytes(2, 2, second, flags));
  };
  EXPECT_TRUE(decode_snapshot(with_parents(kNone, 0)));
  EXPECT_TRUE(decode_snapshot(with_parents(kNone, kNone)));
  EXPECT_REFUSED(with_parents(0, kNone), "a block comes before its parent");
  EXPECT_REFUSED(with_parents(kNone, 1), "a block comes before its parent");
  EXPECT_REFUSED(with_parents(kNone, 0xFFFFFFFE), "a block comes before its parent");
  // A first block follows nothing.
  EXPECT_REFUSED(with_parents(kNone, 0, 0x11), "a block comes before its parent");
}

// A block that another of the same name follows: the name means the first of them.
TEST(SnapshotBytes, ANameThatStandsTwiceDoesNoHarm) {
  const std::string bytes =
      with_sum(header(1) + HolderBytes{}.with_blocks(3) + block_bytes(1, 10, kNone, 0x11) +
               block_bytes(1, 20, kNone, 0x11) + block_bytes(2, 30, 1, 1));
  const auto decoded = decode_snapshot(bytes);
  ASSERT_TRUE(decoded);
  Index index({});
  const Slot slot = index.join({.worker = {1}, .rank = 0});
  const Applied applied = restore_blocks(index, slot, decoded->at(0).blocks);
  EXPECT_EQ(applied.done + applied.known + applied.unknown_parent, 3U);
  index.leave(slot);
  EXPECT_EQ(index.size().blocks, 0U);
}

// Garbled fields under a right sum: either refused with a reason, or good enough to be restored into
// an index that stays consistent.
TEST(SnapshotBytes, GarbledFieldsAreRefusedOrHarmless) {
  std::string body = header(2) + HolderBytes{}.with_blocks(20);
  for (std::uint32_t i = 0; i < 20; ++i) {
    body += block_bytes(i + 1, next_sequence(1, i), i == 0 ? kNone : i - 1, i == 0 ? 0x11 : 1);
  }
  body += HolderBytes{.worker = "other", .rank = 1}.with_blocks(1);
  body += block_bytes(5, 5, kNone, 0x12);
  std::mt19937 random(29);
  int accepted = 0;
  for (int round = 0; round < 800; ++round) {
    std::string wrong = body;
    for (std::uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      wrong[12 + random() % (wrong.size() - 12)] =
          static_cast<char>(random() % 2 == 0 ? random() % 256 : random() % 20);
    }
    const auto decoded = decode_snapshot(with_sum(wrong));
    if (!decoded) {
      EXPECT_TRUE(decoded.error().message().starts_with("the saved index cannot be used: "));
      continue;
    }
    ++accepted;
    Index index({.blocks = 30});
    for (const HolderSnapshot& holder : *decoded) {
      const Slot slot = index.join({.worker = {1}, .rank = holder.rank});
      const Applied applied = restore_blocks(index, slot, holder.blocks);
      EXPECT_EQ(applied.done + applied.known + applied.unknown_parent + applied.no_room,
                holder.blocks.size());
      EXPECT_LE(list_blocks(index.list(slot)).size(), holder.blocks.size());
      index.leave(slot);
    }
    EXPECT_EQ(index.size().blocks, 0U);
    EXPECT_EQ(index.size().memberships, 0U);
  }
  EXPECT_GT(accepted, 50);  // else the test would say nothing of restoring
}

TEST(SnapshotBytes, AWorkersNameIsAnyBytes) {
  const std::string name("a\0\xff\n", 4);
  const std::vector<HolderSnapshot> holders{
      {.worker = name, .rank = 0xFFFFFFFF, .position = {}, .shape = {.size = 1}, .blocks = {}}};
  const auto decoded = decode_snapshot(encode_snapshot(holders));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->at(0).worker, name);
  EXPECT_EQ(decoded->at(0).rank, 0xFFFFFFFF);
}

}  // namespace
}  // namespace baton::kvcache
