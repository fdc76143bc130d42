// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/handover.h"

#include <gtest/gtest.h>

namespace baton::app {
namespace {

using Act = Handover::Act;
using std::chrono::seconds;

struct HandoverTest : testing::Test {
  // Up to where the successor has been started and has said who it is.
  void start() {
    EXPECT_EQ(handover.asked({}).act, Act::Save);
    EXPECT_EQ(handover.saved(now).act, Act::Start);
    handover.heard("pid 4711");
  }
  Handover::Clock::time_point now{seconds(1000)};
  Handover handover{seconds(60)};
};

TEST_F(HandoverTest, HandsOverOnceTheSuccessorIsReady) {
  start();
  EXPECT_EQ(handover.looked(now, true).act, Act::Nothing);
  handover.heard("checked");
  EXPECT_EQ(handover.looked(now + seconds(59), true).act, Act::Nothing);
  handover.heard("ready");
  EXPECT_EQ(handover.looked(now + seconds(59), true).act, Act::HandOver);
  EXPECT_EQ(handover.pid(), 4711);
  handover.handed_over();
  EXPECT_EQ(handover.looked(now + seconds(59), true).act, Act::Nothing);
  EXPECT_EQ(handover.asked({}).act, Act::Refuse);
}

TEST_F(HandoverTest, AnUnreadyProcessWaitsOnlyUntilWorkersWereAsked) {
  start();
  EXPECT_EQ(handover.looked(now, false).act, Act::Nothing);
  handover.heard("checked");
  EXPECT_EQ(handover.looked(now, false).act, Act::HandOver);
}

TEST_F(HandoverTest, GivesUpWhatIsNotReadyInTime) {
  start();
  handover.heard("checked");
  const auto step = handover.looked(now + seconds(60), true);
  EXPECT_EQ(step.act, Act::GiveUp);
  EXPECT_EQ(step.kind, "timeout");
  EXPECT_EQ(handover.asked({}).act, Act::Save);  // another attempt
}

TEST_F(HandoverTest, NothingOfAnAttemptCountsForTheNext) {
  start();
  handover.heard("ready");
  EXPECT_EQ(handover.lost().kind, "ended");
  EXPECT_EQ(handover.asked({}).act, Act::Save);
  EXPECT_EQ(handover.saved(now).act, Act::Start);
  EXPECT_EQ(handover.pid(), std::nullopt);
  EXPECT_EQ(handover.looked(now, true).act, Act::Nothing);
}

TEST_F(HandoverTest, GoesOnWhereTheProgramCannotBeStarted) {
  EXPECT_EQ(handover.asked({}).act, Act::Save);
  EXPECT_EQ(handover.saved(now).act, Act::Start);
  EXPECT_EQ(handover.could_not_start().kind, "start");
  EXPECT_FALSE(handover.under_way());
}

TEST_F(HandoverTest, RefusesASecondOneMeanwhile) {
  EXPECT_EQ(handover.asked({}).act, Act::Save);
  EXPECT_EQ(handover.asked({}).act, Act::Refuse);
  EXPECT_EQ(handover.saved(now).act, Act::Start);
  EXPECT_EQ(handover.asked({}).act, Act::Refuse);
}

TEST_F(HandoverTest, RefusesWithTheObjectionOfItsOwner) {
  const auto step = handover.asked("not today");
  EXPECT_EQ(step.act, Act::Refuse);
  EXPECT_EQ(step.why, "not today");
  EXPECT_EQ(handover.asked({}).act, Act::Save);
}

TEST_F(HandoverTest, AnEndTakesAnUnreadySuccessorWithIt) {
  start();
  EXPECT_EQ(handover.stopped().kind, "stopped");
  EXPECT_EQ(handover.stopped().act, Act::Nothing);
  EXPECT_EQ(handover.asked({}).act, Act::Refuse);
}

TEST_F(HandoverTest, AnEndWhileSavingStartsNobody) {
  EXPECT_EQ(handover.asked({}).act, Act::Save);
  EXPECT_EQ(handover.stopped().act, Act::Nothing);
  EXPECT_EQ(handover.saved(now).act, Act::Nothing);
}

TEST_F(HandoverTest, ReadsNoNonsenseForAProcess) {
  EXPECT_EQ(handover.asked({}).act, Act::Save);
  EXPECT_EQ(handover.saved(now).act, Act::Start);
  handover.heard("ready");
  for (const char* line :
       {"pid", "pid x", "pid 12x", "pid -3", "pid 0", "pid 1", "something new"}) {
    handover.heard(line);
    EXPECT_EQ(handover.pid(), std::nullopt) << line;
  }
  EXPECT_EQ(handover.looked(now, true).act, Act::Nothing);
}

}  // namespace
}  // namespace baton::app
