// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace baton::app {
namespace {

using testing::HasSubstr;
using testing::Not;

struct ServicesTest : testing::Test {
  ~ServicesTest() override {
    if (services) services->cpu.join();
  }
  Services& make(config::Config config = {}) {
    if (config.cpu_threads == 0) config.cpu_threads = 1;
    services = std::make_unique<Services>(std::move(config), log, [] {});
    return *services;
  }
  // Of a series without labels, or with these as the page writes them.
  std::string value_of(const std::string& series) const {
    const std::string page = "\n" + services->metrics.render();
    const std::size_t at = page.find("\n" + series + " ");
    if (at == page.npos) return "none";
    const std::size_t begin = at + series.size() + 2;
    return page.substr(begin, page.find('\n', begin) - begin);
  }

  std::string logged;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, logged};
  std::unique_ptr<Services> services;
};

TEST_F(ServicesTest, CountAndLogExceptionsThatNobodyCaught) {
  Services& made = make();
  EXPECT_EQ(value_of("baton_escaped_exceptions_total"), "0");
  made.report(std::make_exception_ptr(std::runtime_error("what went wrong")));
  EXPECT_EQ(value_of("baton_escaped_exceptions_total"), "1");
  EXPECT_THAT(logged, HasSubstr("\"event\":\"task_failed\""));
  EXPECT_THAT(logged, HasSubstr("what went wrong"));
  logged.clear();
  made.report(std::make_exception_ptr(7));  // one that says nothing
  EXPECT_EQ(value_of("baton_escaped_exceptions_total"), "2");
  EXPECT_THAT(logged, HasSubstr("\"error\":\"unknown\""));
}

TEST_F(ServicesTest, MemoryHasTheLimitOfTheConfiguration) {
  config::Config config;
  config.limits.memory = std::size_t{64} << 20U;
  EXPECT_EQ(make(config).memory.limit(), std::size_t{64} << 20U);
  EXPECT_EQ(value_of("baton_memory_limit_bytes"), "67108864");
  EXPECT_EQ(value_of("baton_memory_used_bytes"), "0");
}

TEST_F(ServicesTest, MemoryMayBeWithoutALimit) {
  config::Config config;
  config.limits.memory = 0;
  make(config);
  EXPECT_EQ(value_of("baton_memory_limit_bytes"), "0");
}

TEST_F(ServicesTest, MemoryIsAPartOfTheMachinesWhereNothingIsSaid) {
  EXPECT_GT(make().memory.limit(), 0U);
}

TEST_F(ServicesTest, ClientsHaveLimitsOnlyWhereThereIsOne) {
  EXPECT_EQ(make().clients, nullptr);
  services->cpu.join();
  config::Config config;
  config.client_limits.requests = 3;
  EXPECT_NE(make(config).clients, nullptr);
}

TEST_F(ServicesTest, EveryModelIsCountedFromTheStart) {
  config::Config config;
  config.models.resize(2);
  config.models[0].name = "first";
  config.models[1].name = "second";
  make(config);
  const std::string page = services->metrics.render();
  EXPECT_THAT(page, HasSubstr("{model=\"first\""));
  EXPECT_THAT(page, HasSubstr("{model=\"second\""));
  EXPECT_THAT(page, Not(HasSubstr("{model=\"third\"")));
}

TEST_F(ServicesTest, TheyBeginNow) {
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const std::int64_t before = now();
  const Services& made = make();
  EXPECT_GE(made.started_at, before);
  EXPECT_LE(made.started_at, now());
  EXPECT_FALSE(made.draining.load());
  EXPECT_EQ(made.client_connections.load(), 0U);
  EXPECT_EQ(made.tls, nullptr);
}

TEST_F(ServicesTest, LagIsObservedInBoundsFromUnnoticeableToSevere) {
  make().loop_lag.observe(0.0015);
  EXPECT_EQ(value_of("baton_loop_lag_seconds_bucket{le=\"0.001\"}"), "0");
  EXPECT_EQ(value_of("baton_loop_lag_seconds_bucket{le=\"0.002\"}"), "1");
  EXPECT_EQ(value_of("baton_loop_lag_seconds_count"), "1");
}

}  // namespace
}  // namespace baton::app
