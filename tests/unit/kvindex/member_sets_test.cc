// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/member_sets.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace baton::kvindex {
namespace {

TEST(MemberSets, HoldMembersInOrderWithTheirScore) {
  PageArena arena;
  MemberSets sets(arena);
  SetRef ref = 0;
  std::map<std::uint32_t, Member> model;
  std::mt19937 chance(4);
  for (const std::size_t most : {1U, 2U, 40U, 5000U, 700U, 3U, 0U}) {
    const auto check = [&] {
      const auto view = sets.view(ref);
      ASSERT_EQ(view.members.size(), model.size());
      std::uint32_t score = 0;
      auto wanted = model.begin();
      for (const Member member : view.members) {
        ASSERT_EQ(member, (wanted++)->second);
        score += weight_of(member);
      }
      ASSERT_EQ(view.score, score);
      ASSERT_EQ(sets.score(ref), score);
    };
    while (model.size() != most) {
      const std::uint32_t slot = chance() % 20'000;
      const Member member = make_member(slot, 1 + chance() % 15, chance() % 5);
      if (model.size() < most) {
        if (model.contains(slot)) {
          sets.replace(ref, member);
        } else {
          ASSERT_TRUE(sets.add(ref, member));
        }
        model[slot] = member;
      } else {
        const std::uint32_t last =
            std::next(model.begin(), static_cast<std::ptrdiff_t>(chance() % model.size()))->first;
        ASSERT_EQ(sets.find(ref, last), model.at(last));
        sets.remove(ref, last);
        ASSERT_EQ(sets.find(ref, last), 0U);
        model.erase(last);
      }
      if (model.size() % 50 == 0) check();
    }
    check();
  }
  EXPECT_EQ(ref, 0U);
  EXPECT_EQ(sets.bytes(), 0U);
}

TEST(MemberSets, AMemberReachesAsFarAsItMust) {
  EXPECT_EQ(reach_of(make_member(7, 0b0001, 0)), 0U);
  EXPECT_EQ(reach_of(make_member(7, 0b1100, 0)), 2U);
  EXPECT_EQ(reach_of(make_member(7, 0b0001, 3)), 3U);
  EXPECT_EQ(weight_of(make_member(7, 0b1111, kNoReach)), 0U);
  EXPECT_EQ(slot_of(make_member(kMostSlots - 1, 15, 4)), kMostSlots - 1);
}

}  // namespace
}  // namespace baton::kvindex
