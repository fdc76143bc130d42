// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/pool_advice.h"

#include "unit/fleet/fleet_fixture.h"

#include <chrono>
#include <string>
#include <vector>

namespace baton::fleet {
namespace {

using namespace std::chrono_literals;
using model::Role;
using testing::HasSubstr;

struct PoolAdviceTest : FleetTest {
  PoolAdviceTest() {
    add_model("m", {worker(1, Role::Prefill), worker(2, Role::Prefill), worker(3, Role::Decode)});
  }
  // As if the pool had been watched for long.
  std::vector<Advice> later() { return advise(model(), pool(), begun + 5min); }

  const Time begun = Clock::now() + 1h;  // after the pool has been made
};

TEST_F(PoolAdviceTest, CountsTheWorkersOfEachRole) {
  const PoolFacts facts = facts_of(pool(), Clock::now());
  EXPECT_TRUE(facts.disaggregated);
  EXPECT_EQ(facts.prefill.registered, 2U);
  EXPECT_EQ(facts.prefill.available, 2U) << "nobody has heard of them, and they may be tried";
  EXPECT_EQ(facts.decode.registered, 1U);
  EXPECT_EQ(facts.aggregated.registered, 0U);
}

TEST_F(PoolAdviceTest, OneThatDrainsCountsNoMore) {
  worker_called("127.0.0.1:1").set_draining(true);
  const PoolFacts facts = facts_of(pool(), Clock::now());
  EXPECT_EQ(facts.prefill.registered, 1U);
  EXPECT_EQ(facts.prefill.available, 1U);
}

TEST_F(PoolAdviceTest, OneThatIsDownIsNotAvailable) {
  worker_called("127.0.0.1:3").unreachable(Failure::Unreachable, "gone");
  const PoolFacts facts = facts_of(pool(), Clock::now());
  EXPECT_EQ(facts.decode.registered, 1U);
  EXPECT_EQ(facts.decode.available, 0U);
}

TEST_F(PoolAdviceTest, NobodyKnowsPlacesBeforeALimitWasMet) {
  const PoolFacts facts = facts_of(pool(), Clock::now());
  EXPECT_FALSE(facts.decode.places);
  EXPECT_FALSE(facts.prefill.places);
}

TEST_F(PoolAdviceTest, IsMadeOfWhatCameToThePool) {
  for (int i = 0; i < 600; ++i) pool().work().came(0.4, begun + i * 100ms);
  const auto advice = later();
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_EQ(advice[0].role, Role::Prefill);
  EXPECT_EQ(advice[0].wanted, 5U) << advice[0].reason;
  EXPECT_NEAR(*advice[0].utilization, 2, 0.1);
  EXPECT_EQ(advice[1].role, Role::Decode);
  EXPECT_EQ(advice[1].wanted, 1U);
}

TEST_F(PoolAdviceTest, KeepsTheObjectiveOfTheModel) {
  config.models.front().routing.slo = config::Slo{.ttft = 450ms};
  for (int i = 0; i < 600; ++i) pool().work().came(0.4, begun + i * 100ms);
  const auto advice = later();
  EXPECT_GT(advice[0].wanted, 5U);
  EXPECT_THAT(advice[0].reason, HasSubstr("slo.ttft (450 ms)"));
}

TEST_F(PoolAdviceTest, IsAGaugeOfEachRole) {
  fleet();
  const std::string text = metrics.render();
  EXPECT_THAT(text, HasSubstr("baton_wanted_workers{model=\"m\",namespace=\"default\","
                              "role=\"prefill\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("baton_wanted_workers{model=\"m\",namespace=\"default\","
                              "role=\"decode\"} 1\n"));
  EXPECT_EQ(occurrences(text, "baton_wanted_workers{"), 2U);
}

}  // namespace
}  // namespace baton::fleet
