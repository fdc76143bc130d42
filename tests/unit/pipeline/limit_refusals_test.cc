// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/limit_refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace baton::pipeline {
namespace {

using testing::HasSubstr;

std::string series(Limit limit, int value) {
  return "baton_limit_refusals_total{limit=\"" + std::string(to_string(limit)) + "\"} " +
         std::to_string(value) + "\n";
}

TEST(LimitRefusals, EveryLimitHasANameAndASeriesFromTheStart) {
  telemetry::Registry registry;
  const LimitRefusals refusals(registry);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kLimits; ++i) {
    const auto limit = static_cast<Limit>(i);
    EXPECT_TRUE(names.insert(to_string(limit)).second) << to_string(limit);
    EXPECT_THAT(registry.render(), HasSubstr(series(limit, 0)));
  }
}

TEST(LimitRefusals, CountWhatAnErrorSaysOfItsLimit) {
  telemetry::Registry registry;
  LimitRefusals refusals(registry);
  refusals.count(Error(Errc::EngineProtocol, "too large").with_limit(Limit::ResponseBytes));
  refusals.count(Error(Errc::EngineProtocol, "no JSON"));
  EXPECT_THAT(registry.render(), HasSubstr(series(Limit::ResponseBytes, 1)));
}

TEST(LimitRefusals, OfOneRegistryCountTogether) {
  telemetry::Registry registry;
  LimitRefusals front(registry);
  LimitRefusals pipeline(registry);
  front.count(Limit::ClientWrite);
  pipeline.count(Limit::ClientWrite);
  EXPECT_THAT(registry.render(), HasSubstr(series(Limit::ClientWrite, 2)));
}

}  // namespace
}  // namespace baton::pipeline
