// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/suspects.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace baton::handoff {
namespace {

using namespace std::chrono_literals;

constexpr model::WorkerId kOne{1};
constexpr model::WorkerId kTwo{2};
const Suspects::Time kNow{1h};
const Suspects::Request kRequest = Suspects::request_of(R"({"prompt":"a"})");
const Suspects::Request kOther = Suspects::request_of(R"({"prompt":"b"})");

TEST(Suspects, AreCountedByTheWorkersThatEndedUnderThem) {
  Suspects suspects;
  EXPECT_TRUE(suspects.none());
  EXPECT_EQ(suspects.ends(kRequest, kNow), 0U);
  EXPECT_EQ(suspects.ended(kRequest, kOne, kNow - 1s, kNow), 1U);
  EXPECT_FALSE(suspects.none());
  EXPECT_EQ(suspects.ended(kRequest, kTwo, kNow - 1s, kNow + 1s), 2U);
  EXPECT_EQ(suspects.ends(kRequest, kNow + 1s), 2U);
  EXPECT_EQ(suspects.ends(kOther, kNow), 0U);
}

TEST(Suspects, AProcessEndsOnceUnderAllCopiesThatWereOnIt) {
  Suspects suspects;
  EXPECT_EQ(suspects.ended(kRequest, kOne, kNow - 2s, kNow), 1U);
  EXPECT_EQ(suspects.ended(kRequest, kOne, kNow - 1s, kNow + 10ms), 1U);
  EXPECT_EQ(suspects.ended(kRequest, kOne, kNow + 1s, kNow + 2s), 2U) << "it has begun anew";
}

TEST(Suspects, AreClearedByAFirstToken) {
  Suspects suspects;
  suspects.ended(kRequest, kOne, kNow, kNow);
  suspects.ended(kOther, kOne, kNow, kNow);
  suspects.clear(kRequest);
  EXPECT_EQ(suspects.ends(kRequest, kNow), 0U);
  EXPECT_EQ(suspects.ends(kOther, kNow), 1U);
  suspects.clear(kOther);
  EXPECT_TRUE(suspects.none());
}

TEST(Suspects, AreForgottenAfterAWhile) {
  Suspects suspects;
  suspects.ended(kRequest, kOne, kNow, kNow);
  EXPECT_EQ(suspects.ends(kRequest, kNow + Suspects::kRemembered), 1U);
  EXPECT_EQ(suspects.ends(kRequest, kNow + Suspects::kRemembered + 1s), 0U);
  suspects.ended(kOther, kTwo, kNow, kNow + Suspects::kRemembered + 1s);
  EXPECT_EQ(suspects.ended(kRequest, kTwo, kNow, kNow + Suspects::kRemembered + 1s), 1U);
}

TEST(Suspects, AreNotMoreThanAFewThousand) {
  Suspects suspects;
  for (int i = 0; i < 10'000; ++i)
    suspects.ended(Suspects::request_of(std::to_string(i)), kOne, kNow, kNow);
  EXPECT_EQ(suspects.ends(Suspects::request_of("0"), kNow), 1U);
  EXPECT_EQ(suspects.ends(Suspects::request_of("9999"), kNow), 0U);
  EXPECT_EQ(suspects.ended(Suspects::request_of("9999"), kTwo, kNow, kNow), 1U);
}

}  // namespace
}  // namespace baton::handoff
