// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/popularity.h"

#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kHot = 7;

// Prompts that begin with `kHot`, from the start on.
Time stream(Popularity& popularity, milliseconds apart, seconds length) {
  Time now{};
  for (; now < Time{} + length; now += apart) popularity.came(kHot, now);
  return now;
}

TEST(Popularity, OfWhatNeverCameIsNothing) {
  const Popularity popularity;
  EXPECT_EQ(popularity.per_second(kHot, Time{}), 0);
}

TEST(Popularity, IsHowManyComePerSecond) {
  Popularity popularity;
  const Time now = stream(popularity, milliseconds(50), seconds(60));
  EXPECT_NEAR(popularity.per_second(kHot, now), 20, 1);
  EXPECT_EQ(popularity.per_second(kHot + 1, now), 0);
}

TEST(Popularity, IsKnownSoonAfterTheFirst) {
  Popularity popularity;
  const Time now = stream(popularity, milliseconds(50), seconds(3));
  EXPECT_NEAR(popularity.per_second(kHot, now), 20, 2);
}

TEST(Popularity, TwoAtOnceAreNoFlood) {
  Popularity popularity;
  popularity.came(kHot, Time{});
  EXPECT_LE(popularity.per_second(kHot, Time{} + milliseconds(1)), 0.5);
}

TEST(Popularity, FollowsWhatChanges) {
  Popularity popularity;
  const Time end = stream(popularity, milliseconds(50), seconds(60));
  const double before = popularity.per_second(kHot, end);
  EXPECT_NEAR(popularity.per_second(kHot, end + Popularity::kMemory), before / 2.718, 0.1);
  EXPECT_LT(popularity.per_second(kHot, end + 10 * Popularity::kMemory), 0.01);
}

TEST(Popularity, TimeThatSeemsToRunBackwardsDoesNoHarm) {
  Popularity popularity;
  popularity.came(kHot, Time{} + seconds(5));
  popularity.came(kHot, Time{} + seconds(4));
  EXPECT_NEAR(popularity.per_second(kHot, Time{} + seconds(3)), 1, 1e-9);
}

TEST(Popularity, ForgetsWhatHasNotComeForLongest) {
  Popularity popularity(3);
  for (const std::uint64_t one : {1U, 2U, 3U}) popularity.came(one, Time{});
  popularity.came(1, Time{});
  popularity.came(4, Time{});
  EXPECT_EQ(popularity.size(), 3U);
  EXPECT_EQ(popularity.per_second(2, Time{}), 0);
  for (const std::uint64_t one : {1U, 3U, 4U}) EXPECT_GT(popularity.per_second(one, Time{}), 0);
}

TEST(Popularity, IsBounded) {
  Popularity popularity(100);
  for (std::uint64_t one = 0; one < 10'000; ++one) popularity.came(one, Time{} + seconds(one));
  EXPECT_EQ(popularity.size(), 100U);
}

}  // namespace
}  // namespace baton::scheduling
