// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/lifecycle.h"

#include "unit/fleet/fleet_fixture.h"

#include <array>
#include <thread>

namespace baton::fleet {
namespace {

using model::Role;
using testing::HasSubstr;

struct LifecycleTest : FleetTest {
  LifecycleTest() {
    add_model("m", {worker(1, Role::Prefill), worker(2, Role::Prefill), worker(3, Role::Decode)});
  }
  Worker& prefill(std::size_t i) { return *model().workers(Role::Prefill).workers().at(i); }
};

std::size_t occurrences(const std::string& text, std::string_view wanted) {
  std::size_t count = 0;
  for (auto at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) ++count;
  return count;
}

TEST_F(LifecycleTest, GoesFromPendingToActiveAndBackAndForthToUnavailable) {
  EXPECT_EQ(model().prefill_state(), PrefillState::Pending);
  prefill(0).set_availability(Availability::Up);
  EXPECT_EQ(model().prefill_state(), PrefillState::Active);
  prefill(0).set_availability(Availability::Down);
  EXPECT_EQ(model().prefill_state(), PrefillState::Active);  // the other one is not Down
  prefill(1).set_availability(Availability::Down);
  EXPECT_EQ(model().prefill_state(), PrefillState::Unavailable);
  prefill(1).set_availability(Availability::Up);
  EXPECT_EQ(model().prefill_state(), PrefillState::Active);
}

TEST_F(LifecycleTest, LogsAndCountsEachTransitionOnce) {
  for (const Availability one : {Availability::Up, Availability::Up, Availability::Down,
                                 Availability::Down, Availability::Up}) {
    prefill(0).set_availability(one);
    prefill(1).set_availability(one);
  }
  EXPECT_EQ(occurrences(lines, "prefill_activated"), 1U);
  EXPECT_EQ(occurrences(lines, "prefill_unavailable"), 1U);
  EXPECT_EQ(occurrences(lines, "prefill_reactivated"), 1U);
  EXPECT_THAT(lines, HasSubstr(R"("model":"m")"));
  const std::string text = metrics.render();
  EXPECT_THAT(text, HasSubstr("baton_prefill_state{model=\"m\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_prefill_transitions_total{model=\"m\",to=\"active\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("baton_prefill_transitions_total{model=\"m\",to=\"unavailable\"} 1\n"));
}

TEST_F(LifecycleTest, DecodeWorkersHaveNoPartInIt) {
  Worker& decode = *model().find_worker("127.0.0.1:3");
  decode.set_availability(Availability::Up);
  EXPECT_EQ(model().prefill_state(), PrefillState::Pending);
  decode.set_availability(Availability::Down);
  EXPECT_EQ(lines, "");
}

TEST_F(LifecycleTest, StatesHaveNames) {
  EXPECT_EQ(to_string(PrefillState::Pending), "pending");
  EXPECT_EQ(to_string(PrefillState::Active), "active");
  EXPECT_EQ(to_string(PrefillState::Unavailable), "unavailable");
}

// What the tables of states say, computed from the whole history instead of step by step.
PrefillState by_the_table(const std::vector<std::pair<std::size_t, Availability>>& history) {
  bool activated = false;
  std::array<Availability, 2> last{Availability::Unknown, Availability::Unknown};
  for (const auto& [who, now] : history) {
    activated = activated || now == Availability::Up;
    last[who] = now;
  }
  if (!activated) return PrefillState::Pending;
  const bool deactivated = last[0] == Availability::Down && last[1] == Availability::Down;
  return deactivated ? PrefillState::Unavailable : PrefillState::Active;
}

TEST(LifecycleOrders, EveryOrderOfNewsUpToSixEndsWhereTheTableSays) {
  using Event = std::pair<std::size_t, Availability>;
  const Event events[] = {{0, Availability::Up},
                          {0, Availability::Down},
                          {1, Availability::Up},
                          {1, Availability::Down}};
  std::size_t explored = 0;
  for (std::size_t length = 0; length <= 6; ++length) {
    std::size_t orders = 1;
    for (std::size_t i = 0; i < length; ++i) orders *= std::size(events);
    for (std::size_t order = 0; order < orders; ++order) {
      telemetry::Registry metrics;
      std::string lines;
      telemetry::Logger log(telemetry::Format::Json, telemetry::Level::Info, lines);
      for (const auto disaggregation :
           {model::Disaggregation::Auto, model::Disaggregation::Required}) {
        config::Model options;
        options.name = std::string(model::to_string(disaggregation));
        options.disaggregation = disaggregation;
        Model model(options, metrics, log);
        telemetry::Gauge gauge;
        for (std::uint16_t i = 1; i <= 3; ++i) {
          model.add(std::make_unique<Worker>(
              model::WorkerId{i}, worker(i, i == 3 ? Role::Decode : Role::Prefill), gauge));
        }
        lines.clear();
        std::vector<Event> history;
        std::size_t transitions = 0;
        PrefillState before = PrefillState::Pending;
        for (std::size_t rest = order, i = 0; i < length; ++i, rest /= std::size(events)) {
          const auto& [who, now] = history.emplace_back(events[rest % std::size(events)]);
          model.workers(Role::Prefill).workers()[who]->set_availability(now);
          const PrefillState expected = by_the_table(history);
          ASSERT_EQ(model.prefill_state(), expected) << "order " << order << " step " << i;
          transitions += expected != before ? 1 : 0;
          before = expected;
          // enforce × (activated, deactivated): only what is enforced can be refused.
          const bool can_serve =
              disaggregation == model::Disaggregation::Auto || expected == PrefillState::Active;
          ASSERT_EQ(model.why_not_ready().empty(), can_serve) << "order " << order;
        }
        ASSERT_EQ(occurrences(lines, "\n"), transitions) << lines;
        ++explored;
      }
    }
  }
  EXPECT_EQ(explored, 2U * (1 + 4 + 16 + 64 + 256 + 1024 + 4096));
}

TEST_F(LifecycleTest, NewsFromManyThreadsEndsWhereTheWorkersAre) {
  for (int round = 0; round < 50; ++round) {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < 2; ++i) {
        threads.emplace_back([&known = prefill(i)] {
          for (int step = 0; step < 20; ++step) {
            known.set_availability(step % 2 == 0 ? Availability::Up : Availability::Down);
          }
        });
      }
    }
    EXPECT_EQ(model().prefill_state(), PrefillState::Unavailable);
  }
}

}  // namespace
}  // namespace baton::fleet
