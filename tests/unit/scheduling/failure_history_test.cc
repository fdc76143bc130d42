// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/failure_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr model::WorkerId kPrefill{1};
constexpr model::WorkerId kOtherPrefill{2};
constexpr model::WorkerId kDecode{11};
constexpr model::WorkerId kOtherDecode{12};

TEST(FailureHistory, AtFirstNobodyIsPassedOver) {
  const FailureHistory failures;
  EXPECT_THAT(failures.suspected_prefills(), IsEmpty());
  EXPECT_THAT(failures.suspected_decodes(), IsEmpty());
  EXPECT_THAT(failures.decodes_beside(kPrefill), IsEmpty());
}

TEST(FailureHistory, WhoSurelyFailedIsSuspectedAsWell) {
  FailureHistory failures;
  failures.prefill_failed(kPrefill);
  failures.decode_failed(kDecode);
  EXPECT_THAT(failures.prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(failures.suspected_prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(failures.decodes(), UnorderedElementsAre(kDecode));
  EXPECT_THAT(failures.suspected_decodes(), UnorderedElementsAre(kDecode));
  EXPECT_THAT(failures.decodes_beside(kOtherPrefill), UnorderedElementsAre(kDecode));
}

TEST(FailureHistory, OfAFailedHandoffBothAreSuspectedAndNeitherSurely) {
  FailureHistory failures;
  failures.decode_failed(kOtherDecode);
  failures.handoff_failed(kPrefill, kDecode);
  EXPECT_THAT(failures.prefills(), IsEmpty());
  EXPECT_THAT(failures.suspected_prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(failures.decodes(), UnorderedElementsAre(kOtherDecode));
  EXPECT_THAT(failures.suspected_decodes(), UnorderedElementsAre(kOtherDecode, kDecode));
  EXPECT_TRUE(failures.suspects_decode(kDecode));
  EXPECT_FALSE(failures.suspects_decode(kOtherDecode));
}

TEST(FailureHistory, ThoseOfAFailedHandoffDoNotMeetAgain) {
  FailureHistory failures;
  failures.handoff_failed(kPrefill, kDecode);
  EXPECT_THAT(failures.decodes_beside(kPrefill), UnorderedElementsAre(kDecode));
  EXPECT_THAT(failures.decodes_beside(kOtherPrefill), IsEmpty());
}

TEST(FailureHistory, ThoseWhoWereMisledMayMeetAgainAndFailSurelyThen) {
  FailureHistory failures;
  failures.handoff_failed(kPrefill, kDecode, true);
  EXPECT_THAT(failures.suspected_prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(failures.suspected_decodes(), UnorderedElementsAre(kDecode));
  EXPECT_THAT(failures.decodes_beside(kPrefill), IsEmpty());
  failures.handoff_failed(kPrefill, kDecode, true);
  EXPECT_THAT(failures.decodes_beside(kPrefill), UnorderedElementsAre(kDecode));
}

}  // namespace
}  // namespace baton::scheduling
