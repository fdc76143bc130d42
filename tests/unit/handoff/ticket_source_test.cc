// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/ticket_source.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace baton::handoff {
namespace {

constexpr std::uint64_t kSmallest = std::uint64_t{1} << 40;
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

TEST(TicketSource, DrawsPositiveIdsOfTheSizeEnginesTake) {
  for (const std::uint64_t millis :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1'780'000'000'000},
        std::numeric_limits<std::uint64_t>::max()}) {
    for (const std::uint64_t salt : {std::uint64_t{0}, std::uint64_t{1023}, ~std::uint64_t{0}}) {
      TicketSource source(millis, salt);
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t id = source.next_disagg_request_id();
        EXPECT_GE(id, kSmallest) << millis << " " << salt;
        EXPECT_LE(id, kLargest) << millis << " " << salt;
      }
    }
  }
}

TEST(TicketSource, NeverDrawsAnIdTwice) {
  TicketSource source(1'780'000'000'000, 5);
  std::mutex mutex;
  std::set<std::uint64_t> seen;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        std::vector<std::uint64_t> mine;
        for (int i = 0; i < 5000; ++i) mine.push_back(source.next_disagg_request_id());
        const std::lock_guard lock(mutex);
        seen.insert(mine.begin(), mine.end());
      });
    }
  }
  EXPECT_EQ(seen.size(), 20'000U);
}

TEST(TicketSource, KeepsRoutersAndRestartsApart) {
  const std::uint64_t now = 1'780'000'000'000;
  std::set<std::uint64_t> firsts;
  for (const std::uint64_t millis : {now, now + 1}) {
    for (const std::uint64_t salt : {0U, 1U, 2U, 1023U}) {
      firsts.insert(TicketSource(millis, salt).next_disagg_request_id());
    }
  }
  EXPECT_EQ(firsts.size(), 8U);
}

TEST(TicketSource, MakesARoomOfAnyBitsWhereNoRankIsKnown) {
  for (const std::uint32_t ranks : {0U, 1U, 8U}) {
    EXPECT_EQ(TicketSource::room_for(0, std::nullopt, ranks), 1U) << "room 0 is the engines' own";
    EXPECT_EQ(TicketSource::room_for(std::uint64_t{1} << 63, std::nullopt, ranks), 1U);
    EXPECT_EQ(TicketSource::room_for(42, std::nullopt, ranks), 42U);
    EXPECT_EQ(TicketSource::room_for(~std::uint64_t{0}, std::nullopt, ranks), kLargest);
  }
}

// prefill-router.md §2.5.
TEST(TicketSource, DrawsTheRoomsOfTheReferenceVectors) {
  EXPECT_EQ(TicketSource::room_for(12'345, 3, 8), 98'763U);
  EXPECT_EQ(TicketSource::room_for(kLargest, 47, 48), 1'535U);
  EXPECT_EQ(TicketSource::room_for(kLargest, 5, 7), 5U);
}

// prefill-router.md §2.5: whatever is drawn, the room leads to the rank.
TEST(TicketSource, DrawsRoomsThatAreCongruentToTheirRank) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 62;
  std::vector<std::uint64_t> draws{0, 1, kHalf - 1, kHalf, kHalf + 1, kLargest, ~std::uint64_t{0}};
  std::mt19937_64 random(7);  // NOLINT: the same draws in every run
  for (int i = 0; i < 20; ++i) draws.push_back(random());
  for (std::uint32_t ranks = 1; ranks <= 256; ++ranks) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (const std::uint64_t draw : draws) {
        const std::uint64_t room = TicketSource::room_for(draw, rank, ranks);
        ASSERT_EQ(room % ranks, rank) << ranks << " ranks, draw " << draw;
        ASSERT_GE(room, 1U) << rank << " of " << ranks << ", draw " << draw;
        ASSERT_LE(room, kLargest) << rank << " of " << ranks << ", draw " << draw;
      }
    }
  }
}

}  // namespace
}  // namespace baton::handoff
