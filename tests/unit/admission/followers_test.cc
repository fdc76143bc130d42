// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "admission/followers.h"

#include "io_threads.h"
#include "support/io_fixture.h"

#include <boost/asio/detached.hpp>

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <random>

namespace baton::admission {
namespace {

using Clock = Followers::Clock;
constexpr Clock::time_point kNever = Clock::time_point::max();

Chain prompt(std::uint64_t family, std::size_t blocks = 20) {
  Chain made;
  for (std::size_t i = 0; i < blocks; ++i) made.hashes.push_back((family << 32) + i);
  made.block_tokens = 16;
  return made;
}

class FollowersTest : public test::IoFixture {
 protected:
  struct Visit {
    std::optional<Result<Joined>> outcome;
    Cancellation cancellation;
    bool leads() const { return outcome && *outcome && (*outcome)->leading; }
    bool followed() const { return outcome && *outcome && (*outcome)->followed; }
  };

  Visit& come(Chain chain, Clock::time_point deadline = kNever) {
    Visit& visit = visits.emplace_back();
    start([this, &visit, chain = std::move(chain), deadline]() -> test::awaitable<void> {
      visit.outcome = co_await followers->join(chain, deadline, visit.cancellation);
    });
    poll();
    return visit;
  }
  void poll() {
    io.restart();
    io.poll();
  }
  static Leading& leading(Visit& visit) { return (*visit.outcome)->leading; }

  std::shared_ptr<Followers> followers = std::make_shared<Followers>(100);
  std::list<Visit> visits;
};

TEST_F(FollowersTest, AStampedeIsLedByOne) {
  Visit& leader = come(prompt(1));
  EXPECT_TRUE(leader.leads());
  EXPECT_FALSE(leader.followed());
  std::vector<Visit*> rest;
  for (int i = 0; i < 100; ++i) rest.push_back(&come(prompt(1)));
  EXPECT_EQ(followers->waiting(), 100U);
  Visit& other = come(prompt(2));
  EXPECT_TRUE(other.leads());
  leading(leader).done();
  EXPECT_FALSE(leader.leads());
  poll();
  for (const Visit* visit : rest) {
    EXPECT_TRUE(visit->followed());
    EXPECT_FALSE(visit->leads());
  }
  EXPECT_EQ(followers->waiting(), 0U);
}

TEST_F(FollowersTest, WhenALeaderFailsOneTakesItsPlace) {
  Visit& leader = come(prompt(1));
  Visit& first = come(prompt(1));
  Visit& second = come(prompt(1));
  leading(leader) = {};
  poll();
  EXPECT_TRUE(first.leads());
  EXPECT_TRUE(first.followed());
  EXPECT_FALSE(second.outcome);
  leading(first).done();
  poll();
  EXPECT_TRUE(second.followed());
  EXPECT_FALSE(second.leads());
}

TEST_F(FollowersTest, WhoIsCancelledIsGoneAtOnceAndLeadsNobody) {
  Visit& leader = come(prompt(1));
  Visit& first = come(prompt(1));
  Visit& second = come(prompt(1));
  Visit& third = come(prompt(1));
  first.cancellation.request(Error(Errc::ClientGone, "left"));
  poll();
  ASSERT_TRUE(first.outcome);
  EXPECT_EQ(first.outcome->error().code(), Errc::ClientGone);
  EXPECT_EQ(followers->waiting(), 2U);
  leading(leader) = {};  // the second is promoted, and leaves before it hears of it
  second.cancellation.request(Error(Errc::ClientGone, "left"));
  poll();
  EXPECT_EQ(second.outcome->error().code(), Errc::ClientGone);
  EXPECT_TRUE(third.leads());
}

TEST_F(FollowersTest, NobodyWaitsLongerThanHeSaid) {
  Visit& leader = come(prompt(1));
  Visit& visit = come(prompt(1), Clock::now() + std::chrono::milliseconds(5));
  run_until([&] { return visit.outcome.has_value(); });
  EXPECT_TRUE(visit.followed());
  EXPECT_FALSE(visit.leads());
  EXPECT_GE((*visit.outcome)->waited, std::chrono::milliseconds(4));
  EXPECT_TRUE(leader.leads());
  EXPECT_EQ(followers->waiting(), 0U);
}

TEST_F(FollowersTest, WhoLeadsWithoutWaitingIsFollowedToo) {
  Leading lead = followers->lead(prompt(1));
  Visit& visit = come(prompt(1));
  EXPECT_FALSE(visit.outcome);
  lead.done();
  poll();
  EXPECT_TRUE(visit.followed());
  EXPECT_FALSE(followers->lead(prompt(1, 3)));  // too short for anybody to wait for
  EXPECT_EQ(followers->blocks(), 0U);
}

TEST_F(FollowersTest, AnExecutorThatEndsTakesItsFollowersAlong) {
  Visit& leader = come(prompt(1));
  Cancellation cancellation;
  auto doomed = std::make_unique<boost::asio::io_context>();
  boost::asio::co_spawn(*doomed, followers->join(prompt(1), kNever, cancellation),
                        boost::asio::detached);
  doomed->poll();
  Visit& last = come(prompt(1));
  EXPECT_EQ(followers->waiting(), 2U);
  leading(leader) = {};  // one is promoted that will never hear of it
  doomed.reset();
  poll();
  EXPECT_TRUE(last.leads());
}

TEST(FollowersThreads, OneLeadsAtATimeAndAllGoOn) {
  constexpr int kClients = 60;
  constexpr int kVisits = 100;
  const auto followers = std::make_shared<Followers>(100);
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
        auto joined = co_await followers->join(prompt(family), kNever, *cancellation);
        ++ended;
        if (!joined || !joined->leading) continue;
        if (++leaders[family] != 1) together = true;
        for (std::uint64_t steps = random() % 4; steps > 0; --steps) co_await step_back();
        --leaders[family];
        if (random() % 2 == 0) joined->leading.done();
      }
    });
  }
  EXPECT_TRUE(threads.all_ended()) << followers->waiting() << " wait for ever";
  EXPECT_EQ(ended, kClients * kVisits);
  EXPECT_FALSE(together);
  EXPECT_EQ(followers->waiting(), 0U);
  EXPECT_EQ(followers->blocks(), 0U);
}

}  // namespace
}  // namespace baton::admission
