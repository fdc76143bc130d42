// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/pool_queue.h"

#include "fleet/fleet.h"
#include "telemetry/log.h"
#include "unit/scheduling/book_worker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace baton::scheduling {
namespace {

struct PoolQueueTest : testing::Test {
  std::shared_ptr<PoolQueue> make_queue(const config::Queue& queue) {
    config::Routing routing;
    routing.queue = queue;
    return PoolQueue::of(*pool, routing, model::Policy::Kv, "m", io.get_executor(), metrics);
  }

  boost::asio::io_context io;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  std::shared_ptr<fleet::Pool> pool =
      std::make_shared<fleet::Pool>(config::Model(), "default", metrics, log);
};

TEST_F(PoolQueueTest, IsOneForAPool) {
  EXPECT_EQ(PoolQueue::find(*pool), nullptr);
  config::Queue queue;
  queue.classes.emplace_back().name = "default";
  queue.classes[0].busy_tokens = 0;
  const auto first = make_queue(queue);
  EXPECT_FALSE(first->coalescer());
  EXPECT_EQ(make_queue(queue), first);
  EXPECT_EQ(PoolQueue::find(*pool), first);
  pool->load_notifier().ring();  // nobody waits
}

TEST_F(PoolQueueTest, ThoseWhoFollowAreTriedAgainWhenTheirLeaderEnds) {
  config::Queue queue;
  queue.follow_tokens = 16;
  const auto made = make_queue(queue);
  const std::vector<std::uint64_t> hashes{1, 2, 3};
  const Chain chain{.hashes = hashes, .cached = 0, .block_tokens = 16};
  auto leading = made->coalescer()->lead(chain);
  ASSERT_TRUE(leading);
  std::optional<Result<Admitted>> outcome;
  Cancellation cancellation;
  const auto attempt = [&](const config::QueueClass&, Chance) {
    const auto leader = made->coalescer()->find(chain);
    return Result<Tried>(leader ? Tried(Attempted::Follows, leader->awaits())
                                : Tried(Attempted::Taken));
  };
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        outcome = co_await made->admission().enter({}, attempt, cancellation);
      },
      boost::asio::detached);
  io.poll();
  EXPECT_EQ(made->admission().waiting(), 1U);
  leading->done();
  io.poll();
  EXPECT_TRUE(outcome && *outcome);
}

// The default namespace has a pool also while it has no workers.
TEST_F(PoolQueueTest, ObjectivesOfANamespaceThatIsGoneAreNotWritten) {
  config::Model options;
  options.name = "m";
  options.routing.slo.emplace().ttft = std::chrono::milliseconds(300);
  fleet::Model served(options, metrics, log);
  std::vector<std::shared_ptr<fleet::Worker>> workers;
  for (const std::string name_space : {"blue", "default"}) {
    model::WorkerSpec spec;
    spec.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(workers.size() + 1)};
    spec.role = model::Role::Aggregated;
    spec.name_space = name_space;
    workers.push_back(std::make_shared<fleet::Worker>(model::WorkerId{workers.size() + 1}, spec,
                                                      config::Health()));
    PoolQueue::of(*served.add(workers.back()), options.routing, options.policy, "m",
                  io.get_executor(), metrics);
  }
  const std::string series = R"(baton_slo_attainment{model="m",namespace=)";
  EXPECT_NE(metrics.render().find(series + "\"blue\""), std::string::npos);
  EXPECT_NE(metrics.render().find(series + "\"default\""), std::string::npos);
  for (const auto& worker : workers) served.remove(*worker);
  EXPECT_EQ(metrics.render().find(series), std::string::npos);
}

// Requests that wait by the old options are served by what those who came by the new ones give back.
TEST_F(PoolQueueTest, WhoWaitsAtAReloadHearsOfWhatIsServedAfterIt) {
  config::Config config;
  config::Model& options = config.models.emplace_back();
  options.name = "m";
  options.policy = model::Policy::Kv;
  config::QueueClass& one = options.routing.queue.classes.emplace_back();
  one.name = "default";
  one.busy_tokens = 0;
  model::WorkerSpec& spec = options.workers.emplace_back();
  spec.endpoint = {"127.0.0.1", 1};
  spec.role = model::Role::Aggregated;
  fleet::Fleet fleet(config, metrics, log);
  const Random dice = [] { return std::uint64_t{0}; };
  const auto prompt = std::make_shared<KnownPrompt>();
  prompt->tokens = 100;
  const auto book = [&](fleet::Pool& from) {
    WorkerRequirements requirements;
    requirements.prompt = prompt;
    requirements.busy = BusyThreshold{.tokens = 0, .share = {}};
    return test::book_worker(from.workers(model::Role::Aggregated), requirements, dice);
  };

  const auto before = fleet.find("m")->choose({}, dice);
  boost::asio::io_context never_run;  // so that nobody is rescued by the recheck timer
  const auto old_queue = PoolQueue::of(*before, options.routing, options.policy, "m",
                                       never_run.get_executor(), metrics);
  config.models[0].routing.queue.classes[0].order = config::QueueOrder::Lcfs;
  fleet.configure(config.models);
  const auto after = fleet.find("m")->choose({}, dice);
  ASSERT_NE(before, after);
  auto running = book(*after);
  ASSERT_TRUE(running);

  std::optional<Result<Admitted>> outcome;
  std::optional<fleet::Booking> booked;
  Cancellation cancellation;
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        outcome = co_await old_queue->admission().enter(
            {},
            [&](const config::QueueClass&, Chance) -> Result<Tried> {
              auto tried = book(*before);
              if (!tried) return Tried(Attempted::Busy);
              booked = std::move(*tried);
              return Tried(Attempted::Taken);
            },
            cancellation);
      },
      boost::asio::detached);
  io.poll();
  EXPECT_FALSE(outcome);
  running->prefill_completed();
  io.restart();
  io.poll();
  EXPECT_TRUE(outcome && *outcome);
}

TEST(QueueDefaults, AreThePolicys) {
  const config::Queue plain = PoolQueue::with_defaults({}, model::Policy::Kv);
  EXPECT_TRUE(plain.classes.empty());
  EXPECT_EQ(plain.follow_tokens, 0U);
  const config::Queue late = PoolQueue::with_defaults({}, model::Policy::Ttft);
  ASSERT_EQ(late.classes.size(), 1U);
  EXPECT_TRUE(late.classes[0].late);
  EXPECT_TRUE(late.classes[0].queues());
  EXPECT_EQ(late.classes[0].order, config::QueueOrder::Shortest);
  config::Routing hurried;
  hurried.queue.longest_wait = std::chrono::milliseconds(7);
  EXPECT_EQ(PoolQueue::with_defaults(hurried, model::Policy::Ttft).longest_wait,
            std::chrono::milliseconds(7));
  EXPECT_GT(late.follow_tokens, 0U);
  // Who only follows needs a place, but does not wait for workers.
  config::Routing follow;
  follow.queue.follow_tokens = 100;
  const config::Queue following = PoolQueue::with_defaults(follow, model::Policy::Kv);
  ASSERT_EQ(following.classes.size(), 1U);
  EXPECT_FALSE(following.classes[0].queues());
}

TEST(QueueDefaults, LeaveWhatIsConfigured) {
  config::Routing routing;
  routing.queue.classes.emplace_back().name = "mine";
  routing.queue.classes[0].busy_share = 4;
  routing.queue.follow_tokens = 0;
  const config::Queue kept = PoolQueue::with_defaults(routing, model::Policy::Ttft);
  EXPECT_EQ(kept, routing.queue);
}

TEST(QueueDefaults, GiveTheModelsObjectiveToClassesWithoutTheirOwn) {
  config::Routing routing;
  routing.slo = config::Slo{.ttft = std::chrono::seconds(1), .itl = {}, .queue_late = false};
  const config::Queue alone = PoolQueue::with_defaults(routing, model::Policy::Ttft);
  ASSERT_EQ(alone.classes.size(), 1U);
  EXPECT_EQ(alone.classes[0].slo, routing.slo);
  EXPECT_EQ(PoolQueue::with_defaults(routing, model::Policy::Kv).classes.size(), 1U);
  routing.queue.classes.emplace_back().name = "usual";
  routing.queue.classes.emplace_back().name = "batch";
  routing.queue.classes[1].slo =
      config::Slo{.ttft = std::chrono::seconds(60), .itl = {}, .queue_late = true};
  const config::Queue both = PoolQueue::with_defaults(routing, model::Policy::Ttft);
  EXPECT_EQ(both.classes[0].slo, routing.slo);
  EXPECT_TRUE(both.classes[0].late) << "or nobody of it would wait";
  EXPECT_EQ(both.classes[1].slo->ttft, std::chrono::seconds(60));
}

}  // namespace
}  // namespace baton::scheduling
