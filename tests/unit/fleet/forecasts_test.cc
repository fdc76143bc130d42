// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/forecasts.h"

#include "fleet/worker_set.h"
#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <random>
#include <thread>

namespace baton::fleet {
namespace {

using model::Policy;
using model::Role;
using std::chrono::milliseconds;
using testing::HasSubstr;

struct ForecastsTest : testing::Test {
  void prompts(int count, double expected, double actual) {
    for (int i = 0; i < count; ++i) forecasts->add(expected, actual, now += milliseconds(10));
  }
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  std::shared_ptr<Forecasts> forecasts =
      std::make_shared<Forecasts>("m", "blue", Role::Prefill, metrics, log);
  Time now = Clock::now();
};

TEST_F(ForecastsTest, CountByHowMuchTheyMiss) {
  prompts(3, 1, 1);
  prompts(1, 1, 4);
  const std::string page = metrics.render();
  EXPECT_THAT(page,
              HasSubstr(R"(baton_forecast_error_bucket{model="m",role="prefill",le="0.05"} 3)"));
  EXPECT_THAT(page,
              HasSubstr(R"(baton_forecast_error_bucket{model="m",role="prefill",le="0.7"} 3)"));
  EXPECT_THAT(page,
              HasSubstr(R"(baton_forecast_error_bucket{model="m",role="prefill",le="0.8"} 4)"));
}

TEST_F(ForecastsTest, TheLogSaysOnceThatLoadDecidesAndOnceThatItDoesNoMore) {
  prompts(100, 1, 1.2);
  EXPECT_EQ(lines, "");
  prompts(300, 1, 50);
  EXPECT_EQ(occurrences(lines, R"("event":"forecasts_judged")"), 1U) << lines;
  EXPECT_THAT(lines, HasSubstr(R"("namespace":"blue")"));
  EXPECT_THAT(lines, HasSubstr(R"("decides":"load")"));
  EXPECT_EQ(forecasts->trust(now), 0);
  prompts(300, 1, 1.2);
  EXPECT_EQ(occurrences(lines, R"("event":"forecasts_judged")"), 2U) << lines;
  EXPECT_THAT(lines, HasSubstr(R"("decides":"forecast")"));
  EXPECT_EQ(forecasts->trust(now), 1);
}

// Two workers, of which b is taken for far slower than it is.
struct MisledTest : ForecastsTest {
  MisledTest() {
    for (int i = 1; i <= 2; ++i) {
      model::WorkerSpec spec = worker(static_cast<std::uint16_t>(i), Role::Prefill);
      spec.name = std::string(1, static_cast<char>('a' + i - 1));
      set.add(std::make_shared<Worker>(model::WorkerId{static_cast<std::uint64_t>(i)}, spec,
                                       config::Health{}, siblings));
    }
    learn("a", milliseconds(10));
    learn("b", milliseconds(1000));
  }
  void learn(std::string_view name, milliseconds took) {
    scheduling::Pace& pace = set.find(name)->pace(0);
    for (int i = 0; i < 50; ++i) {
      pace.sent(now);
      pace.computed(now + took, 1000);
    }
  }
  Result<Booking> book() {
    scheduling::WorkerRequirements requirements;
    auto prompt = std::make_shared<scheduling::KnownPrompt>();
    prompt->tokens = 1000;
    requirements.prompt = prompt;
    requirements.part = scheduling::Part::Prefill;
    requirements.busy = scheduling::BusyThreshold{.tokens = {}, .share = {}, .late = true};
    return test::book_worker(set, requirements, random);
  }
  Worker::Siblings siblings{.pace = std::make_shared<scheduling::SiblingPace>()};
  WorkerSet set{Role::Prefill, Policy::Ttft, {}, {}, forecasts};
  Random random = std::mt19937_64(7);
};

TEST_F(MisledTest, WhereForecastsAreTrustedTheWorkerTakenForSlowGetsNothing) {
  std::vector<Booking> running;
  for (int i = 0; i < 4; ++i) {
    auto booking = book();
    ASSERT_TRUE(booking);
    EXPECT_EQ(booking->worker().name(), "a");
    running.push_back(std::move(*booking));
  }
}

TEST_F(MisledTest, WhereTheyMissTheWorkerWithFewerRequestsGetsTheNextAndNobodyWaits) {
  prompts(300, 1, 50);
  ASSERT_EQ(forecasts->trust(Clock::now()), 0);
  std::vector<Booking> running;
  for (int i = 0; i < 40; ++i) {
    auto booking = book();
    ASSERT_TRUE(booking) << booking.error().message();
    running.push_back(std::move(*booking));
  }
  EXPECT_EQ(set.find("a")->in_flight(), 20);
  EXPECT_EQ(set.find("b")->in_flight(), 20);
}

TEST_F(MisledTest, WhatBecomesOfBookingsIsWhatTheyAreJudgedBy) {
  const auto before = metrics.render();
  EXPECT_THAT(before, HasSubstr(R"(baton_forecast_error_count{model="m",role="prefill"} 0)"));
  auto booking = book();
  ASSERT_TRUE(booking);
  booking->sent();
  booking->prefill_completed();
  EXPECT_THAT(metrics.render(),
              HasSubstr(R"(baton_forecast_error_count{model="m",role="prefill"} 1)"));
  booking->prefill_completed();
  auto dropped = book();  // nobody knows when it would have been computed
  ASSERT_TRUE(dropped);
  dropped->sent();
  *dropped = Booking();
  EXPECT_THAT(metrics.render(),
              HasSubstr(R"(baton_forecast_error_count{model="m",role="prefill"} 1)"));
}

}  // namespace
}  // namespace baton::fleet
