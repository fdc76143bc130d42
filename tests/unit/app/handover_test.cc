// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/handover.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>

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

// What the protocol promises, over every sequence of events up to a length: told by the events alone,
// and not by how they are handled.
enum class Event {
  Asked,
  Objected,
  Saved,
  NotStarted,
  Pid,
  Nonsense,
  Checked,
  Ready,
  Lost,
  LookedWell,
  LookedUnwell,
  LookedLate,
  Stopped
};

class HandoverWatcher {
 public:
  // Feeds the event to the machine; false where a promise is broken.
  bool step(Event event) {
    const Handover::Clock::time_point early{seconds(1000)};
    Handover::Step step;
    switch (event) {
      case Event::Asked:
        step = handover_.asked({});
        break;
      case Event::Objected:
        step = handover_.asked("no");
        break;
      case Event::Saved:
        step = handover_.saved(early);
        break;
      case Event::NotStarted:
        step = handover_.could_not_start();
        break;
      case Event::Pid:
        handover_.heard("pid 77");
        break;
      case Event::Nonsense:
        handover_.heard("pid 77 ready checked");
        break;
      case Event::Checked:
        handover_.heard("checked");
        break;
      case Event::Ready:
        handover_.heard("ready");
        break;
      case Event::Lost:
        step = handover_.lost();
        break;
      case Event::LookedWell:
        step = handover_.looked(early, true);
        break;
      case Event::LookedUnwell:
        step = handover_.looked(early, false);
        break;
      case Event::LookedLate:
        step = handover_.looked(early + seconds(60), true);
        break;
      case Event::Stopped:
        step = handover_.stopped();
        break;
    }
    return allows(event, step);
  }

 private:
  bool allows(Event event, const Handover::Step& step) {
    const bool was_started = started_;
    switch (step.act) {
      case Act::Nothing:
        break;
      case Act::Refuse:
        if (step.why.empty()) return false;  // an operator is told why
        if (event != Event::Asked && event != Event::Objected) return false;
        if (event == Event::Asked && !saving_ && !started_ && !over_) return false;
        break;
      case Act::Save:
        if (event != Event::Asked || saving_ || started_ || over_) return false;
        saving_ = true;
        break;
      case Act::Start:
        if (event != Event::Saved || !saving_) return false;
        saving_ = false;
        started_ = true;
        pid_ = checked_ = ready_ = false;
        break;
      case Act::HandOver:
        // Only to one that has said who it is and that it could serve, or could do no worse.
        if (!started_ || !pid_) return false;
        if (!ready_ && !(checked_ && event == Event::LookedUnwell)) return false;
        handover_.handed_over();
        started_ = false;
        over_ = true;
        break;
      case Act::GiveUp:
        if (!started_ || step.kind.empty() || step.why.empty()) return false;
        started_ = false;
        break;
    }
    // An end ends the successor, whatever it said.
    if (event == Event::Stopped) {
      if (was_started && step.act != Act::GiveUp) return false;
      saving_ = false;
      over_ = true;
    }
    // What is late is given up, or taken; never kept.
    if (event == Event::LookedLate && was_started && started_) return false;
    if (event == Event::Lost && was_started && started_) return false;
    if (event == Event::Pid) pid_ = true;
    if (event == Event::Nonsense) pid_ = false;
    if (event == Event::Checked) checked_ = true;
    if (event == Event::Ready) ready_ = true;
    return handover_.under_way() == (saving_ || started_);
  }

  Handover handover_{seconds(60)};
  bool saving_ = false;
  bool started_ = false;
  bool over_ = false;
  bool pid_ = false;
  bool checked_ = false;
  bool ready_ = false;
};

TEST(HandoverOrders, NoOrderOfEventsBreaksAPromise) {
  constexpr std::uint32_t kEvents = static_cast<std::uint32_t>(Event::Stopped) + 1;
  std::mt19937 random(43);
  for (int round = 0; round < 10'000; ++round) {
    HandoverWatcher watcher;
    std::string so_far;
    for (int i = 0; i < 14; ++i) {
      const std::uint32_t event = random() % kEvents;
      so_far += " " + std::to_string(event);
      ASSERT_TRUE(watcher.step(static_cast<Event>(event))) << so_far;
    }
  }
}

TEST_F(HandoverTest, TheLastIdCounts) {
  start();
  handover.heard("pid 12");
  EXPECT_EQ(handover.pid(), 12);
  handover.heard("pid 12 ");  // no number, so it is nobody's
  EXPECT_EQ(handover.pid(), std::nullopt);
}

TEST_F(HandoverTest, SaysWhatTimedOut) {
  start();
  EXPECT_EQ(handover.looked(now + seconds(61), true).why,
            "it was not ready within restart_timeout");
  start();
  handover.heard("checked");
  EXPECT_EQ(handover.looked(now + seconds(61), true).why,
            "it could not serve within restart_timeout");
}

TEST_F(HandoverTest, AReadyOneIsTakenEvenWhenItIsLate) {
  start();
  handover.heard("ready");
  EXPECT_EQ(handover.looked(now + seconds(600), true).act, Act::HandOver);
}

TEST_F(HandoverTest, EventsOfNoAttemptMeanNothing) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(handover.saved(now).act, Act::Nothing);
    EXPECT_EQ(handover.could_not_start().act, Act::Nothing);
    EXPECT_EQ(handover.lost().act, Act::Nothing);
    EXPECT_EQ(handover.looked(now + seconds(600), false).act, Act::Nothing);
    handover.heard("pid 4711");
    handover.heard("ready");
  }
  // And an attempt begins without what was heard before it.
  EXPECT_EQ(handover.asked({}).act, Act::Save);
  EXPECT_EQ(handover.saved(now).act, Act::Start);
  EXPECT_EQ(handover.looked(now, true).act, Act::Nothing);
}

}  // namespace
}  // namespace baton::app
