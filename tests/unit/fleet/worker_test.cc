// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker.h"

#include "unit/fleet/fleet_fixture.h"

#include <thread>
#include <utility>
#include <vector>

namespace baton::fleet {
namespace {

using namespace std::chrono_literals;

model::WorkerSpec spec(std::string host, std::uint16_t port) {
  model::WorkerSpec made;
  made.endpoint = {std::move(host), port};
  return made;
}

struct WorkerLoad : testing::Test {
  std::shared_ptr<Worker> worker = make_worker(1, spec("127.0.0.1", 8001));
  std::shared_ptr<Worker> other = make_worker(2, spec("::1", 8002));
};

TEST_F(WorkerLoad, CountsABookingAsLongAsItLives) {
  {
    const Booking first(worker);
    const Booking second(worker);
    EXPECT_EQ(worker->in_flight(), 2);
  }
  EXPECT_EQ(worker->in_flight(), 0);
}

TEST_F(WorkerLoad, MovingABookingCountsItOnce) {
  Booking first(worker);
  const Booking moved(std::move(first));
  EXPECT_EQ(worker->in_flight(), 1);
  EXPECT_EQ(&moved.worker(), worker.get());
}

TEST_F(WorkerLoad, AssigningABookingLetsTheOldOneGo) {
  Booking kept(worker);
  {
    Booking next(other);
    kept = std::move(next);
  }
  EXPECT_EQ(worker->in_flight(), 0);
  EXPECT_EQ(other->in_flight(), 1);
  EXPECT_EQ(&kept.worker(), other.get());
}

TEST_F(WorkerLoad, AnEmptyBookingCountsNothing) {
  {
    const Booking empty;
  }
  EXPECT_EQ(worker->in_flight(), 0);
}

TEST_F(WorkerLoad, IsCountedOnTheRankItIsBookedFor) {
  model::WorkerSpec ranks = spec("127.0.0.1", 8003);
  ranks.data_parallel_size = 3;
  const auto many = make_worker(3, ranks);
  {
    Booking first(many, 1);
    const Booking second(many, 2);
    EXPECT_EQ(first.rank(), 1U);
    EXPECT_EQ(second.rank_id(), (scheduling::RankId{{3}, 2}));
    EXPECT_EQ(many->in_flight(0), 0);
    EXPECT_EQ(many->in_flight(1), 1);
    EXPECT_EQ(many->in_flight(), 2);
    const Booking moved = std::move(first);
    EXPECT_EQ(moved.rank(), 1U);
    EXPECT_EQ(many->in_flight(1), 1);
  }
  EXPECT_EQ(many->in_flight(), 0);
  EXPECT_EQ(Booking(worker).rank(), std::nullopt);
}

TEST(WorkerName, IsItsIdOrItsAddress) {
  model::WorkerSpec named = spec("h", 1);
  named.name = "w-1";
  const Worker one({7}, named, {});
  const Worker other({8}, spec("h", 2), {});
  EXPECT_EQ(one.name(), "w-1");
  EXPECT_EQ(other.name(), "h:2");
  for (const char* text : {"w-1", "h:1", "7"}) EXPECT_TRUE(one.is_called(text)) << text;
  for (const char* text : {"", "w-2", "h:2", "8", "07"}) EXPECT_FALSE(one.is_called(text)) << text;
}

TEST(WorkerTaints, AreThoseGivenAndItsPlaces) {
  model::WorkerSpec placed = spec("h", 1);
  placed.taints = {"h200"};
  placed.topology = {"rack=r7"};
  const Worker worker({1}, placed, {});
  EXPECT_THAT(worker.taints(), testing::ElementsAre("h200", "baton.topology/rack=r7"));
}

TEST(WorkerTier, FollowsItsConditionItsLoadMarkAndItsDrain) {
  const struct {
    void (*become)(Worker&);
    EligibilityTier tier;
    const char* state;
  } cases[] = {
      {[](Worker&) {}, EligibilityTier::Spare, "new"},
      {[](Worker& one) { one.answered(); }, EligibilityTier::Good, "ready"},
      {[](Worker& one) { one.succeeded(); }, EligibilityTier::Good, "ready"},
      {[](Worker& one) { one.progressed(); }, EligibilityTier::Good, "ready"},
      {[](Worker& one) {
         one.answered();
         one.pushed_back(10s);
       },
       EligibilityTier::Spare, "overloaded"},
      {[](Worker& one) { one.pushed_back(10s); }, EligibilityTier::Spare, "new"},
      {[](Worker& one) { one.unreachable(Failure::Unreachable, "gone"); }, EligibilityTier::Down,
       "unreachable"},
      {[](Worker& one) { one.failed(Failure::Unreachable, "gone"); }, EligibilityTier::Down,
       "unreachable"},
      {[](Worker& one) {
         for (int i = 0; i < 3; ++i) one.failed(Failure::Broken, "broken");
       },
       EligibilityTier::Doubtful, "ejected"},
      {[](Worker& one) { one.misconfigured("other model"); }, EligibilityTier::Out,
       "misconfigured"},
      {[](Worker& one) {
         one.answered();
         one.set_draining(true);
       },
       EligibilityTier::Out, "draining"},
  };
  for (const auto& c : cases) {
    Worker one({1}, spec("h", 1), {});
    c.become(one);
    EXPECT_EQ(one.tier(Clock::now()), c.tier) << c.state;
    EXPECT_EQ(one.state(Clock::now()), c.state);
  }
}

TEST(WorkerTier, SaysWhetherADrainChangedAnything) {
  Worker one({1}, spec("h", 1), {});
  EXPECT_TRUE(one.set_draining(true));
  EXPECT_FALSE(one.set_draining(true));
  EXPECT_TRUE(one.set_draining(false));
}

TEST(WorkerTier, OfOneWhoseTimeOutIsOverIsGoodForOneBooking) {
  config::Health health;
  health.failures = 1;
  health.backoff = 0ms;
  const auto one = std::make_shared<Worker>(model::WorkerId{1}, spec("h", 1), health);
  one->failed(Failure::Broken, "broken");
  one->answered();
  EXPECT_EQ(one->condition(), Condition::HalfOpen);
  EXPECT_EQ(one->tier(Clock::now()), EligibilityTier::Good);
  {
    const Booking trial(one);
    EXPECT_EQ(one->condition(), Condition::OnTrial);
    EXPECT_EQ(one->tier(Clock::now()), EligibilityTier::Doubtful);
    const Booking beside(one);  // somebody had no other way
  }
  EXPECT_EQ(one->condition(), Condition::HalfOpen) << "it told nothing, so another may try";
  {
    Booking trial(one);
    const Booking moved = std::move(trial);
    one->succeeded();
  }
  EXPECT_EQ(one->condition(), Condition::Up);
}

TEST(WorkerTier, OnlyTheEndOfTheTrialItselfEndsIt) {
  config::Health health;
  health.failures = 1;
  health.backoff = 0ms;
  const auto one = std::make_shared<Worker>(model::WorkerId{1}, spec("h", 1), health);
  one->failed(Failure::Broken, "broken");
  one->answered();
  const Booking trial(one);
  {
    const Booking beside(one);
  }
  EXPECT_EQ(one->condition(), Condition::OnTrial);
}

struct Recorder : Watcher {
  void changed(const Worker& worker, const Health::Change& change) override {
    seen.push_back(worker.name() + " " + std::string(to_string(change.from)) + " " +
                   std::string(to_string(change.to)) + " " + change.why);
  }
  std::vector<std::string> seen;
};

TEST(WorkerWatcher, IsToldOfEachChangeOnce) {
  Worker one({1}, spec("h", 1), {});
  const auto first = std::make_shared<Recorder>();
  one.watched_by(first);
  one.answered();
  one.answered();
  one.succeeded();
  one.unreachable(Failure::Unreachable, "gone");
  EXPECT_THAT(first->seen, testing::ElementsAre("h:1 new ready ", "h:1 ready unreachable gone"));
  const auto second = std::make_shared<Recorder>();
  one.watched_by(second);
  one.answered();
  EXPECT_EQ(first->seen.size(), 2U);
  EXPECT_THAT(second->seen, testing::ElementsAre("h:1 unreachable ready "));
}

TEST(WorkerWatcher, MayHaveLeft) {
  Worker one({1}, spec("h", 1), {});
  one.watched_by(std::make_shared<Recorder>());
  one.answered();
  EXPECT_EQ(one.condition(), Condition::Up);
}

TEST(AmendedWorker, IsTheSameEngine) {
  const auto before = make_worker(7, spec("h", 1));
  before->answered();
  const Booking running(before);
  model::WorkerSpec other = spec("h", 1);
  other.name = "named";
  other.taints = {"h200"};
  const auto after = std::make_shared<Worker>(*before, other);
  EXPECT_EQ(after->id(), before->id());
  EXPECT_EQ(after->name(), "named");
  EXPECT_TRUE(after->is_called("7"));
  EXPECT_THAT(after->taints(), testing::ElementsAre("h200"));
  EXPECT_EQ(after->in_flight(), 1);
  EXPECT_EQ(after->condition(), Condition::Up);
  EXPECT_EQ(after->version(), std::nullopt);
  before->runs(model::Version{0, 27, 1});
  EXPECT_EQ(after->version(), (model::Version{0, 27, 1}));
  before->unreachable(Failure::Unreachable, "gone");  // a request that began before tells
  EXPECT_EQ(after->condition(), Condition::Unreachable);
  {
    const Booking next(after);
    EXPECT_EQ(before->in_flight(), 2);
  }
  EXPECT_EQ(after->in_flight(), 1);
}

TEST(WorkerTransfer, IsLearnedFromHandoffs) {
  const auto worker = make_worker(7, spec("h", 1));
  const Booking booking(worker);
  Transfer().arrived();
  for (int i = 0; i < 20; ++i) {
    Transfer transfer(booking, 1000);
    EXPECT_EQ(worker->transfers(0).seconds(1000, Clock::now()) > 0, i >= 5) << i;
    transfer.arrived();
  }
}

TEST(WorkerBatchLimit, IsLearnedFromTheStreamsOfBookings) {
  for (const bool promised : {true, false}) {
    const auto worker = make_worker(7, spec("h", 1));
    std::vector<Booking> streams;
    for (int i = 0; i < 4; ++i) {
      Booking& one = streams.emplace_back(worker);
      if (promised) one.watch_gaps(1ms);
      one.produced(0);
      one.produced(1);
    }
    EXPECT_EQ(worker->batch_limit(0).most(), scheduling::BatchLimit::kUnlimited);
    // However late this thread comes, the tokens are as far apart as that or farther.
    for (std::uint64_t sample = 1; sample <= 3; ++sample) {
      std::this_thread::sleep_for(40ms);
      for (Booking& one : streams) one.produced(1 + 16 * sample);
    }
    EXPECT_EQ(worker->batch_limit(0).most(), promised ? 2 : scheduling::BatchLimit::kUnlimited);
  }
}

TEST(WorkerBatchLimit, GoesOnWithTheEngineAndIsForgottenAtTheEndsOfStreams) {
  const auto before = make_worker(7, spec("h", 1));
  const Time long_ago = Clock::now() - 1h;
  for (int i = 1; i <= 8; ++i)
    before->batch_limit(0).observe(3, 0.01001, 0.01, long_ago + i * 100ms);
  const Worker after(*before, spec("h", 1));
  EXPECT_EQ(after.batch_limit(0).most(), 2);
  Booking whole(before);  // whose tokens nobody sees one by one
  whole.watch_gaps(10ms);
  whole = Booking();
  EXPECT_GT(after.batch_limit(0).most(), 1000);
}

TEST_F(WorkerLoad, IsAddressedByHostAndPort) {
  EXPECT_EQ(worker->authority(), "127.0.0.1:8001");
  EXPECT_EQ(other->authority(), "[::1]:8002");
}

}  // namespace
}  // namespace baton::fleet
