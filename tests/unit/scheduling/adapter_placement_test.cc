// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Who gets a request for an adapter, asked of WorkerSet: that is where it is chosen.
#include "scheduling/adapter_placement.h"

#include "fleet/worker_set.h"
#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <map>
#include <random>
#include <set>

namespace baton::scheduling {
namespace {

using fleet::Booking;
using fleet::Forecasts;
using fleet::LoadNotifier;
using fleet::make_worker;
using fleet::worker;
using fleet::Worker;
using fleet::WorkerSet;

using model::Policy;
using testing::HasSubstr;

struct AdapterPlacementTest : testing::TestWithParam<Policy> {
  // Workers 1 to 8.
  AdapterPlacementTest() {
    for (std::uint16_t port = 1; port <= 8; ++port)
      set.add(make_worker(port, worker(port, model::Role::Aggregated)));
  }
  fleet::Worker& number(std::size_t i) { return *set.members()->workers[i - 1]; }
  // Who had it how often, of a hundred.
  std::map<std::uint64_t, int> served(const WorkerRequirements& requirements) {
    std::map<std::uint64_t, int> counts;
    for (int i = 0; i < 100; ++i) {
      const auto booking = test::book_worker(set, requirements, random);
      if (booking) ++counts[booking->worker().id().value];
    }
    return counts;
  }
  static WorkerRequirements requirements_for(std::string adapter, bool on_demand = false) {
    WorkerRequirements requirements;
    requirements.adapter = fleet::AdapterRequest{std::move(adapter), on_demand};
    return requirements;
  }

  fleet::WorkerSet set{model::Role::Aggregated, GetParam()};
  Random random = std::mt19937_64(7);
};

INSTANTIATE_TEST_SUITE_P(Policies, AdapterPlacementTest,
                         testing::Values(Policy::RoundRobin, Policy::LeastLoaded, Policy::Kv,
                                         Policy::Ttft));

TEST_P(AdapterPlacementTest, ThoseWhoHaveItShareIt) {
  number(2).has_adapters({"poet"});
  number(5).has_adapters({"clerk", "poet"});
  for (const bool on_demand : {false, true}) {
    const auto counts = served(requirements_for("poet", on_demand));
    EXPECT_EQ(counts.size(), 2U);
    EXPECT_GT(counts.at(2), 20);
    EXPECT_GT(counts.at(5), 20);
  }
  EXPECT_EQ(served({}).size(), 8U) << "the model itself is everybody's";
}

TEST_P(AdapterPlacementTest, WhereNobodyHasItNobodyIsAsked) {
  number(3).has_adapters({"clerk"});
  const auto booking = test::book_worker(set, requirements_for("poet"), random);
  ASSERT_FALSE(booking);
  EXPECT_EQ(booking.error().code(), Errc::NoEligibleWorker);
  EXPECT_THAT(booking.error().message(), HasSubstr("has loaded the adapter 'poet'"));
  EXPECT_FALSE(scheduling::can_serve(set, requirements_for("poet")));
}

TEST_P(AdapterPlacementTest, OneLoadsWhatNobodyHasAndAlwaysTheSame) {
  std::set<std::uint64_t> homes;
  for (int i = 0; i < 40; ++i) {
    const auto counts = served(requirements_for("adapter " + std::to_string(i), true));
    ASSERT_EQ(counts.size(), 1U);
    homes.insert(counts.begin()->first);
  }
  EXPECT_GT(homes.size(), 5U) << "not all adapters in one place";
}

TEST_P(AdapterPlacementTest, WhoeverElseLeavesAnAdapterStaysWhereItIs) {
  const WorkerRequirements requirements = requirements_for("poet", true);
  const std::uint64_t home = served(requirements).begin()->first;
  number(home % 8 + 1).set_draining(true);
  EXPECT_EQ(served(requirements).begin()->first, home);
  number(home).set_draining(true);
  const auto moved = served(requirements);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_NE(moved.begin()->first, home);
}

TEST_P(AdapterPlacementTest, WhoNamesAWorkerMeansIt) {
  number(2).has_adapters({"poet"});
  WorkerRequirements requirements = requirements_for("poet");
  requirements.pin = Pin{"4", {}};
  EXPECT_EQ(served(requirements), (std::map<std::uint64_t, int>{{4, 100}}));
}

TEST_P(AdapterPlacementTest, NarrowsWhatElseIsAskedAndNeverWidensIt) {
  number(2).has_adapters({"poet"});
  number(5).has_adapters({"poet"});
  WorkerRequirements requirements = requirements_for("poet");
  requirements.allowed = {"5", "6"};
  EXPECT_EQ(served(requirements), (std::map<std::uint64_t, int>{{5, 100}}));
  requirements.allowed = {"6"};
  EXPECT_FALSE(test::book_worker(set, requirements, random));
  requirements.adapter->on_demand = true;
  EXPECT_EQ(served(requirements), (std::map<std::uint64_t, int>{{6, 100}}));
}

}  // namespace
}  // namespace baton::scheduling
