// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "admission/follow_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace baton::admission {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Standing = FollowTable::Standing;
using End = FollowTable::End;

// A prompt of the beginning that `family` names and then, from `fork` on, its own blocks.
Chain chain(std::uint64_t family, std::size_t fork, std::uint64_t own, std::size_t blocks = 20,
            std::size_t cached = 0) {
  Chain made;
  for (std::size_t i = 0; i < blocks; ++i)
    made.hashes.push_back((family << 32) + (i < fork ? 0 : own << 16) + i);
  made.cached = cached;
  made.block_tokens = 16;
  return made;
}

TEST(FollowTable, OneLeadsAndTheRestFollow) {
  FollowTable table(100);  // seven blocks
  const Member leader = table.join(chain(1, 10, 1));
  const Member same = table.join(chain(1, 10, 1));
  const Member enough = table.join(chain(1, 7, 2));
  const Member too_little = table.join(chain(1, 6, 3));
  const Member another = table.join(chain(2, 10, 1));
  EXPECT_EQ(table.standing(leader), Standing::Leads);
  EXPECT_EQ(table.standing(same), Standing::Follows);
  EXPECT_EQ(table.standing(enough), Standing::Follows);
  EXPECT_EQ(table.standing(too_little), Standing::Leads);
  EXPECT_EQ(table.standing(another), Standing::Leads);
  EXPECT_THAT(table.finish(leader, End::Succeeded).free, ElementsAre(same, enough));
  EXPECT_EQ(table.standing(same), Standing::Free);
}

TEST(FollowTable, WhatIsCachedIsNotWaitedFor) {
  FollowTable table(100);
  const Member leader = table.join(chain(1, 10, 1));
  // Of the ten that they have in common it needs three.
  EXPECT_EQ(table.standing(table.join(chain(1, 10, 2, 20, 7))), Standing::Leads);
  // A part of what the leader computes has come into the cache since; of the rest there is enough.
  EXPECT_EQ(table.standing(table.join(chain(1, 10, 1, 20, 5))), Standing::Follows);
  EXPECT_EQ(table.standing(table.join(chain(1, 10, 1, 20, 14))),
            Standing::Free);  // six blocks are left: too few for anybody to wait for
  table.finish(leader, End::Succeeded);
}

TEST(FollowTable, ShortPromptsAreNotRemembered) {
  FollowTable table(100);
  EXPECT_EQ(table.join(chain(1, 6, 1, 6)), 0U);
  EXPECT_EQ(table.blocks(), 0U);
  FollowTable off(0);
  EXPECT_EQ(off.join(chain(1, 20, 1)), 0U);
  EXPECT_EQ(off.blocks(), 0U);
}

TEST(FollowTable, TheFirstFollowerOfOneThatFailedLeadsTheOthers) {
  FollowTable table(100);
  const Member leader = table.join(chain(1, 20, 1));
  const Member first = table.join(chain(1, 12, 2));
  const Member second = table.join(chain(1, 10, 3));
  const Member third = table.join(chain(1, 20, 1));
  const auto moves = table.finish(leader, End::Failed);
  EXPECT_THAT(moves.free, IsEmpty());
  EXPECT_THAT(moves.promoted, ElementsAre(first));
  EXPECT_EQ(table.standing(second), Standing::Follows);
  EXPECT_EQ(table.standing(third), Standing::Follows);
  EXPECT_THAT(table.finish(first, End::Succeeded).free, ElementsAre(second, third));
}

TEST(FollowTable, WhoHasLeftIsNotPromoted) {
  FollowTable table(100);
  const Member leader = table.join(chain(1, 20, 1));
  const Member first = table.join(chain(1, 20, 1));
  const Member second = table.join(chain(1, 20, 1));
  table.leave(first);
  EXPECT_THAT(table.finish(leader, End::Failed).promoted, ElementsAre(second));
  EXPECT_THAT(table.finish(first, End::Failed).promoted, IsEmpty());
}

TEST(FollowTable, RemembersABoundedNumberOfBlocks) {
  FollowTable table(16);
  std::vector<Member> leaders;
  for (std::uint64_t i = 1; i <= 1100; ++i) leaders.push_back(table.lead(chain(i, 2000, 1, 2000)));
  EXPECT_EQ(table.blocks(), FollowTable::kMost);
  table.finish(leaders[0], End::Succeeded);
  EXPECT_EQ(table.blocks(), FollowTable::kMost - FollowTable::kMostOfOne);
  for (const Member leader : leaders) table.finish(leader, End::Failed);
  EXPECT_EQ(table.blocks(), 0U);
}

TEST(FollowTable, EverybodyGoesOnInTheEnd) {
  std::mt19937_64 random(2);
  FollowTable table(64);
  std::set<Member> leading;
  std::set<Member> following;
  const auto end = [&](Member leader, End how) {
    leading.erase(leader);
    const auto moves = table.finish(leader, how);
    for (const Member member : moves.free) EXPECT_EQ(following.erase(member), 1U);
    for (const Member member : moves.promoted) {
      EXPECT_EQ(following.erase(member), 1U);
      leading.insert(member);
    }
  };
  for (int step = 0; step < 50'000; ++step) {
    const auto what = random() % 10;
    if (what < 5) {
      const Member member =
          table.join(chain(1 + random() % 5, random() % 20, 1 + random() % 5, 20, random() % 4));
      (table.standing(member) == Standing::Leads ? leading : following).insert(member);
    } else if (what < 8 && !leading.empty()) {
      end(*std::next(leading.begin(), static_cast<std::ptrdiff_t>(random() % leading.size())),
          random() % 2 == 0 ? End::Succeeded : End::Failed);
    } else if (!following.empty()) {
      const Member gone = *following.begin();
      table.leave(gone);
      following.erase(gone);
    }
    ASSERT_EQ(table.following(), following.size());
    for (const Member member : leading) ASSERT_EQ(table.standing(member), Standing::Leads);
  }
  while (!leading.empty()) end(*leading.begin(), End::Failed);
  EXPECT_THAT(following, IsEmpty());
  EXPECT_EQ(table.blocks(), 0U);
}

}  // namespace
}  // namespace baton::admission
