// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/lifecycle.h"

#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <thread>

namespace baton::fleet {
namespace {

using model::Role;
using testing::HasSubstr;

struct LifecycleTest : FleetTest {
  LifecycleTest() {
    add_model("m", {worker(1, Role::Prefill), worker(2, Role::Prefill), worker(3, Role::Decode)});
  }
  Worker& prefill(std::size_t i) { return *workers(Role::Prefill).members()->workers.at(i); }
  PrefillState state() { return pool().prefill_state(); }
};

TEST_F(LifecycleTest, GoesFromPendingToActiveAndBackAndForthToUnavailable) {
  EXPECT_EQ(state(), PrefillState::Pending);
  prefill(0).answered();
  EXPECT_EQ(state(), PrefillState::Active);
  prefill(1).answered();
  prefill(0).unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(state(), PrefillState::Active);  // the other one is up
  prefill(1).unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(state(), PrefillState::Unavailable);
  prefill(1).answered();
  EXPECT_EQ(state(), PrefillState::Active);
}

TEST_F(LifecycleTest, IsPendingWhileSomebodyHasYetToBeHeardOf) {
  prefill(0).unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(state(), PrefillState::Pending);
  prefill(1).misconfigured("another model");
  EXPECT_EQ(state(), PrefillState::Unavailable);
}

TEST_F(LifecycleTest, CountsNobodyWhoIsAboutToLeave) {
  prefill(0).answered();
  prefill(1).unreachable(Failure::Unreachable, "gone");
  prefill(0).set_draining(true);
  EXPECT_EQ(state(), PrefillState::Unavailable);
  prefill(0).set_draining(false);
  EXPECT_EQ(state(), PrefillState::Active);
}

TEST_F(LifecycleTest, CountsOnWhoeverIsOnTrial) {
  config.health.failures = 1;
  config.health.backoff = std::chrono::milliseconds(0);
  prefill(1).unreachable(Failure::Unreachable, "gone");
  prefill(0).failed(Failure::Broken, "broken");
  EXPECT_EQ(state(), PrefillState::Unavailable);
  prefill(0).answered();
  EXPECT_EQ(state(), PrefillState::Active) << "half open";
  const auto trial = test::book_worker(workers(Role::Prefill), {}, no_dice);
  EXPECT_EQ(prefill(0).condition(), Condition::OnTrial);
  EXPECT_EQ(state(), PrefillState::Active);
}

TEST_F(LifecycleTest, LogsAndCountsEachTransitionOnce) {
  const auto all = [this](void (*tell)(Worker&)) {
    for (std::size_t i = 0; i < 2; ++i) tell(prefill(i));
  };
  const auto up = [](Worker& one) { one.answered(); };
  const auto down = [](Worker& one) { one.unreachable(Failure::Unreachable, "gone"); };
  for (const auto tell : {+up, +up, +down, +down, +up}) all(tell);
  EXPECT_EQ(occurrences(lines, "prefill_activated"), 1U);
  EXPECT_EQ(occurrences(lines, "prefill_unavailable"), 1U);
  EXPECT_EQ(occurrences(lines, "prefill_reactivated"), 1U);
  EXPECT_THAT(lines, HasSubstr(R"("model":"m","namespace":"default")"));
  const std::string text = metrics.render();
  EXPECT_THAT(text, HasSubstr("baton_prefill_state{model=\"m\",namespace=\"default\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_prefill_transitions_total{model=\"m\",namespace=\"default\","
                              "to=\"active\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("baton_prefill_transitions_total{model=\"m\",namespace=\"default\","
                              "to=\"unavailable\"} 1\n"));
}

TEST_F(LifecycleTest, DecodeWorkersHaveNoPartInIt) {
  Worker& decode = worker_called("127.0.0.1:3");
  decode.answered();
  EXPECT_EQ(state(), PrefillState::Pending);
  decode.unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(state(), PrefillState::Pending);
  EXPECT_EQ(occurrences(lines, "\"prefill_"), 0U);
}

TEST_F(LifecycleTest, StatesHaveNames) {
  EXPECT_EQ(to_string(PrefillState::Pending), "pending");
  EXPECT_EQ(to_string(PrefillState::Active), "active");
  EXPECT_EQ(to_string(PrefillState::Unavailable), "unavailable");
}

enum class Last { Nothing, Up, Down };

// What the two amount to, whatever came before.
PrefillState of_the_two(Last first, Last second) {
  if (first == Last::Up || second == Last::Up) return PrefillState::Active;
  const bool both_down = first == Last::Down && second == Last::Down;
  return both_down ? PrefillState::Unavailable : PrefillState::Pending;
}

TEST(LifecycleOrders, EveryOrderOfNewsUpToSixEndsWhereTheWorkersAre) {
  constexpr std::size_t kEvents = 4;  // of the first or the second worker: up, down
  constexpr std::size_t kLength = 6;
  for (std::size_t order = 0; order < (1U << (2 * kLength)); ++order) {
    std::string lines;
    telemetry::Logger log(telemetry::Format::Json, telemetry::Level::Info, lines);
    WorkerSet prefill(Role::Prefill, model::Policy::RoundRobin);
    Lifecycle lifecycle("m", "n", prefill, log);
    for (std::uint16_t i = 1; i <= 2; ++i) prefill.add(make_worker(i, worker(i, Role::Prefill)));
    Last last[2] = {};
    PrefillState before = PrefillState::Pending;
    std::size_t told = 0;
    for (std::size_t rest = order, i = 0; i < kLength; ++i, rest /= kEvents) {
      const std::size_t who = rest % 2;
      last[who] = rest % kEvents < 2 ? Last::Up : Last::Down;
      Worker& known = *prefill.members()->workers[who];
      last[who] == Last::Up ? known.answered() : known.unreachable(Failure::Unreachable, "gone");
      lifecycle.observe();
      const PrefillState expected = of_the_two(last[0], last[1]);
      ASSERT_EQ(prefill_state(prefill), expected) << "order " << order << " step " << i;
      told += (expected == PrefillState::Active) != (before == PrefillState::Active) ? 1 : 0;
      before = expected;
    }
    ASSERT_EQ(occurrences(lines, "\n"), told) << lines;
  }
}

TEST_F(LifecycleTest, NewsFromManyThreadsEndsWhereTheWorkersAre) {
  for (int round = 0; round < 50; ++round) {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < 2; ++i) {
        threads.emplace_back([&known = prefill(i)] {
          for (int step = 0; step < 10; ++step) {
            known.answered();
            known.unreachable(Failure::Unreachable, "gone");
          }
        });
      }
    }
    EXPECT_EQ(state(), PrefillState::Unavailable);
    EXPECT_THAT(metrics.render(),
                HasSubstr("baton_prefill_state{model=\"m\",namespace=\"default\"} 2\n"));
  }
  EXPECT_EQ(occurrences(lines, "prefill_unavailable"),
            occurrences(lines, "prefill_activated") + occurrences(lines, "prefill_reactivated"));
}

}  // namespace
}  // namespace baton::fleet
