// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/coalescing_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace baton::scheduling {
namespace {

using End = CoalescingTable::End;

// A prompt of the beginning that `family` names and then, from `fork` on, its own blocks.
std::vector<std::uint64_t> prompt(std::uint64_t family, std::size_t fork, std::uint64_t own,
                                  std::size_t blocks = 20) {
  std::vector<std::uint64_t> made;
  for (std::size_t i = 0; i < blocks; ++i)
    made.push_back((family << 32) + (i < fork ? 0 : own << 16) + i);
  return made;
}

Chain chain(const std::vector<std::uint64_t>& hashes, std::size_t cached = 0) {
  return {.hashes = hashes, .cached = cached, .block_tokens = 16};
}

TEST(CoalescingTable, OneLeadsAndTheRestFindIt) {
  CoalescingTable table(100);  // seven blocks
  const Leader leader = *table.lead(chain(prompt(1, 10, 1)));
  EXPECT_EQ(table.find(chain(prompt(1, 10, 1))), leader);
  EXPECT_EQ(table.find(chain(prompt(1, 7, 2))), leader);
  EXPECT_EQ(table.find(chain(prompt(1, 6, 3))), std::nullopt);
  EXPECT_EQ(table.find(chain(prompt(2, 10, 1))), std::nullopt);
  EXPECT_EQ(table.lead(chain(prompt(1, 10, 1))).error(), leader);
  table.finish(leader, End::Succeeded);
  EXPECT_EQ(table.find(chain(prompt(1, 10, 1))), std::nullopt);
  EXPECT_NE(*table.lead(chain(prompt(1, 10, 1))), leader);
}

TEST(CoalescingTable, WhatIsCachedIsNotWaitedFor) {
  CoalescingTable table(100);
  const Leader leader = *table.lead(chain(prompt(1, 10, 1)));
  // Of the ten that they have in common it needs three.
  EXPECT_EQ(table.find(chain(prompt(1, 10, 2), 7)), std::nullopt);
  // A part of what the leader computes has come into the cache since; of the rest there is enough.
  EXPECT_EQ(table.find(chain(prompt(1, 10, 1), 5)), leader);
  // Six blocks are left: too few for anybody to wait for.
  EXPECT_EQ(table.find(chain(prompt(1, 10, 1), 14)), std::nullopt);
  EXPECT_EQ(*table.lead(chain(prompt(1, 10, 1), 14)), 0U);
}

TEST(CoalescingTable, ShortPromptsAreNotRemembered) {
  CoalescingTable table(100);
  EXPECT_EQ(*table.lead(chain(prompt(1, 6, 1, 6))), 0U);
  EXPECT_EQ(table.blocks(), 0U);
  CoalescingTable off(0);
  EXPECT_EQ(*off.lead(chain(prompt(1, 20, 1))), 0U);
  EXPECT_EQ(off.blocks(), 0U);
}

TEST(CoalescingTable, WhoFollowsHearsWhetherItsLeaderSucceeded) {
  CoalescingTable table(100);
  const Leader good = *table.lead(chain(prompt(1, 20, 1)));
  const Leader bad = *table.lead(chain(prompt(2, 20, 1)));
  EXPECT_FALSE(table.followed(good));
  const auto of_good = table.follow(good);
  EXPECT_EQ(table.follow(good), of_good);
  const auto of_bad = table.follow(bad);
  EXPECT_NE(of_bad->first, of_good->first);
  EXPECT_TRUE(table.followed(good));
  EXPECT_FALSE(of_good->succeeded);
  table.finish(good, End::Succeeded);
  table.finish(bad, End::Failed);
  EXPECT_TRUE(of_good->succeeded);
  EXPECT_FALSE(of_bad->succeeded);
  EXPECT_FALSE(table.followed(good));
  // One of those who followed leads the others, who need not hear of it.
  const Leader next = *table.lead(chain(prompt(2, 20, 1)), of_bad);
  EXPECT_TRUE(table.followed(next));
  EXPECT_EQ(table.follow(next), of_bad);
  table.finish(next, End::Succeeded);
  EXPECT_TRUE(of_bad->succeeded);
}

// Of two who go ahead with what is their own, neither takes away those who wait for a third.
TEST(CoalescingTable, OnlyThoseWhoseLeaderHasFailedAreLedByAnother) {
  CoalescingTable table(100);
  const Leader leader = *table.lead(chain(prompt(1, 10, 1)));
  const auto group = table.follow(leader);
  // The ten in common are in a cache by now.
  const Leader other = *table.lead(chain(prompt(1, 10, 2), 10), group);
  EXPECT_NE(table.follow(other), group);
  table.finish(other, End::Succeeded);
  EXPECT_FALSE(group->succeeded);

  table.finish(leader, End::Failed);
  const Leader next = *table.lead(chain(prompt(1, 10, 3), 10), group);
  EXPECT_EQ(table.follow(next), group);
  const Leader beside = *table.lead(chain(prompt(1, 10, 4), 10), group);
  EXPECT_NE(table.follow(beside), group);
  table.finish(beside, End::Succeeded);
  EXPECT_FALSE(group->succeeded);
  table.finish(next, End::Succeeded);
  EXPECT_TRUE(group->succeeded);
}

TEST(CoalescingTable, RemembersABoundedNumberOfBlocks) {
  CoalescingTable table(16);
  std::vector<Leader> leaders;
  for (std::uint64_t i = 1; i <= 1100; ++i)
    leaders.push_back(*table.lead(chain(prompt(i, 2000, 1, 2000))));
  EXPECT_EQ(table.blocks(), CoalescingTable::kMost);
  table.finish(leaders[0], End::Succeeded);
  EXPECT_EQ(table.blocks(), CoalescingTable::kMost - CoalescingTable::kMostOfOne);
  for (const Leader leader : leaders) table.finish(leader, End::Failed);
  EXPECT_EQ(table.blocks(), 0U);
}

// Whatever comes and goes: who is found leads, and what he computes is what is asked for.
TEST(CoalescingTable, FindsWhoLeadsAndNobodyElse) {
  std::mt19937_64 random(2);
  CoalescingTable table(64);
  std::map<Leader, std::vector<std::uint64_t>> leading;
  for (int step = 0; step < 50'000; ++step) {
    if (random() % 10 < 6 || leading.empty()) {
      const auto hashes = prompt(1 + random() % 5, random() % 20, 1 + random() % 5);
      const Chain wanted = chain(hashes, random() % 4);
      const auto found = table.find(wanted);
      const auto led = table.lead(wanted);
      ASSERT_EQ(led.has_value(), !found);
      if (led) {
        leading[*led] = hashes;
        ASSERT_EQ(table.find(wanted), *led);
        continue;
      }
      ASSERT_EQ(led.error(), *found);
      ASSERT_TRUE(leading.contains(*found));
      const std::size_t decisive = wanted.cached + 3;  // 64 tokens are four blocks
      ASSERT_EQ(leading[*found][decisive], hashes[decisive]);
    } else {
      const auto ended =
          std::next(leading.begin(), static_cast<std::ptrdiff_t>(random() % leading.size()));
      table.finish(ended->first, random() % 2 == 0 ? End::Succeeded : End::Failed);
      leading.erase(ended);
    }
  }
  while (!leading.empty()) {
    table.finish(leading.begin()->first, End::Failed);
    leading.erase(leading.begin());
  }
  EXPECT_EQ(table.blocks(), 0U);
}

}  // namespace
}  // namespace baton::scheduling
