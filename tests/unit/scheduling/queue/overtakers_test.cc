// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/overtakers.h"

#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using std::chrono::seconds;

struct OvertakersTest : testing::Test {
  // For a minute, so many seconds of work each second, in requests of so many seconds.
  void come(double each, double load = 0.1) {
    const auto apart = std::chrono::duration_cast<Overtakers::Time::duration>(
        std::chrono::duration<double>(each / load));
    for (const auto end = now + seconds(60); now < end; now += apart) overtakers.came(each, now);
  }
  double wait(double takes, double behind) const {
    return overtakers.wait_with_them(takes, behind, 1, now);
  }
  Overtakers overtakers;
  Overtakers::Time now{std::chrono::hours(1)};
};

TEST_F(OvertakersTest, WhereNobodyComesNobodyIsOvertaken) {
  EXPECT_EQ(wait(10, 3), 3);
  EXPECT_EQ(wait(0, 3), 3);
}

TEST_F(OvertakersTest, ALongRequestWaitsForShortOnesThatComeWhileItWaits) {
  come(0.01);
  // Twice what is expected to come: 0.2 s each second that it waits.
  EXPECT_NEAR(wait(1, 0.4), 0.4 / 0.8, 0.02);
  EXPECT_EQ(wait(1, 0), 0) << "its turn is now";
  EXPECT_EQ(wait(0.005, 0.4), 0.4) << "they are longer";
}

TEST_F(OvertakersTest, AfterAWhileItsTurnIsBeforeThoseThatCome) {
  come(0.01);
  // 0.06 s longer: for 0.2 s.
  EXPECT_NEAR(wait(0.07, 3), 3 + 0.2 * 0.2, 0.01);
}

TEST_F(OvertakersTest, WhereMoreComesThanIsServedItWaitsUntilItsTurnIsBefore) {
  come(0.01, 1);
  // Two seconds of work each second, for 0.3 s.
  EXPECT_NEAR(wait(0.1, 0.05), 0.05 + 2 * 0.3, 0.1);
}

TEST_F(OvertakersTest, ThoseOfLongAgoDoNotCount) {
  come(0.01);
  now += seconds(60);
  EXPECT_NEAR(wait(1, 0.4), 0.4, 0.001);
}

TEST_F(OvertakersTest, MoreWorkBeforeItIsNeverAShorterWait) {
  come(0.01);
  come(0.2);
  for (double takes = 0; takes < 2; takes += 0.05) {
    double last = 0;
    for (double behind = 0; behind < 3; behind += 0.05) {
      const double here = wait(takes, behind);
      EXPECT_GE(here, behind);
      EXPECT_GE(here, last - 1e-9);
      last = here;
    }
  }
}

}  // namespace
}  // namespace baton::scheduling
