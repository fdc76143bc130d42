// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/scheduler.h"

#include "support/io_fixture.h"
#include "telemetry/log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace baton::scheduling {
namespace {

using model::Role;
using namespace std::chrono_literals;

struct SchedulerTest : test::IoFixture {
  void add(Role role, const std::string& name) {
    model::WorkerSpec& made = options.workers.emplace_back();
    made.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(options.workers.size())};
    made.role = role;
    made.name = name;
  }
  // Requests wait while their worker has more than `busy_tokens` to compute.
  void queue(std::uint64_t busy_tokens, std::chrono::milliseconds max_wait = 1min) {
    config::QueueClass& one = options.routing.queue.classes.emplace_back();
    one.name = "default";
    one.busy_tokens = busy_tokens;
    options.routing.queue.patience = max_wait;
  }
  std::shared_ptr<fleet::Model> model() {
    if (!fleet) {
      options.name = "m";
      options.policy = model::Policy::LeastLoaded;
      config::Config all;
      all.models.push_back(options);
      fleet.emplace(all, metrics, log);
    }
    return fleet->find("m");
  }
  ScheduledRequest request(std::uint64_t tokens = 100) {
    return {.model = model(),
            .api = engine::Api::Completions,
            .body = engine::ClientBody::parse(R"({"model":"m","prompt":"p"})").value(),
            .request_id = "id-1",
            .hints = std::make_shared<const Hints>(),
            .prompt_tokens = tokens};
  }
  std::int64_t in_flight() {
    std::int64_t total = 0;
    for (const auto& one : fleet->members()) total += one.worker->in_flight();
    return total;
  }

  // A request that is placed once.
  struct Visit {
    Visit(SchedulerTest& test, ScheduledRequest wanted)
        : request(std::move(wanted)), scheduler(request, test.random, test.metrics) {}
    ScheduledRequest request;
    Scheduler scheduler;
    Cancellation cancellation;
    std::optional<Result<Placement>> placed;
  };
  std::unique_ptr<Visit> visit(std::uint64_t tokens = 100, bool alone = true) {
    auto made = std::make_unique<Visit>(*this, request(tokens));
    start([one = made.get(), alone]() -> test::awaitable<void> {
      one->placed.emplace(co_await one->scheduler.place(alone, one->cancellation));
    });
    return made;
  }
  void wait_for(const Visit& one) {
    run_until([&one] { return one.placed.has_value(); });
  }

  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  Random random = [] { return std::uint64_t{0}; };
  config::Model options;
  std::optional<fleet::Fleet> fleet;
};

TEST_F(SchedulerTest, PlacesThePrefillAndThenADecodeThatCanFollow) {
  add(Role::Prefill, "p1");
  add(Role::Decode, "d1");
  const auto one = visit(100, false);
  wait_for(*one);
  ASSERT_TRUE(*one->placed) << (*one->placed).error().message();
  EXPECT_EQ((*one->placed)->booking.worker().name(), "p1");
  auto decode = one->scheduler.place_decode();
  ASSERT_TRUE(decode) << decode.error().message();
  EXPECT_EQ(decode->booking.worker().name(), "d1");
  EXPECT_EQ(in_flight(), 2);
  EXPECT_EQ(one->scheduler.pool(), one->scheduler.admission().pool);
}

TEST_F(SchedulerTest, APlacementCountsUntilItEnds) {
  add(Role::Aggregated, "a1");
  const auto one = visit();
  wait_for(*one);
  ASSERT_TRUE(*one->placed);
  EXPECT_EQ(in_flight(), 1);
  one->placed.reset();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(SchedulerTest, APreviewTellsWhoWouldServeAndBooksNothing) {
  add(Role::Prefill, "p1");
  add(Role::Decode, "d1");
  const ScheduledRequest asked = request();
  const auto preview = Scheduler::preview(asked, random);
  ASSERT_TRUE(preview) << preview.error().message();
  const auto picked = [](const std::optional<Choice>& choice) {
    return choice->candidates[choice->picked].worker->name();
  };
  EXPECT_EQ(picked(preview->workers.prefill), "p1");
  EXPECT_EQ(picked(preview->workers.decode), "d1");
  EXPECT_FALSE(preview->waits);
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(SchedulerTest, ARequestWaitsForABusyWorkerAndSaysHowLong) {
  add(Role::Aggregated, "a1");
  queue(0);
  const auto first = visit();
  wait_for(*first);
  ASSERT_TRUE(*first->placed);
  const ScheduledRequest asked = request();
  EXPECT_TRUE(Scheduler::preview(asked, random)->waits);

  const auto second = visit();
  run_for(5ms);
  ASSERT_FALSE(second->placed) << "its worker is busy";
  (*first->placed)->booking.prefill_completed();
  wait_for(*second);
  ASSERT_TRUE(*second->placed) << (*second->placed).error().message();
  EXPECT_EQ(second->scheduler.admission().waited.policy_class, "default");
  EXPECT_GT(second->scheduler.admission().waited.queued, 0ns);
  EXPECT_EQ(second->scheduler.admission().waited.refused, "");
}

TEST_F(SchedulerTest, ARequestThatIsNotAdmittedIsToldWhy) {
  add(Role::Aggregated, "a1");
  queue(0, 10ms);
  const auto first = visit();
  wait_for(*first);
  const auto second = visit();
  wait_for(*second);
  ASSERT_FALSE(*second->placed);
  EXPECT_EQ((*second->placed).error().code(), Errc::QueueTimeout);
  EXPECT_EQ(second->scheduler.admission().waited.refused, (*second->placed).error().message());
  EXPECT_EQ(in_flight(), 1);
}

TEST_F(SchedulerTest, AnAdmittedRequestDoesNotQueueForItsNextAttempt) {
  add(Role::Aggregated, "a1");
  queue(0);
  const auto one = visit();
  wait_for(*one);
  ASSERT_TRUE(*one->placed);
  one->scheduler.begin_attempt(2);
  std::optional<Result<Placement>> again;
  start([&]() -> test::awaitable<void> {
    again.emplace(co_await one->scheduler.place(true, one->cancellation));
  });
  run_until([&] { return again.has_value(); });
  ASSERT_TRUE(*again) << "a1 is busy, but the request was admitted: " << again->error().message();
}

TEST_F(SchedulerTest, AWorkerThatFailedTheRequestIsPassedOver) {
  add(Role::Aggregated, "a1");
  add(Role::Aggregated, "a2");
  const auto one = visit();
  wait_for(*one);
  ASSERT_TRUE(*one->placed);
  const std::string failed = (*one->placed)->booking.worker().name();
  one->scheduler.decode_failed((*one->placed)->booking.worker());
  one->placed.reset();
  one->scheduler.begin_attempt(2);
  start([&]() -> test::awaitable<void> {
    one->placed.emplace(co_await one->scheduler.place(true, one->cancellation));
  });
  wait_for(*one);
  ASSERT_TRUE(*one->placed);
  EXPECT_NE((*one->placed)->booking.worker().name(), failed);
}

TEST_F(SchedulerTest, ACancelledRequestLeavesTheQueue) {
  add(Role::Aggregated, "a1");
  queue(0);
  const auto first = visit();
  wait_for(*first);
  const auto second = visit();
  run_for(5ms);
  ASSERT_FALSE(second->placed);
  second->cancellation.request(Error(Errc::ClientGone, "gone"));
  wait_for(*second);
  ASSERT_FALSE(*second->placed);
  EXPECT_EQ((*second->placed).error().code(), Errc::ClientGone);
  EXPECT_EQ(in_flight(), 1);
}

}  // namespace
}  // namespace baton::scheduling
