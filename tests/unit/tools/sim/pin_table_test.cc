// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/pin_table.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart{};

TEST(PinTable, HoldsBlocksUntilTheyAreReleased) {
  PinTable pins;
  pins.pin("a", {1, 2, 3}, 40, kStart + 1s);
  EXPECT_EQ(pins.pinned_blocks(), 3U);
  EXPECT_EQ(pins.release("a"), (std::vector<BlockId>{1, 2, 3}));
  EXPECT_EQ(pins.pinned_blocks(), 0U);
  EXPECT_TRUE(pins.release("a").empty());
}

TEST(PinTable, IsFetchedOnlyOnce) {
  PinTable pins;
  pins.pin("a", {1}, 4, kStart + 1s);
  const auto first = pins.fetch("a", kStart, 1s);
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)->tokens, 4U);
  EXPECT_FALSE(pins.fetch("a", kStart, 1s));
}

TEST(PinTable, RefusesUnknownKeysAndExpiredLeases) {
  PinTable pins;
  pins.pin("a", {1}, 4, kStart + 1s);
  EXPECT_FALSE(pins.fetch("b", kStart, 1s));
  EXPECT_FALSE(pins.fetch("a", kStart + 1s, 1s));
}

TEST(PinTable, ExpiryGivesTheBlocksBackOnce) {
  PinTable pins;
  pins.pin("a", {1, 2}, 8, kStart + 1s);
  pins.pin("b", {3}, 4, kStart + 2s);
  EXPECT_TRUE(pins.expire(kStart + 999ms).empty());
  const auto expired = pins.expire(kStart + 1s);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].key, "a");
  EXPECT_EQ(expired[0].blocks, (std::vector<BlockId>{1, 2}));
  EXPECT_FALSE(expired[0].fetched);
  EXPECT_EQ(pins.pinned_blocks(), 1U);
  EXPECT_TRUE(pins.expire(kStart + 1s).empty());
}

TEST(PinTable, FetchingStartsTheLeaseAnew) {
  PinTable pins;
  pins.pin("a", {1}, 4, kStart + 1s);
  ASSERT_TRUE(pins.fetch("a", kStart + 900ms, 1s));
  EXPECT_TRUE(pins.expire(kStart + 1500ms).empty());
  const auto expired = pins.expire(kStart + 1900ms);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_TRUE(expired[0].fetched);
}

TEST(PinTable, WhatAPeerHadBegunToFetchIsToldApartThoughAnotherMightHaveFetchedIt) {
  PinTable pins;
  pins.pin("a", {1}, 4, kStart + 1s);
  pins.give_up("a", (*pins.fetch("a", kStart, 1s))->transfer, true);
  const auto expired = pins.expire(kStart + 1s);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_TRUE(expired[0].fetched);
}

TEST(PinTable, AGivenUpTransferIsNoLongerUnderWayAndMayBeRepeated) {
  PinTable pins;
  pins.pin("a", {1}, 4, kStart + 1s);
  EXPECT_EQ(pins.transfer_of("a"), 0U);
  const std::uint64_t first = (*pins.fetch("a", kStart, 1s))->transfer;
  EXPECT_EQ(pins.transfer_of("a"), first);
  pins.give_up("a", first, false);
  EXPECT_EQ(pins.transfer_of("a"), 0U);
  EXPECT_FALSE(pins.fetch("a", kStart, 1s));

  pins.pin("b", {2}, 4, kStart + 1s);
  const std::uint64_t second = (*pins.fetch("b", kStart, 1s))->transfer;
  pins.give_up("b", second, true);
  const auto third = pins.fetch("b", kStart, 1s);
  ASSERT_TRUE(third);
  // A late peer cannot give up another's transfer.
  pins.give_up("b", second, true);
  EXPECT_EQ(pins.transfer_of("b"), (*third)->transfer);
}

}  // namespace
}  // namespace baton::sim
