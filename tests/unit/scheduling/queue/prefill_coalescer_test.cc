// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/prefill_coalescer.h"

#include "io_threads.h"
#include "scheduling/queue/admission_queue.h"
#include "support/io_fixture.h"

#include <boost/asio/detached.hpp>
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <random>
#include <vector>

namespace baton::scheduling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint64_t> prompt(std::uint64_t family, std::size_t blocks = 20) {
  std::vector<std::uint64_t> made;
  for (std::size_t i = 0; i < blocks; ++i) made.push_back((family << 32) + i);
  return made;
}

Chain uncached_chain(const std::vector<std::uint64_t>& hashes) {
  return {.hashes = hashes, .cached = 0, .block_tokens = 16};
}

struct PrefillCoalescerTest : testing::Test {
  int changes = 0;
  std::shared_ptr<PrefillCoalescer> followers =
      std::make_shared<PrefillCoalescer>(100, [this] { ++changes; });
};

TEST_F(PrefillCoalescerTest, WhoIsBookedLeads) {
  EXPECT_FALSE(followers->find(uncached_chain(prompt(1))));
  auto leading = followers->lead(uncached_chain(prompt(1)));
  ASSERT_TRUE(leading && *leading);
  const auto first = followers->find(uncached_chain(prompt(1)));
  const auto second = followers->find(uncached_chain(prompt(1)));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->awaits(), second->awaits());
  EXPECT_FALSE(first->over());
  EXPECT_FALSE(followers->find(uncached_chain(prompt(2))));
  // Who was booked in the same moment follows.
  const auto other = followers->lead(uncached_chain(prompt(1)));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().awaits(), first->awaits());
  leading->done();
  EXPECT_TRUE(first->over());
  EXPECT_FALSE(*leading);
  EXPECT_FALSE(followers->find(uncached_chain(prompt(1))));
  EXPECT_EQ(followers->blocks(), 0U);
}

TEST_F(PrefillCoalescerTest, ItIsToldWhenThoseWhoFollowAreToLookAgain) {
  {
    auto alone = followers->lead(uncached_chain(prompt(1)));
    alone->counted();
  }
  EXPECT_EQ(changes, 0) << "nobody followed";
  {
    auto leading = followers->lead(uncached_chain(prompt(1)));
    const auto follower = followers->find(uncached_chain(prompt(1)));
    leading->counted();
    EXPECT_EQ(changes, 1);
    leading = {};  // it fails
    EXPECT_EQ(changes, 2);
    EXPECT_FALSE(follower->over());
  }
  EXPECT_EQ(changes, 2);
}

TEST_F(PrefillCoalescerTest, WhatIsTooShortIsNotWaitedFor) {
  const auto leading = followers->lead(uncached_chain(prompt(1, 3)));
  ASSERT_TRUE(leading);
  EXPECT_FALSE(*leading);
  EXPECT_EQ(followers->blocks(), 0U);
}

// A queue, and requests that follow each other in it.
class FollowingTest : public test::IoFixture {
 protected:
  struct Visit {
    std::optional<Result<Admitted>> outcome;
    Cancellation cancellation;
    LeaderLease leading;
    std::optional<FollowedPrefill> following;
    Clock::time_point until;  // it follows nobody after that
    int tries = 0;
    bool served() const { return outcome && *outcome; }
  };

  void TearDown() override {
    for (Visit& visit : visits) visit.cancellation.request(Error(Errc::ClientGone, "left"));
    poll();
  }
  void open(config::QueueClass only) {
    config.classes = {std::move(only)};
    admission = std::make_shared<AdmissionQueue>(
        config, home.get_executor(), QueueMetrics(registry, "m", config), [this] { return now; });
  }
  static config::QueueClass queueing() {
    config::QueueClass made;
    made.name = "all";
    made.busy_tokens = 1;
    return made;
  }

  Visit& come(std::uint64_t family, QueueRequest request = {}) {
    Visit& visit = visits.emplace_back();
    visit.until = now + PrefillCoalescer::kLongest;
    request.prompt_tokens = 320;
    request.follows = [this, &visit, family]() -> std::optional<Tried> {
      visit.following = followers->find(uncached_chain(prompt(family)));
      if (!visit.following) return std::nullopt;
      return Tried(Attempted::Follows, visit.following->awaits(), visit.until);
    };
    start([this, &visit, family, request]() -> test::awaitable<void> {
      visit.outcome = co_await admission->enter(
          request,
          [&](const config::QueueClass&, Chance chance) { return attempt(visit, family, chance); },
          visit.cancellation);
    });
    poll();
    return visit;
  }
  Result<Tried> attempt(Visit& visit, std::uint64_t family, Chance chance) {
    ++visit.tries;
    const auto hashes = prompt(family);
    const bool may_follow = chance == Chance::Usual && now < visit.until &&
                            !(visit.following && visit.following->over());
    if (may_follow) {
      if (auto found = followers->find(uncached_chain(hashes))) {
        visit.following = std::move(found);
        return Tried(Attempted::Follows, visit.following->awaits(), visit.until);
      }
    }
    if (places == 0) return Tried(Attempted::Busy);
    auto led = followers->lead(uncached_chain(hashes), visit.following);
    if (!led && may_follow) return Tried(Attempted::Follows, led.error().awaits(), visit.until);
    if (led) visit.leading = std::move(*led);
    --places;
    return Tried(Attempted::Taken);
  }
  void poll() {
    io.restart();
    io.poll();
  }
  void later(std::chrono::milliseconds time) {
    now += time;
    admission->changed();
    poll();
  }
  std::size_t served() const {
    return static_cast<std::size_t>(std::ranges::count_if(visits, &Visit::served));
  }

  telemetry::Registry registry;
  boost::asio::io_context home;  // of the recheck timer: it never runs
  config::Queue config;
  std::shared_ptr<AdmissionQueue> admission;
  std::shared_ptr<PrefillCoalescer> followers =
      std::make_shared<PrefillCoalescer>(100, [this] { admission->changed(); });
  std::list<Visit> visits;
  int places = 1'000'000;
  Clock::time_point now = Clock::now();
};

TEST_F(FollowingTest, AStampedeIsLedByOne) {
  open(queueing());
  Visit& leader = come(1);
  EXPECT_TRUE(leader.served());
  for (int i = 0; i < 100; ++i) come(1);
  EXPECT_EQ(admission->waiting(), 100U);
  EXPECT_TRUE(come(2).served());
  EXPECT_EQ(served(), 2U);
  leader.leading.done();
  poll();
  EXPECT_EQ(served(), 102U);
  EXPECT_EQ(admission->waiting(), 0U);
}

// The first of those who wait for the same is tried for all; but each has its own limit.
TEST_F(FollowingTest, NobodyFollowsForTooLongWhoeverIsBeforeIt) {
  open(queueing());
  come(1);  // and is never done
  QueueRequest urgent;
  urgent.strict_priority = 1;
  const Visit& early = come(1);
  later(std::chrono::seconds(10));
  const Visit& urgent_one = come(1, urgent);
  places = 0;
  const Visit& busy = come(2);
  const Visit& follows_at_once = come(1, urgent);
  EXPECT_EQ(follows_at_once.tries, 0);
  places = 10;
  later(std::chrono::milliseconds(19'999));
  EXPECT_TRUE(busy.served());
  EXPECT_FALSE(early.served());
  later(std::chrono::milliseconds(1));
  EXPECT_TRUE(early.served()) << "it has followed for 30 seconds";
  EXPECT_FALSE(urgent_one.served());
  // Nor does one that finds all workers busy then hold up others.
  places = 0;
  later(std::chrono::milliseconds(9'999));
  EXPECT_FALSE(urgent_one.served());
  later(std::chrono::milliseconds(1));
  EXPECT_GT(follows_at_once.tries, 0);
  places = 10;
  later(std::chrono::milliseconds(1));
  EXPECT_TRUE(urgent_one.served());
  EXPECT_TRUE(follows_at_once.served());
  EXPECT_EQ(admission->waiting(), 0U);
}

TEST_F(FollowingTest, AnArrivalThatFollowsDisturbsNobody) {
  open(queueing());
  const Visit& leader = come(1);
  Visit& first = come(1);
  places = 0;
  Visit& busy = come(2);
  const int tries = first.tries + busy.tries;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(come(1).tries, 0);
  EXPECT_EQ(first.tries + busy.tries, tries);
  EXPECT_TRUE(leader.served());
}

TEST_F(FollowingTest, WhoWaitsForAWorkerIsNotFollowed) {
  open(queueing());
  places = 0;
  Visit& first = come(1);
  Visit& second = come(1);
  places = 1;
  admission->changed();
  poll();
  EXPECT_TRUE(first.served());
  EXPECT_TRUE(first.leading);
  EXPECT_FALSE(second.served());
  places = 10;
  admission->changed();
  poll();
  EXPECT_FALSE(second.served()) << "it follows the first";
  first.leading.done();
  poll();
  EXPECT_TRUE(second.served());
}

TEST_F(FollowingTest, WhereALeaderFailsOneOfItsFollowersLeadsTheOthers) {
  open(queueing());
  Visit& leader = come(1);
  std::vector<Visit*> rest;
  for (int i = 0; i < 200; ++i) rest.push_back(&come(1));
  rest[0]->cancellation.request(Error(Errc::ClientGone, "left"));
  poll();
  EXPECT_EQ(admission->waiting(), 199U);
  leader.leading = {};
  poll();
  EXPECT_EQ(served(), 2U);
  EXPECT_TRUE(rest[1]->leading);
  EXPECT_EQ(admission->waiting(), 198U);
  rest[1]->leading = {};
  poll();
  EXPECT_EQ(served(), 3U);
  EXPECT_TRUE(rest[2]->leading);
  EXPECT_LE(rest[150]->tries, 1) << "one is told for all";
  rest[2]->leading.done();
  poll();
  EXPECT_EQ(served(), 200U);
}

TEST_F(FollowingTest, WhereNobodyWaitsForWorkersOneMayStillFollow) {
  config::QueueClass never = queueing();
  never.busy_tokens.reset();
  open(never);
  Visit& leader = come(1);
  Visit& follower = come(1);
  EXPECT_EQ(admission->waiting(), 1U);
  EXPECT_TRUE(come(2).served());
  leader.leading.done();
  poll();
  EXPECT_TRUE(follower.served());
}

TEST_F(FollowingTest, WhoMayNotWaitDoesNotFollow) {
  open(queueing());
  const Visit& leader = come(1);
  QueueRequest fail_fast;
  fail_fast.max_wait = MaxQueueWait::none();
  EXPECT_TRUE(come(1, fail_fast).served());
  EXPECT_TRUE(leader.served());
}

TEST_F(FollowingTest, WhenItsMaxWaitEndsItGoesAlone) {
  open(queueing());
  const Visit& leader = come(1);
  QueueRequest bounded;
  bounded.max_wait = MaxQueueWait{.at_most = std::chrono::milliseconds(300)};
  Visit& follower = come(1, bounded);
  EXPECT_FALSE(follower.outcome);
  run_until([&] { return follower.outcome.has_value(); });
  EXPECT_TRUE(follower.served());
  EXPECT_TRUE(leader.served());
  EXPECT_EQ(admission->waiting(), 0U);
}

TEST_F(FollowingTest, WhereThereIsNoRoomToWaitItGoesAloneAndIsNotTurnedAway) {
  config::QueueClass small = queueing();
  small.requests_per_worker = 1;
  open(small);
  const Visit& leader = come(1);
  const Visit& follower = come(1);
  EXPECT_FALSE(follower.outcome);
  EXPECT_TRUE(come(1).served());
  EXPECT_THAT(registry.render(),
              testing::HasSubstr(R"(baton_queue_refused_total{model="m",reason="requests"} 0)"));
  places = 0;
  const Visit& refused = come(1);
  ASSERT_TRUE(refused.outcome);
  EXPECT_EQ(refused.outcome->error().code(), Errc::QueueFull);
  EXPECT_TRUE(leader.served());
}

TEST(FollowersThreads, OneLeadsAtATimeAndAllGoOn) {
  constexpr int kClients = 60;
  constexpr int kVisits = 100;
  telemetry::Registry registry;
  boost::asio::io_context never_run;  // so that nobody is rescued by the recheck timer
  config::Queue config;
  config.classes.emplace_back().name = "all";
  const auto admission = std::make_shared<AdmissionQueue>(config, never_run.get_executor(),
                                                          QueueMetrics(registry, "m", config));
  const auto followers =
      std::make_shared<PrefillCoalescer>(100, [admission] { admission->changed(); });
  std::array<std::atomic<int>, 3> leaders{};
  std::atomic<int> ended{0};
  std::atomic<bool> together{false};
  IoThreads threads(4);
  for (std::uint64_t client = 0; client < kClients; ++client) {
    threads.start([&, client]() -> boost::asio::awaitable<void> {
      std::mt19937_64 random(client);
      const auto executor = co_await boost::asio::this_coro::executor;
      for (int i = 0; i < kVisits; ++i) {
        const auto cancellation = std::make_shared<Cancellation>();
        const std::size_t family = random() % leaders.size();
        if (random() % 4 == 0) {
          boost::asio::co_spawn(
              executor,
              [cancellation, steps = random() % 6]() -> boost::asio::awaitable<void> {
                for (std::uint64_t step = 0; step < steps; ++step) co_await step_back();
                cancellation->request(Error(Errc::ClientGone, "left"));
              },
              boost::asio::detached);
        }
        LeaderLease leading;
        std::optional<FollowedPrefill> following;
        const auto hashes = prompt(family);
        const auto attempt = [&](const config::QueueClass&, Chance) -> Result<Tried> {
          if (following && following->over()) return Tried(Attempted::Taken);
          following = followers->find(uncached_chain(hashes));
          if (following) return Tried(Attempted::Follows, following->awaits());
          auto led = followers->lead(uncached_chain(hashes), following);
          if (!led) {
            following = led.error();
            return Tried(Attempted::Follows, following->awaits());
          }
          leading = std::move(*led);
          return Tried(Attempted::Taken);
        };
        const auto admitted = co_await admission->enter(QueueRequest(), attempt, *cancellation);
        ++ended;
        if (!admitted || !leading) continue;
        if (++leaders[family] != 1) together = true;
        for (std::uint64_t steps = random() % 4; steps > 0; --steps) co_await step_back();
        --leaders[family];
        if (random() % 2 == 0) leading.done();
      }
    });
  }
  EXPECT_TRUE(threads.all_ended()) << admission->waiting() << " wait for ever";
  EXPECT_EQ(ended, kClients * kVisits);
  EXPECT_FALSE(together);
  EXPECT_EQ(admission->waiting(), 0U);
  EXPECT_EQ(followers->blocks(), 0U);
}

}  // namespace
}  // namespace baton::scheduling
