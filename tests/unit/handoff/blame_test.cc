// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::handoff {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr model::WorkerId kPrefill{1};
constexpr model::WorkerId kOtherPrefill{2};
constexpr model::WorkerId kDecode{11};
constexpr model::WorkerId kOtherDecode{12};

TEST(Blame, AtFirstNobodyIsPassedOver) {
  const Blame blame;
  EXPECT_THAT(blame.suspected_prefills(), IsEmpty());
  EXPECT_THAT(blame.suspected_decodes(), IsEmpty());
  EXPECT_THAT(blame.decodes_beside(kPrefill), IsEmpty());
}

TEST(Blame, WhoSurelyFailedIsSuspectedAsWell) {
  Blame blame;
  blame.prefill_failed(kPrefill);
  blame.decode_failed(kDecode);
  EXPECT_THAT(blame.prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(blame.suspected_prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(blame.decodes(), UnorderedElementsAre(kDecode));
  EXPECT_THAT(blame.suspected_decodes(), UnorderedElementsAre(kDecode));
  EXPECT_THAT(blame.decodes_beside(kOtherPrefill), UnorderedElementsAre(kDecode));
}

TEST(Blame, OfAFailedHandoffBothAreSuspectedAndNeitherSurely) {
  Blame blame;
  blame.decode_failed(kOtherDecode);
  blame.handoff_failed(kPrefill, kDecode);
  EXPECT_THAT(blame.prefills(), IsEmpty());
  EXPECT_THAT(blame.suspected_prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(blame.decodes(), UnorderedElementsAre(kOtherDecode));
  EXPECT_THAT(blame.suspected_decodes(), UnorderedElementsAre(kOtherDecode, kDecode));
  EXPECT_TRUE(blame.suspects_decode(kDecode));
  EXPECT_FALSE(blame.suspects_decode(kOtherDecode));
}

TEST(Blame, ThoseOfAFailedHandoffDoNotMeetAgain) {
  Blame blame;
  blame.handoff_failed(kPrefill, kDecode);
  EXPECT_THAT(blame.decodes_beside(kPrefill), UnorderedElementsAre(kDecode));
  EXPECT_THAT(blame.decodes_beside(kOtherPrefill), IsEmpty());
}

TEST(Blame, ThoseWhoWereMisledMayMeetAgainAndFailSurelyThen) {
  Blame blame;
  blame.handoff_failed(kPrefill, kDecode, true);
  EXPECT_THAT(blame.suspected_prefills(), UnorderedElementsAre(kPrefill));
  EXPECT_THAT(blame.suspected_decodes(), UnorderedElementsAre(kDecode));
  EXPECT_THAT(blame.decodes_beside(kPrefill), IsEmpty());
  blame.handoff_failed(kPrefill, kDecode, true);
  EXPECT_THAT(blame.decodes_beside(kPrefill), UnorderedElementsAre(kDecode));
}

}  // namespace
}  // namespace baton::handoff
