// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/admission_queue.h"

#include "support/io_fixture.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <gmock/gmock.h>

#include <list>
#include <map>
#include <set>
#include <stdexcept>

namespace baton::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

config::QueueClass queue_class(std::string name) {
  config::QueueClass made;
  made.name = std::move(name);
  made.busy_tokens = 1000;
  return made;
}

// What a request that entered the queue knows at the end.
struct Visit {
  std::optional<Result<Admitted>> outcome;
  Cancellation cancellation;
  int tries = 0;
};

class AdmissionQueueTest : public test::IoFixture {
 protected:
  void open(std::vector<config::QueueClass> classes = {queue_class("all")}) {
    config.classes = std::move(classes);
    admission = std::make_shared<AdmissionQueue>(config, home.get_executor(),
                                                 QueueMetrics(registry, "m", config));
  }

  // Enters the queue, and goes to the worker that its bucket names, or to any.
  Visit& come(QueueRequest request, std::string name = {}) {
    Visit& visit = visits.emplace_back();
    if (request.prompt_tokens == 0) request.prompt_tokens = 10;
    const auto attempt = [this, &visit, name, bucket = request.awaits.what](
                             const config::QueueClass&, Chance) -> Result<Attempted> {
      ++visit.tries;
      if (broken.contains(name)) return fail(Errc::NoEligibleWorker, "nobody for " + name);
      for (auto& [worker, places] : free) {
        if (places == 0 || (!bucket.empty() && bucket != worker)) continue;
        --places;
        served.push_back(name);
        return Attempted::Taken;
      }
      return Attempted::Busy;
    };
    start([this, &visit, request, attempt]() -> test::awaitable<void> {
      visit.outcome = co_await admission->enter(request, attempt, visit.cancellation);
    });
    poll();
    return visit;
  }
  Visit& come(std::string name) { return come(QueueRequest(), std::move(name)); }
  static QueueRequest pinned(std::string worker) {
    QueueRequest made;
    made.awaits.what = std::move(worker);
    return made;
  }
  static QueueRequest waiting_at_most(milliseconds at_most) {
    QueueRequest made;
    made.max_wait = MaxQueueWait{.at_most = at_most};
    return made;
  }

  // Everything goes on as far as it can; the recheck timer does not.
  void poll() {
    io.restart();
    io.poll();
  }
  void now_free(const std::string& worker, int places = 1) {
    free[worker] += places;
    admission->changed();
    poll();
  }
  static Errc why(const Visit& visit) {
    return visit.outcome && !*visit.outcome ? visit.outcome->error().code() : Errc::Internal;
  }

  telemetry::Registry registry;
  boost::asio::io_context home;  // of the recheck timer
  config::Queue config;
  std::shared_ptr<AdmissionQueue> admission;
  std::list<Visit> visits;
  std::map<std::string, int> free;
  std::set<std::string> broken;
  std::vector<std::string> served;
};

TEST_F(AdmissionQueueTest, WhoFindsAWorkerWithTimeGoesThrough) {
  open();
  free["w"] = 1;
  const Visit& visit = come("a");
  ASSERT_TRUE(visit.outcome && *visit.outcome);
  EXPECT_EQ((*visit.outcome)->policy_class, "all");
  EXPECT_EQ((*visit.outcome)->waited, Clock::duration(0));
  EXPECT_EQ((*visit.outcome)->ahead, 0U);
}

TEST_F(AdmissionQueueTest, TheRestWaitAndAreServedInOrder) {
  open();
  come("a");
  come("b");
  const Visit& last = come("c");
  EXPECT_THAT(served, IsEmpty());
  EXPECT_EQ(admission->waiting(), 3U);
  EXPECT_EQ(admission->totals(0), (Totals{3, 30, 0, 30}));
  now_free("w");
  EXPECT_THAT(served, ElementsAre("a"));
  now_free("w", 2);
  EXPECT_THAT(served, ElementsAre("a", "b", "c"));
  ASSERT_TRUE(last.outcome && *last.outcome);
  EXPECT_GT((*last.outcome)->waited, Clock::duration(0));
  EXPECT_EQ((*last.outcome)->ahead, 2U);
  EXPECT_EQ(admission->waiting(), 0U);
  EXPECT_EQ(admission->totals(0), Totals());
}

TEST_F(AdmissionQueueTest, NobodyOvertakesThoseOfHisClassWhoWait) {
  open({queue_class("a"), queue_class("b")});
  come("first");
  free["w"] = 1;  // and nobody has said so yet
  come("second");
  EXPECT_THAT(served, ElementsAre("first"));
  free["w"] = 1;
  QueueRequest other;
  other.policy_class = "b";
  come(other, "other");  // of a class where nobody waits
  EXPECT_THAT(served, ElementsAre("first", "other"));
  now_free("w");
  EXPECT_THAT(served, ElementsAre("first", "other", "second"));
}

TEST_F(AdmissionQueueTest, NobodyWaitsBehindOneWhoseOnlyWorkerIsBusy) {
  open();
  come(pinned("1"), "pinned");
  come(pinned("1"), "pinned too");
  free["2"] = 1;
  come("free");
  EXPECT_THAT(served, ElementsAre("free"));
  now_free("1", 2);
  EXPECT_THAT(served, ElementsAre("free", "pinned", "pinned too"));
}

TEST_F(AdmissionQueueTest, ABucketThatIsKnownToBeBusyIsNotTriedForEachNewcomer) {
  open();
  const Visit& first = come(pinned("1"), "first");
  const Visit& second = come(pinned("1"), "second");  // nobody knows of the first's bucket yet
  EXPECT_EQ(first.tries, 2);
  const Visit& third = come(pinned("1"), "third");
  EXPECT_EQ(first.tries, 2);
  EXPECT_EQ(second.tries + third.tries, 0);
  now_free("1", 3);
  EXPECT_THAT(served, ElementsAre("first", "second", "third"));
}

TEST_F(AdmissionQueueTest, AChangeBetweenTheTryAndTheQueueIsNotLost) {
  open();
  Visit& visit = visits.emplace_back();
  const auto attempt = [&](const config::QueueClass&, Chance) -> Result<Attempted> {
    if (++visit.tries > 1) return Attempted::Taken;
    admission->changed();  // just after it has looked; nobody waits yet
    return Attempted::Busy;
  };
  start([&]() -> test::awaitable<void> {
    visit.outcome = co_await admission->enter(QueueRequest(), attempt, visit.cancellation);
  });
  poll();
  ASSERT_TRUE(visit.outcome && *visit.outcome);
  EXPECT_EQ(visit.tries, 2);
}

TEST_F(AdmissionQueueTest, AChangeDuringAnOfferIsNotLost) {
  open();
  Visit& visit = visits.emplace_back();
  const auto attempt = [&](const config::QueueClass&, Chance) -> Result<Attempted> {
    if (++visit.tries > 2) return Attempted::Taken;
    if (visit.tries == 2) admission->changed();
    return Attempted::Busy;
  };
  start([&]() -> test::awaitable<void> {
    visit.outcome = co_await admission->enter(QueueRequest(), attempt, visit.cancellation);
  });
  poll();
  EXPECT_EQ(visit.tries, 1);
  admission->changed();
  poll();
  ASSERT_TRUE(visit.outcome && *visit.outcome);
  EXPECT_EQ(visit.tries, 3);
}

TEST_F(AdmissionQueueTest, WhatWaitingDoesNotHelpAgainstEndsIt) {
  open();
  broken.insert("hopeless");
  EXPECT_EQ(why(come("hopeless")), Errc::NoEligibleWorker);
  const Visit& waiting = come("later hopeless");
  come("b");
  broken.insert("later hopeless");
  now_free("w");
  EXPECT_EQ(why(waiting), Errc::NoEligibleWorker);
  EXPECT_THAT(served, ElementsAre("b"));
}

TEST_F(AdmissionQueueTest, AnExceptionEndsItsOwnRequestOnly) {
  open();
  bool thrown = false;
  bool now = false;
  const auto attempt = [&](const config::QueueClass&, Chance) -> Result<Attempted> {
    if (now) throw std::runtime_error("a bug");
    return Attempted::Busy;
  };
  Cancellation cancellation;
  start([&]() -> test::awaitable<void> {
    try {
      co_await admission->enter(QueueRequest(), attempt, cancellation);
    } catch (const std::runtime_error&) {
      thrown = true;
    }
  });
  poll();
  come("b");
  now = true;
  now_free("w");
  EXPECT_TRUE(thrown);
  EXPECT_THAT(served, ElementsAre("b"));
}

TEST_F(AdmissionQueueTest, WhoMayNotWaitIsToldAtOnce) {
  open();
  const Visit& visit = come(waiting_at_most(milliseconds(0)));
  EXPECT_EQ(why(visit), Errc::WorkersBusy);
  EXPECT_TRUE(visit.outcome->error().retry_after());
  EXPECT_EQ(admission->waiting(), 0U);
}

TEST_F(AdmissionQueueTest, WhoMayNotWaitHasOneTryWhereOthersWait) {
  open();
  come(pinned("1"), "pinned");
  free["2"] = 1;
  come(waiting_at_most(milliseconds(0)), "immediate");
  EXPECT_THAT(served, ElementsAre("immediate"));
  const Visit& late = come(waiting_at_most(milliseconds(0)), "late");
  EXPECT_EQ(why(late), Errc::WorkersBusy);
  EXPECT_EQ(late.tries, 1);
  // Where it is known already it is not even tried.
  QueueRequest same = pinned("1");
  same.max_wait = MaxQueueWait::none();
  const Visit& hopeless = come(same, "hopeless");
  EXPECT_EQ(why(hopeless), Errc::WorkersBusy);
  EXPECT_EQ(hopeless.tries, 0);
  EXPECT_EQ(admission->waiting(), 1U);
  now_free("1");
}

TEST_F(AdmissionQueueTest, AClassWithoutThresholdsDoesNotQueue) {
  config::QueueClass none = queue_class("none");
  none.busy_tokens.reset();
  open({none});
  EXPECT_EQ(why(come("a")), Errc::WorkersBusy);
  open({});  // nor do no classes
  EXPECT_EQ(why(come("a")), Errc::WorkersBusy);
  free["w"] = 1;
  come("b");
  EXPECT_THAT(served, ElementsAre("b"));
}

TEST_F(AdmissionQueueTest, MaxWaitEnds) {
  config.patience = milliseconds(20);
  open();
  const Visit& configured = come("configured");
  const Visit& own = come(waiting_at_most(milliseconds(1)), "own");
  QueueRequest endless;
  endless.max_wait = MaxQueueWait::without_end();
  const Visit& waiting = come(endless, "endless");
  run_until([&] { return configured.outcome && own.outcome; });
  EXPECT_EQ(why(configured), Errc::QueueTimeout);
  EXPECT_EQ(why(own), Errc::QueueTimeout);
  EXPECT_TRUE(own.outcome->error().retry_after());
  EXPECT_FALSE(waiting.outcome);
  EXPECT_EQ(admission->waiting(), 1U);
  now_free("w");
  EXPECT_THAT(served, ElementsAre("endless"));
  EXPECT_THAT(registry.render(),
              HasSubstr(R"(baton_queue_refused_total{model="m",reason="timeout"} 2)"));
}

TEST_F(AdmissionQueueTest, ACancelledWaiterIsGoneAtOnce) {
  open();
  Visit& gone = come("gone");
  come("b");
  gone.cancellation.request(Error(Errc::ClientGone, "left"));
  poll();
  EXPECT_EQ(why(gone), Errc::ClientGone);
  EXPECT_EQ(admission->waiting(), 1U);
  now_free("w");
  EXPECT_THAT(served, ElementsAre("b"));
}

TEST_F(AdmissionQueueTest, OneWhoIsCancelledWhenItsTurnIsOnTheWayLetsTheNextHaveIt) {
  open();
  Visit& gone = come("gone");
  come("b");
  free["w"] = 1;
  admission->changed();  // the offer is posted
  gone.cancellation.request(Error(Errc::ClientGone, "left"));
  poll();
  // It was first to hear of its turn or of its end; whichever, nothing is lost.
  EXPECT_EQ(served.size(), 1U);
  EXPECT_EQ(free["w"], 0);
  now_free("w");
  EXPECT_EQ(admission->waiting(), 0U);
}

TEST_F(AdmissionQueueTest, AFullQueueRefusesWithFigures) {
  config::QueueClass limited = queue_class("limited");
  limited.requests_per_worker = 1;
  open({limited});
  QueueRequest request;
  request.workers = 2;
  come(request, "a");
  come(request, "b");
  const Visit& refused = come(request, "c");
  ASSERT_EQ(why(refused), Errc::QueueFull);
  const Error& error = refused.outcome->error();
  EXPECT_EQ(error.http_status(), 429);
  EXPECT_EQ(error.retry_after(), seconds(1));
  EXPECT_EQ(error.figures(),
            R"({"policy_class":"limited","limit_kind":"requests","current":2,"limit":2})");
  const std::string metrics = registry.render();
  EXPECT_THAT(metrics, HasSubstr(R"(baton_queue_refused_total{model="m",reason="requests"} 1)"));
  EXPECT_THAT(metrics, HasSubstr(R"(baton_queue_requests{model="m",class="limited"} 2)"));
  now_free("w", 2);
  EXPECT_THAT(registry.render(), HasSubstr(R"(baton_queue_requests{model="m",class="limited"} 0)"));
}

TEST_F(AdmissionQueueTest, LooksAgainByItselfWhileAnybodyWaits) {
  open();
  const Visit& visit = come("a");
  free["w"] = 1;  // load has decayed, and nobody says so
  run_until([&] {
    home.restart();
    home.poll();
    return visit.outcome.has_value();
  });
  // No request waits: the timer ends.
  home.restart();
  home.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(home.stopped());
}

TEST_F(AdmissionQueueTest, AnExecutorThatEndsTakesItsWaitersAlong) {
  open();
  Cancellation cancellation;  // outlives its listeners
  auto doomed = std::make_unique<boost::asio::io_context>();
  int tries = 0;
  const auto attempt = [&](const config::QueueClass&, Chance) -> Result<Attempted> {
    ++tries;
    return Attempted::Busy;
  };
  boost::asio::co_spawn(*doomed, admission->enter(QueueRequest(), attempt, cancellation),
                        boost::asio::detached);
  doomed->poll();
  EXPECT_EQ(tries, 1);
  come("b");
  EXPECT_EQ(admission->waiting(), 2U);
  free["w"] = 1;
  admission->changed();  // its turn is on the way
  poll();
  EXPECT_THAT(served, IsEmpty());
  doomed.reset();
  poll();
  EXPECT_EQ(tries, 1);
  EXPECT_THAT(served, ElementsAre("b"));
  EXPECT_EQ(admission->waiting(), 0U);
}

TEST_F(AdmissionQueueTest, CancelledBeforeItComesItIsNotTried) {
  open();
  free["w"] = 1;
  Visit& visit = visits.emplace_back();
  visit.cancellation.request(Error(Errc::ClientGone, "left"));
  start([&]() -> test::awaitable<void> {
    visit.outcome = co_await admission->enter(
        QueueRequest(),
        [&](const config::QueueClass&, Chance) -> Result<Attempted> {
          ++visit.tries;
          return Attempted::Taken;
        },
        visit.cancellation);
  });
  poll();
  EXPECT_EQ(why(visit), Errc::ClientGone);
  EXPECT_EQ(visit.tries, 0);
}

// No request that comes while so much waits would be served in time at this speed.
TEST_F(AdmissionQueueTest, BehindOneWhoWaitsForAWorkerOfItsOwnNobodyWaitsLong) {
  config.longest_wait = milliseconds(1);
  open();
  QueueRequest endless = pinned("never");
  endless.prompt_tokens = 1'000'000'000;
  endless.constrained = true;
  come(endless);
  for (int i = 0; i < 50; ++i) {
    const Visit& visit = come("next");
    now_free("w");
    EXPECT_TRUE(visit.outcome && *visit.outcome);
  }
  for (Visit& visit : visits) visit.cancellation.request(Error(Errc::ClientGone, "gone"));
  poll();
}

TEST_F(AdmissionQueueTest, WhoWouldWaitTooLongIsRefusedAtOnce) {
  config.longest_wait = milliseconds(1);
  open();
  QueueRequest endless = pinned("never");
  endless.prompt_tokens = 1'000'000'000;
  come(endless);
  // At first the speed is unknown.
  EXPECT_FALSE(come("first").outcome);
  now_free("w");
  const Visit* refused = nullptr;
  while (refused == nullptr) {
    const Visit& visit = come("next");
    if (visit.outcome)
      refused = &visit;
    else
      now_free("w");
  }
  ASSERT_EQ(why(*refused), Errc::QueueFull);
  EXPECT_EQ(refused->tries, 0);
  EXPECT_EQ(refused->outcome->error().http_status(), 429);
  EXPECT_TRUE(refused->outcome->error().retry_after());
  EXPECT_THAT(*refused->outcome->error().figures(), HasSubstr(R"("limit_kind":"wait_ms")"));
  EXPECT_THAT(registry.render(),
              HasSubstr(R"(baton_queue_refused_total{model="m",reason="wait"} 1)"));

  // But not who says how long it will wait, goes before the others, or takes long itself.
  EXPECT_FALSE(come(waiting_at_most(std::chrono::hours(1))).outcome);
  QueueRequest first;
  first.strict_priority = 1;
  EXPECT_FALSE(come(first).outcome);
  QueueRequest slow;
  slow.compute_seconds = 1e12;
  EXPECT_FALSE(come(slow).outcome);
  // Nor who may find a worker of its own.
  QueueRequest constrained = pinned("its own");
  constrained.constrained = true;
  EXPECT_EQ(why(come(constrained)), Errc::QueueFull);
  free["its own"] = 1;
  const Visit& taken = come(constrained);
  EXPECT_TRUE(taken.outcome && *taken.outcome);
  for (Visit& visit : visits) visit.cancellation.request(Error(Errc::ClientGone, "gone"));
  poll();
  EXPECT_EQ(admission->waiting(), 0U);
  // If no request waits, any may.
  EXPECT_FALSE(come("last").outcome);
  now_free("w");
}

// The rate is measured while cached prompts are served: few tokens, each of which takes long.
TEST_F(AdmissionQueueTest, WhatWaitsCountsBySecondsAndNotByTokens) {
  config.longest_wait = seconds(2);
  open();
  const auto request = [](std::uint64_t tokens, double takes) {
    QueueRequest made;
    made.prompt_tokens = tokens;
    made.compute_seconds = takes;
    return made;
  };
  QueueRequest last = pinned("never");
  last.compute_seconds = 1e-6;
  come(last);
  // As much work is served as there is time, or more.
  const auto begun = Clock::now();
  while (Clock::now() - begun < milliseconds(300)) {
    come(request(1, 1));
    now_free("w");
  }
  for (int i = 0; i < 10; ++i) come(request(1'000'000'000, 0.01));
  EXPECT_FALSE(come(request(10, 0.01)).outcome) << "a tenth of a second is before it";
  for (int i = 0; i < 10; ++i) come(request(1, 1e9));
  EXPECT_EQ(why(come(request(10, 0.01))), Errc::QueueFull);
  for (Visit& visit : visits) visit.cancellation.request(Error(Errc::ClientGone, "gone"));
  poll();
}

// A request with an objective: its first token is due in `left`, and comes `after` its booking.
QueueRequest due_in(milliseconds left, milliseconds after, bool queue_late = false) {
  QueueRequest made;
  made.compute_seconds = std::chrono::duration<double>(after).count();
  const Clock::time_point now = Clock::now();
  made.due = Due{.received = now,
                 .foreseen_by = now + left - after,
                 .by = now + left - after,
                 .after = after,
                 .objective = left,
                 .queue_late = queue_late};
  return made;
}

TEST_F(AdmissionQueueTest, WhoWouldBeLateIsRefusedAtOnce) {
  open();
  come(due_in(seconds(60), seconds(20)), "first");
  come(due_in(seconds(60), seconds(20)), "second");
  // 40 s of work wait, for one worker.
  const Visit& late = come(due_in(seconds(59), seconds(20)), "late");
  ASSERT_EQ(why(late), Errc::SloUnattainable);
  EXPECT_TRUE(late.outcome->error().retry_after());
  EXPECT_THAT(registry.render(),
              HasSubstr(R"(baton_queue_refused_total{model="m",reason="slo"} 1)"));
  QueueRequest two_workers = due_in(seconds(59), seconds(20));
  two_workers.workers = 2;
  EXPECT_FALSE(come(two_workers, "in time").outcome);
  EXPECT_FALSE(come("without objective").outcome);
  now_free("w", 4);
  EXPECT_EQ(served.size(), 4U);
  EXPECT_EQ(admission->waiting(), 0U);
}

TEST_F(AdmissionQueueTest, ShorterRequestsDoNotMakeAnAdmittedOneLate) {
  config::QueueClass one = queue_class("one");
  one.order = config::QueueOrder::Shortest;
  open({one});
  come(due_in(seconds(60), milliseconds(1'000)), "first");
  // A second of work is before it, and a tenth of a second may come.
  come(due_in(milliseconds(3'100), seconds(2)), "long");
  for (const char* name : {"a", "b", "c", "d"}) {
    EXPECT_FALSE(come(due_in(seconds(60), milliseconds(40)), name).outcome);
  }
  // It could only go before "long".
  EXPECT_EQ(why(come(due_in(milliseconds(1'500), milliseconds(40)), "late")),
            Errc::SloUnattainable);
  now_free("w", 6);
  EXPECT_THAT(served, testing::ElementsAre("a", "b", "first", "long", "c", "d"));
}

TEST_F(AdmissionQueueTest, ALateRequestThatQueuesBehindDelaysNoOther) {
  config::QueueClass one = queue_class("one");
  one.order = config::QueueOrder::Shortest;
  open({one});
  come(due_in(seconds(60), seconds(2)), "first");
  EXPECT_FALSE(come(due_in(seconds(4), seconds(3), true), "late").outcome);
  EXPECT_FALSE(come(due_in(seconds(60), seconds(2)), "next").outcome);
  EXPECT_FALSE(come(due_in(seconds(60), seconds(1)), "shorter").outcome);
  now_free("w", 4);
  EXPECT_THAT(served, testing::ElementsAre("shorter", "first", "next", "late"));
}

TEST_F(AdmissionQueueTest, WhoFindsAWorkerIsNotRefusedForWhatWaits) {
  open();
  come(pinned("other"));
  free["w"] = 1;
  // A request waits, so it queues up; but only one whose worker is busy is before it.
  const Visit& visit = come(due_in(seconds(6), seconds(5)), "a");
  EXPECT_TRUE(visit.outcome && *visit.outcome);
  now_free("other");
}

TEST_F(AdmissionQueueTest, WhoseTurnDoesNotComeInTimeIsRefusedThen) {
  open();
  const Visit& visit = come(due_in(milliseconds(30), milliseconds(5)), "a");
  EXPECT_FALSE(visit.outcome);
  run_until([&] { return visit.outcome.has_value(); });
  EXPECT_EQ(why(visit), Errc::SloUnattainable);
  EXPECT_EQ(admission->waiting(), 0U);
}

TEST_F(AdmissionQueueTest, WhoIsLateAndMayWaitIsServedAfterAllOthers) {
  open();
  const Visit& late = come(due_in(milliseconds(10), milliseconds(5), true), "late");
  const Clock::time_point over = Clock::now() + milliseconds(20);
  run_until([&] { return Clock::now() > over; });
  come("other");
  come(due_in(seconds(60), milliseconds(5)), "in time");
  // It foresees at once that it would be late.
  QueueRequest heavy = due_in(milliseconds(5), milliseconds(5), true);
  come(heavy, "late at once");
  EXPECT_FALSE(late.outcome);
  now_free("w", 1);
  now_free("w", 1);
  EXPECT_THAT(served, ElementsAre("other", "in time"));
  now_free("w", 2);
  EXPECT_THAT(served, ElementsAre("other", "in time", "late", "late at once"));
}

TEST_F(AdmissionQueueTest, WhatNobodyCouldServeInTimeWaitsBehindAllOthers) {
  open();
  QueueRequest hopeless;
  hopeless.behind = true;
  come(hopeless, "hopeless");
  come("other");
  now_free("w");
  EXPECT_THAT(served, ElementsAre("other"));
  now_free("w");
  EXPECT_THAT(served, ElementsAre("other", "hopeless"));
}

TEST_F(AdmissionQueueTest, WhoSaysHowLongItWaitsHasNoObjective) {
  open();
  QueueRequest own = due_in(milliseconds(1), milliseconds(5));
  own.max_wait = MaxQueueWait::without_end();
  const Visit& visit = come(own, "own");
  EXPECT_FALSE(visit.outcome);
  now_free("w");
  EXPECT_TRUE(visit.outcome && *visit.outcome);
}

// One that waits for another request, and one that finds no room for that.
TEST_F(AdmissionQueueTest, WhoFollowsHoldsUpNobodyAndOvertakesNobody) {
  config::QueueClass limited = queue_class("limited");
  limited.requests_per_worker = 2;
  open({limited});
  const auto follow = [this](Visit& visit) {
    QueueRequest request = waiting_at_most(milliseconds(500));
    request.prompt_tokens = 10;
    request.follows = [] { return Tried(Attempted::Follows, {.what = "leader"}); };
    start([this, &visit, request]() -> test::awaitable<void> {
      visit.outcome = co_await admission->enter(
          request,
          [this, &visit](const config::QueueClass&, Chance chance) -> Result<Tried> {
            ++visit.tries;
            if (chance == Chance::Usual) return Tried(Attempted::Follows, {.what = "leader"});
            if (free["w"]-- <= 0) return Tried(Attempted::Busy);
            return Tried(Attempted::Taken);
          },
          visit.cancellation);
    });
    poll();
  };
  Visit& follower = visits.emplace_back();
  follow(follower);
  EXPECT_FALSE(follower.outcome);
  free["w"] = 1;
  const Visit& other = come("other");  // nobody waits for a worker
  EXPECT_TRUE(other.outcome && *other.outcome);
  const Visit& waiting = come("waiting");
  EXPECT_FALSE(waiting.outcome);
  free["w"] = 1;  // and nobody has said so yet
  Visit& late = visits.emplace_back();
  follow(late);  // there is no room
  EXPECT_EQ(why(late), Errc::QueueFull);
  EXPECT_EQ(late.tries, 0);
  run_until([&] { return follower.outcome.has_value(); });
  EXPECT_EQ(why(follower), Errc::QueueTimeout);
  admission->changed();
  poll();
  EXPECT_TRUE(waiting.outcome && *waiting.outcome);
}

TEST_F(AdmissionQueueTest, WhoIsTurnedAwayIsToldHowLongItWaited) {
  open();
  come("first");
  Admitted seen;
  Visit& visit = visits.emplace_back();
  start([this, &visit, &seen]() -> test::awaitable<void> {
    visit.outcome = co_await admission->enter(
        waiting_at_most(milliseconds(5)),
        [](const config::QueueClass&, Chance) -> Result<Tried> { return Tried(Attempted::Busy); },
        visit.cancellation, &seen);
  });
  run_until([&] { return visit.outcome.has_value(); });
  EXPECT_EQ(why(visit), Errc::QueueTimeout);
  EXPECT_EQ(seen.policy_class, "all");
  EXPECT_EQ(seen.ahead, 1U);
  EXPECT_GE(seen.waited, milliseconds(5));
  now_free("w");
}

}  // namespace
}  // namespace baton::scheduling
