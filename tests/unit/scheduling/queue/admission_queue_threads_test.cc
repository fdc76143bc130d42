// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "allocations.h"
#include "io_threads.h"
#include "scheduling/queue/admission_queue.h"

#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <random>
#include <thread>

namespace baton::scheduling {
namespace {

using boost::asio::awaitable;

config::Queue two_classes() {
  config::Queue made;
  made.classes.resize(2);
  made.classes[0].name = "a";
  made.classes[1].name = "b";
  made.classes[1].order = config::QueueOrder::Wspt;
  for (config::QueueClass& each : made.classes) each.busy_tokens = 1;
  return made;
}

// Workers that take so many requests at a time.
struct Workers {
  std::array<std::atomic<int>, 3> places{1, 2, 1};

  bool take(std::size_t worker) {
    int left = places[worker].load();
    while (left > 0) {
      if (places[worker].compare_exchange_weak(left, left - 1)) return true;
    }
    return false;
  }
};

// A request; it gives its place back after some steps.
awaitable<void> visit(std::shared_ptr<AdmissionQueue> admission, Workers& workers,
                      std::uint64_t seed, std::atomic<int>& admitted) {
  std::mt19937_64 random(seed);
  QueueRequest request;
  request.policy_class = random() % 2 == 0 ? "a" : "b";
  request.prompt_tokens = 1 + random() % 100;
  request.tenant = std::to_string(random() % 3);
  const std::size_t pin = random() % 6;  // three of them are no worker's
  if (pin < 3) request.awaits.what = std::to_string(pin);
  std::size_t taken = 0;
  const auto attempt = [&](const config::QueueClass&, Chance) -> Result<Attempted> {
    for (std::size_t worker = 0; worker < 3; ++worker) {
      if (pin < 3 && pin != worker) continue;
      if (!workers.take(worker)) continue;
      taken = worker;
      return Attempted::Taken;
    }
    std::this_thread::yield();  // somebody gives a place back just now
    return Attempted::Busy;
  };
  Cancellation cancellation;
  const auto outcome = co_await admission->enter(request, attempt, cancellation);
  if (!outcome) co_return;
  ++admitted;
  for (std::uint64_t steps = random() % 3; steps > 0; --steps) co_await step_back();
  ++workers.places[taken];
  admission->changed();
}

TEST(AdmissionQueueThreads, NoWakeUpIsLost) {
  constexpr int kClients = 60;
  constexpr int kVisits = 100;
  telemetry::Registry registry;
  boost::asio::io_context never_run;  // so that nobody is rescued by the recheck timer
  const config::Queue config = two_classes();
  const auto admission = std::make_shared<AdmissionQueue>(config, never_run.get_executor(),
                                                          QueueMetrics(registry, "m", config));
  Workers workers;
  std::atomic<int> admitted{0};
  IoThreads threads(4);
  for (std::uint64_t client = 0; client < kClients; ++client) {
    threads.start([&, client]() -> awaitable<void> {
      for (std::uint64_t i = 0; i < kVisits; ++i)
        co_await visit(admission, workers, client * kVisits + i, admitted);
    });
  }
  EXPECT_TRUE(threads.all_ended()) << admission->waiting() << " wait for ever";
  EXPECT_EQ(admitted, kClients * kVisits);
  EXPECT_EQ(admission->waiting(), 0U);
  EXPECT_EQ(workers.places[0] + workers.places[1] + workers.places[2], 4);
}

TEST(AdmissionQueueThreads, WhoGoesLeavesNothingBehind) {
  constexpr int kClients = 60;
  constexpr int kVisits = 50;
  telemetry::Registry registry;
  boost::asio::io_context never_run;
  const config::Queue config = two_classes();
  const auto admission = std::make_shared<AdmissionQueue>(config, never_run.get_executor(),
                                                          QueueMetrics(registry, "m", config));
  std::atomic<int> places{2};
  std::atomic<int> ended{0};
  IoThreads threads(4);
  for (std::uint64_t client = 0; client < kClients; ++client) {
    threads.start([&, client]() -> awaitable<void> {
      std::mt19937_64 random(client);
      const auto executor = co_await boost::asio::this_coro::executor;
      for (int i = 0; i < kVisits; ++i) {
        const auto cancellation = std::make_shared<Cancellation>();
        QueueRequest request;
        request.prompt_tokens = 10;
        request.max_wait = random() % 4 == 0 ? MaxQueueWait::none()
                           : random() % 2 == 0
                               ? MaxQueueWait{.at_most = std::chrono::milliseconds(1)}
                               : MaxQueueWait::without_end();
        // Half of them are cancelled, some before they have come.
        if (random() % 2 == 0) {
          boost::asio::co_spawn(
              executor,
              [cancellation, steps = random() % 8]() -> awaitable<void> {
                for (std::uint64_t step = 0; step < steps; ++step) co_await step_back();
                cancellation->request(Error(Errc::ClientGone, "left"));
              },
              boost::asio::detached);
        }
        const auto attempt = [&](const config::QueueClass&, Chance) -> Result<Attempted> {
          int left = places.load();
          while (left > 0) {
            if (places.compare_exchange_weak(left, left - 1)) return Attempted::Taken;
          }
          return Attempted::Busy;
        };
        const auto outcome = co_await admission->enter(request, attempt, *cancellation);
        ++ended;
        if (!outcome) continue;
        co_await step_back();
        ++places;
        admission->changed();
      }
    });
  }
  EXPECT_TRUE(threads.all_ended()) << admission->waiting() << " wait for ever";
  EXPECT_EQ(ended, kClients * kVisits);
  EXPECT_EQ(places, 2);
  EXPECT_EQ(admission->waiting(), 0U);
  EXPECT_EQ(admission->totals(0), Totals());
}

TEST(AdmissionQueueThreads, ACrowdTakesLittleMemoryAndGivesItBack) {
  constexpr std::size_t kCrowd = 100'000;
  telemetry::Registry registry;
  boost::asio::io_context never_run;
  const config::Queue config = two_classes();
  const auto admission = std::make_shared<AdmissionQueue>(config, never_run.get_executor(),
                                                          QueueMetrics(registry, "m", config));
  const std::size_t before = allocated_bytes();
  {
    std::deque<Cancellation> cancellations(kCrowd);
    boost::asio::io_context io{1};
    const auto attempt = [](const config::QueueClass&, Chance) -> Result<Attempted> {
      return Attempted::Busy;
    };
    for (std::size_t i = 0; i < kCrowd; ++i) {
      QueueRequest request;
      request.policy_class = i % 2 == 0 ? "a" : "b";
      request.prompt_tokens = i;
      request.tenant = "tenant " + std::to_string(i % 1000);
      request.awaits.what = "*";
      boost::asio::co_spawn(io, admission->enter(request, attempt, cancellations[i]),
                            boost::asio::detached);
    }
    io.poll();
    EXPECT_EQ(admission->waiting(), kCrowd);
    EXPECT_LT((allocated_bytes() - before) / kCrowd, 4096U);
    for (Cancellation& cancellation : cancellations)
      cancellation.request(Error(Errc::ClientGone, "left"));
    io.restart();
    io.poll();
    EXPECT_EQ(admission->waiting(), 0U);
  }
  // What the test's own io_context and cancellations had has gone with them.
  EXPECT_LT(allocated_bytes(), before + 64 * 1024);
}

}  // namespace
}  // namespace baton::scheduling
