// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/members.h"

#include "unit/fleet/fleet_fixture.h"

namespace baton::fleet {
namespace {

TEST(Members, AreFoundByTheirKey) {
  auto one = make_worker(1, worker(1, model::Role::Decode));
  model::WorkerSpec spec = worker(2, model::Role::Decode);
  spec.data_parallel_size = 2;
  auto two = make_worker(2, std::move(spec));
  const Members members({one, two});
  ASSERT_EQ(members.candidates.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::size_t guess : {0UZ, 1UZ, 2UZ, 3UZ})
      EXPECT_EQ(members.find(members.candidates[i].key, guess), i);
  }
  EXPECT_EQ(members.find(scheduling::RankKey{two->id(), 2}), std::nullopt);
  EXPECT_EQ(Members().find(scheduling::RankKey{two->id(), 0}), std::nullopt);
}

}  // namespace
}  // namespace baton::fleet
