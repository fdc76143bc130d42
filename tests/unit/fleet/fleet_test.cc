// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/fleet.h"

#include "unit/fleet/fleet_fixture.h"

#include <set>
#include <utility>

namespace baton::fleet {
namespace {

using model::Role;

TEST_F(FleetTest, FindsAModelByItsNameAndItsAliases) {
  add_model("large", {worker(1, Role::Aggregated)}).aliases = {"big", "gpt-x"};
  add_model("small", {worker(2, Role::Aggregated)});
  Model* const large = fleet().find("large");
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(large->name(), "large");
  EXPECT_EQ(fleet().find("big"), large);
  EXPECT_EQ(fleet().find("gpt-x"), large);
  EXPECT_NE(fleet().find("small"), large);
  for (const char* unknown : {"", "Large", "large ", "medium"}) {
    EXPECT_EQ(fleet().find(unknown), nullptr) << unknown;
  }
}

TEST_F(FleetTest, GivesEveryWorkerAnIdOfItsOwn) {
  add_model("a", {worker(1, Role::Aggregated), worker(2, Role::Aggregated)});
  add_model("b", {worker(1, Role::Prefill), worker(2, Role::Decode)});
  std::set<model::WorkerId> ids;
  for (const auto& model : fleet().models()) {
    for (const Role role : {Role::Prefill, Role::Decode, Role::Aggregated}) {
      for (const auto& member : std::as_const(*model).workers(role).workers()) {
        ids.insert(member->id());
      }
    }
  }
  EXPECT_EQ(ids.size(), 4U);
}

TEST_F(FleetTest, FindsAWorkerOfAnyModel) {
  model::WorkerSpec named = worker(3, Role::Decode);
  named.name = "d-1";
  add_model("a", {worker(1, Role::Aggregated)});
  add_model("b", {worker(1, Role::Aggregated), worker(2, Role::Prefill), named});
  ASSERT_NE(fleet().find_worker("d-1"), nullptr);
  EXPECT_EQ(fleet().find_worker("d-1")->authority(), "127.0.0.1:3");
  EXPECT_EQ(fleet().find_worker("127.0.0.1:3"), fleet().find_worker("d-1"));
  EXPECT_EQ(fleet().find_worker("127.0.0.1:2")->spec().role, Role::Prefill);
  EXPECT_EQ(fleet().find_worker("127.0.0.1:1"), model("a").find_worker("127.0.0.1:1"));
  EXPECT_EQ(fleet().find_worker("nobody"), nullptr);
}

TEST_F(FleetTest, CountsWhatRunsOnEachWorker) {
  add_model("m", {worker(1, Role::Decode), worker(2, Role::Decode)});
  WorkerSet& workers = model().workers(Role::Decode);
  const auto first = workers.book({}, no_dice);
  const auto second = workers.book({}, no_dice);
  ASSERT_TRUE(first && second);
  EXPECT_THAT(metrics.render(),
              testing::HasSubstr("baton_worker_in_flight{model=\"m\",worker=\"127.0.0.1:2\","
                                 "role=\"decode\"} 1"));
}

}  // namespace
}  // namespace baton::fleet
