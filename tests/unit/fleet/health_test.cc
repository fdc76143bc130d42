// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::fleet {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Field;
using testing::Optional;

// A clock of its own: `now` is whatever a test says.
struct HealthTest : testing::Test {
  static config::Health options() {
    config::Health made;
    made.failures = 3;
    made.backoff = 1s;
    made.backoff_max = 5s;
    return made;
  }
  Health::News broken() { return health.failed(Failure::Broken, "it broke", now); }
  // Until it is ejected; how often that was tried.
  int eject() {
    int failures = 0;
    while (health.condition() != Condition::Ejected && failures < 100) {
      broken();
      ++failures;
    }
    return failures;
  }
  // How long an ejected worker stays out: it may return at the end of it, and not a moment earlier.
  Clock::duration out() {
    Clock::duration length = 0s;
    while (length < 1min && !health.may_return(now + length)) length += 1ms;
    if (length > 0s) EXPECT_FALSE(health.may_return(now + length - 1ns));
    return length;
  }
  void half_open() {
    now += out();
    health.answered(now);
    ASSERT_EQ(health.condition(), Condition::HalfOpen);
  }

  Time now{100h};
  Health health{options()};
};

auto change(Condition from, Condition to, std::string why) {
  return Optional(AllOf(Field(&Health::Change::from, from), Field(&Health::Change::to, to),
                        Field(&Health::Change::why, why)));
}

TEST_F(HealthTest, BeginsAsSomebodyNobodyHasHeardOf) {
  EXPECT_EQ(health.condition(), Condition::New);
  EXPECT_FALSE(health.overloaded(now));
  EXPECT_EQ(health.why(), "");
  EXPECT_EQ(health.last_success(), Time{});
  EXPECT_FALSE(health.may_return(now));
}

TEST_F(HealthTest, IsUpAfterAnythingGood) {
  EXPECT_THAT(health.answered(now), change(Condition::New, Condition::Up, ""));
  EXPECT_EQ(health.last_success(), Time{}) << "a probe is not a request";
  Health by_success{options()};
  EXPECT_THAT(by_success.succeeded(now), change(Condition::New, Condition::Up, ""));
  EXPECT_EQ(by_success.last_success(), now);
  Health by_progress{options()};
  EXPECT_THAT(by_progress.progressed(now), change(Condition::New, Condition::Up, ""));
  EXPECT_EQ(by_progress.last_success(), now);
}

TEST_F(HealthTest, WhatDoesNotChangeIsNoNews) {
  health.answered(now);
  EXPECT_EQ(health.answered(now), std::nullopt);
  EXPECT_EQ(health.succeeded(now), std::nullopt);
  EXPECT_EQ(health.progressed(now), std::nullopt);
  EXPECT_TRUE(health.unreachable(Failure::Unreachable, "gone"));
  EXPECT_EQ(health.unreachable(Failure::Unreachable, "still gone"), std::nullopt);
  EXPECT_EQ(health.why(), "still gone");
}

TEST_F(HealthTest, IsEjectedAfterSoManyFailuresInARow) {
  health.answered(now);
  EXPECT_EQ(broken(), std::nullopt);
  EXPECT_EQ(broken(), std::nullopt);
  EXPECT_EQ(health.condition(), Condition::Up);
  EXPECT_THAT(broken(), change(Condition::Up, Condition::Ejected, "it broke"));
  EXPECT_EQ(health.why(), "it broke");
}

TEST_F(HealthTest, OfWhichNobodyHasHeardIsEjectedAsWell) { EXPECT_EQ(eject(), 3); }

TEST_F(HealthTest, ASuccessInBetweenIsANewBeginning) {
  health.answered(now);
  for (int i = 0; i < 5; ++i) {
    broken();
    broken();
    health.succeeded(now);
  }
  EXPECT_EQ(health.condition(), Condition::Up);
  EXPECT_EQ(eject(), 3);
}

TEST_F(HealthTest, AProbeThatIsAnsweredDoesNotExcuseFailedRequests) {
  health.answered(now);
  broken();
  broken();
  health.answered(now);
  EXPECT_TRUE(broken());
  EXPECT_EQ(health.condition(), Condition::Ejected);
}

TEST_F(HealthTest, AStreamThatBeginsAndBreaksEveryTimeIsEjectedInTheEnd) {
  health.answered(now);
  for (int i = 0; i < 3; ++i) {
    health.progressed(now);
    broken();
  }
  EXPECT_EQ(health.condition(), Condition::Ejected);
  // And stays out longer each time: its trials begin well, too.
  EXPECT_EQ(out(), 1s);
  half_open();
  ASSERT_TRUE(health.begin_trial());
  EXPECT_THAT(health.progressed(now), change(Condition::OnTrial, Condition::Up, ""));
  eject();
  EXPECT_EQ(out(), 2s);
}

TEST_F(HealthTest, StaysOutTwiceAsLongEachTimeUpToALimit) {
  eject();
  for (const auto expected : {1s, 2s, 4s, 5s, 5s}) {
    EXPECT_EQ(out(), expected);
    half_open();
    ASSERT_TRUE(health.begin_trial());
    EXPECT_THAT(broken(), change(Condition::OnTrial, Condition::Ejected, "it broke"));
  }
}

TEST_F(HealthTest, HasNoTroubleWithManyEjections) {
  for (int i = 0; i < 100; ++i) {
    eject();
    EXPECT_LE(out(), 5s);
    half_open();
    ASSERT_TRUE(health.begin_trial());
    broken();
  }
}

TEST_F(HealthTest, AfterASuccessTheNextTimeOutIsShortAgain) {
  eject();
  half_open();
  ASSERT_TRUE(health.begin_trial());
  broken();
  EXPECT_EQ(out(), 2s);
  half_open();
  ASSERT_TRUE(health.begin_trial());
  EXPECT_THAT(health.succeeded(now), change(Condition::OnTrial, Condition::Up, ""));
  EXPECT_EQ(health.why(), "");
  EXPECT_EQ(eject(), 3);
  EXPECT_EQ(out(), 1s);
}

TEST_F(HealthTest, AnAnswerBeforeTheTimeIsOverChangesNothing) {
  eject();
  EXPECT_EQ(health.answered(now), std::nullopt);
  EXPECT_EQ(health.answered(now + 1s - 1ns), std::nullopt);
  EXPECT_EQ(health.condition(), Condition::Ejected);
  EXPECT_THAT(health.answered(now + 1s),
              change(Condition::Ejected, Condition::HalfOpen, "it broke"));
  EXPECT_EQ(health.why(), "it broke") << "until it has shown otherwise";
  EXPECT_FALSE(health.may_return(now + 1s)) << "it has";
}

TEST_F(HealthTest, OneTrialAtATime) {
  EXPECT_FALSE(health.begin_trial()) << "not where none is needed";
  eject();
  EXPECT_FALSE(health.begin_trial()) << "not before its time";
  half_open();
  EXPECT_TRUE(health.begin_trial());
  EXPECT_EQ(health.condition(), Condition::OnTrial);
  EXPECT_FALSE(health.begin_trial());
}

TEST_F(HealthTest, ATrialThatTellsNothingMakesRoomForAnother) {
  eject();
  half_open();
  ASSERT_TRUE(health.begin_trial());
  health.abandon_trial();
  EXPECT_EQ(health.condition(), Condition::HalfOpen);
  EXPECT_TRUE(health.begin_trial());
  health.succeeded(now);
  health.abandon_trial();
  EXPECT_EQ(health.condition(), Condition::Up) << "it has told by then";
}

TEST_F(HealthTest, FailuresOfOthersDoNotEndATrialThatIsYetToBegin) {
  eject();
  half_open();
  EXPECT_EQ(broken(), std::nullopt) << "this one began before the ejection";
  EXPECT_EQ(health.condition(), Condition::HalfOpen);
}

TEST_F(HealthTest, ASuccessThatBeganBeforeTheEjectionIsNoProof) {
  eject();
  EXPECT_EQ(health.succeeded(now), std::nullopt);
  EXPECT_EQ(health.progressed(now), std::nullopt);
  EXPECT_EQ(health.condition(), Condition::Ejected);
  EXPECT_EQ(out(), 1s) << "and its time is no shorter";
}

TEST_F(HealthTest, FurtherFailuresOfAnEjectedWorkerDoNotMakeItsTimeLonger) {
  eject();
  EXPECT_EQ(health.failed(Failure::Broken, "late", now + 900ms), std::nullopt);
  EXPECT_TRUE(health.may_return(now + 1s));
}

TEST_F(HealthTest, WhoCannotBeReachedIsOutAtOnceAndBackAtOnce) {
  health.answered(now);
  EXPECT_THAT(health.failed(Failure::Unreachable, "refused", now),
              change(Condition::Up, Condition::Unreachable, "refused"));
  EXPECT_FALSE(health.may_return(now + 1h)) << "that is for ejected ones";
  EXPECT_THAT(health.answered(now), change(Condition::Unreachable, Condition::Up, ""));
  EXPECT_THAT(health.unreachable(Failure::Unreachable, "no answer"),
              change(Condition::Up, Condition::Unreachable, "no answer"));
  EXPECT_THAT(health.succeeded(now), change(Condition::Unreachable, Condition::Up, ""));
  health.unreachable(Failure::Unreachable, "no answer");
  EXPECT_THAT(health.progressed(now), change(Condition::Unreachable, Condition::Up, ""));
}

TEST_F(HealthTest, WhoIsBackBeginsWithoutOldFailures) {
  health.answered(now);
  broken();
  broken();
  health.unreachable(Failure::Unreachable, "gone");
  health.answered(now);
  EXPECT_EQ(eject(), 3);
}

TEST_F(HealthTest, WhoIsMisconfiguredIsMendedByAProbeOnly) {
  health.answered(now);
  EXPECT_THAT(health.misconfigured("another model"),
              change(Condition::Up, Condition::Misconfigured, "another model"));
  EXPECT_EQ(health.succeeded(now), std::nullopt);
  EXPECT_EQ(health.progressed(now), std::nullopt);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(broken(), std::nullopt);
  EXPECT_EQ(health.failed(Failure::Unreachable, "refused", now), std::nullopt);
  EXPECT_FALSE(health.begin_trial());
  EXPECT_FALSE(health.may_return(now + 1h));
  EXPECT_EQ(health.condition(), Condition::Misconfigured);
  EXPECT_EQ(health.why(), "another model");
  EXPECT_THAT(health.answered(now), change(Condition::Misconfigured, Condition::Up, ""));
  EXPECT_EQ(eject(), 3);
}

TEST_F(HealthTest, AnOverloadMarkExpiresAndIsNoFailure) {
  health.answered(now);
  for (int i = 0; i < 10; ++i) health.pushed_back(2s, now);
  EXPECT_EQ(health.condition(), Condition::Up);
  EXPECT_TRUE(health.overloaded(now));
  EXPECT_TRUE(health.overloaded(now + 2s - 1ns));
  EXPECT_FALSE(health.overloaded(now + 2s));
  EXPECT_EQ(eject(), 3) << "none of them counted";
}

TEST_F(HealthTest, AnOverloadMarkIsNeverForLong) {
  health.pushed_back(24h, now);
  EXPECT_TRUE(health.overloaded(now + 29s));
  EXPECT_FALSE(health.overloaded(now + 31s));
}

TEST_F(HealthTest, KnowsWhenTheProcessItSpokeToHasEnded) {
  for (int i = 0; i < 2; ++i) health.unreachable(Failure::Refused, "not there yet");
  health.failed(Failure::Refused, "not there yet", now);
  EXPECT_FALSE(health.process_ended()) << "who has never answered has not ended";
  health.answered(now);
  health.unreachable(Failure::Unreachable, "no route");
  health.failed(Failure::Unreachable, "no route", now);
  broken();
  EXPECT_FALSE(health.process_ended()) << "it may only be out of reach";
  health.unreachable(Failure::Refused, "refused");
  EXPECT_TRUE(health.process_ended());
  Health by_request{options()};
  by_request.succeeded(now);
  by_request.failed(Failure::Refused, "refused", now);
  EXPECT_EQ(by_request.condition(), Condition::Unreachable);
  EXPECT_TRUE(by_request.process_ended());
}

TEST_F(HealthTest, CanariesMayEjectItAtOnce) {
  health.answered(now);
  EXPECT_THAT(health.eject("the canary", now),
              change(Condition::Up, Condition::Ejected, "the canary"));
  EXPECT_EQ(out(), 1s);
  EXPECT_EQ(health.eject("again", now + 500ms), std::nullopt);
  EXPECT_EQ(out(), 1s) << "it is out already";
  health.misconfigured("another model");
  EXPECT_EQ(health.eject("the canary", now), std::nullopt);
  EXPECT_EQ(health.condition(), Condition::Misconfigured);
}

TEST_F(HealthTest, ConditionsHaveNames) {
  EXPECT_EQ(to_string(Condition::New), "new");
  EXPECT_EQ(to_string(Condition::Up), "ready");
  EXPECT_EQ(to_string(Condition::Unreachable), "unreachable");
  EXPECT_EQ(to_string(Condition::Ejected), "ejected");
  EXPECT_EQ(to_string(Condition::HalfOpen), "half_open");
  EXPECT_EQ(to_string(Condition::OnTrial), "on_trial");
  EXPECT_EQ(to_string(Condition::Misconfigured), "misconfigured");
}

}  // namespace
}  // namespace baton::fleet
