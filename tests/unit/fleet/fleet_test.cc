// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace baton::fleet {
namespace {

using model::Role;
using testing::HasSubstr;

model::WorkerSpec worker(std::uint16_t port, Role role) {
  return {{"127.0.0.1", port}, model::Engine::Vllm, role, std::nullopt};
}

std::uint64_t no_dice() { return 0; }

struct FleetTest : testing::Test {
  config::Config config;
  telemetry::Registry metrics;

  config::Model& add_model(std::string name, std::vector<model::WorkerSpec> workers) {
    config::Model& model = config.models.emplace_back();
    model.name = std::move(name);
    model.workers = std::move(workers);
    return model;
  }
};

TEST_F(FleetTest, FindsAModelByItsNameAndItsAliases) {
  add_model("large", {worker(1, Role::Aggregated)}).aliases = {"big", "gpt-x"};
  add_model("small", {worker(2, Role::Aggregated)});
  Fleet fleet(config, metrics);
  Model* const large = fleet.find("large");
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(large->name(), "large");
  EXPECT_EQ(fleet.find("big"), large);
  EXPECT_EQ(fleet.find("gpt-x"), large);
  EXPECT_NE(fleet.find("small"), large);
  for (const char* unknown : {"", "Large", "large ", "medium"}) {
    EXPECT_EQ(fleet.find(unknown), nullptr) << unknown;
  }
}

TEST_F(FleetTest, SortsWorkersByRole) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode), worker(3, Role::Decode),
                  worker(4, Role::Aggregated)});
  Fleet fleet(config, metrics);
  Model& model = *fleet.find("m");
  EXPECT_EQ(model.workers(Role::Prefill).workers().size(), 1U);
  EXPECT_EQ(model.workers(Role::Decode).workers().size(), 2U);
  EXPECT_EQ(model.workers(Role::Aggregated).workers().size(), 1U);
  EXPECT_EQ(model.workers(Role::Decode).workers()[1]->authority(), "127.0.0.1:3");
}

TEST_F(FleetTest, GivesEveryWorkerAnIdOfItsOwn) {
  add_model("a", {worker(1, Role::Aggregated), worker(2, Role::Aggregated)});
  add_model("b", {worker(1, Role::Prefill), worker(2, Role::Decode)});
  const Fleet fleet(config, metrics);
  std::set<model::WorkerId> ids;
  for (const auto& model : fleet.models()) {
    for (const Role role : {Role::Prefill, Role::Decode, Role::Aggregated}) {
      for (const auto& member : std::as_const(*model).workers(role).workers()) {
        ids.insert(member->id());
      }
    }
  }
  EXPECT_EQ(ids.size(), 4U);
}

TEST_F(FleetTest, SaysWhatAModelLacksToServe) {
  const struct {
    std::vector<model::WorkerSpec> workers;
    bool disaggregated;
    std::string missing;
  } cases[] = {
      {{worker(1, Role::Aggregated)}, false, ""},
      {{worker(1, Role::Decode)}, false, ""},
      {{worker(1, Role::Prefill), worker(2, Role::Decode)}, true, ""},
      {{worker(1, Role::Prefill), worker(2, Role::Aggregated)}, false, ""},
      {{worker(1, Role::Prefill)}, false, "no decode worker"},
      {{}, false, "no workers"},
  };
  for (const auto& c : cases) {
    config::Config one;
    config::Model& model_config = one.models.emplace_back();
    model_config.name = "m";
    model_config.workers = c.workers;
    telemetry::Registry registry;
    Fleet fleet(one, registry);
    const Model& model = *fleet.find("m");
    EXPECT_EQ(model.disaggregated(), c.disaggregated);
    if (c.missing.empty()) {
      EXPECT_EQ(model.why_not_ready(), "");
    } else {
      EXPECT_THAT(model.why_not_ready(), HasSubstr(c.missing));
    }
  }
}

TEST_F(FleetTest, BooksInTurnAndCounts) {
  add_model("m", {worker(1, Role::Decode), worker(2, Role::Decode)});
  Fleet fleet(config, metrics);
  WorkerSet& workers = fleet.find("m")->workers(Role::Decode);
  const auto first = workers.book({}, no_dice);
  const auto second = workers.book({}, no_dice);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->worker().id(), second->worker().id());
  EXPECT_THAT(metrics.render(),
              HasSubstr("baton_worker_in_flight{model=\"m\",worker=\"127.0.0.1:2\","
                        "role=\"decode\"} 1"));
}

TEST_F(FleetTest, BooksNobodyWhoIsExcluded) {
  add_model("m", {worker(1, Role::Decode), worker(2, Role::Decode)});
  Fleet fleet(config, metrics);
  WorkerSet& workers = fleet.find("m")->workers(Role::Decode);
  const model::WorkerId first = workers.workers()[0]->id();
  const model::WorkerId second = workers.workers()[1]->id();
  for (int i = 0; i < 4; ++i) {
    const auto booking = workers.book({first}, no_dice);
    ASSERT_TRUE(booking);
    EXPECT_EQ(booking->worker().id(), second);
  }
  EXPECT_TRUE(workers.has_other_than({first}));
  EXPECT_FALSE(workers.has_other_than({second, first}));

  const auto none = workers.book({first, second}, no_dice);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Errc::NoWorkers);
  EXPECT_EQ(none.error().retry_after(), std::chrono::seconds(1));
}

TEST_F(FleetTest, EachRoleFollowsItsOwnPolicy) {
  auto& model_config = add_model("m", {worker(1, Role::Prefill), worker(2, Role::Prefill),
                                       worker(3, Role::Decode), worker(4, Role::Decode)});
  model_config.policy = model::Policy::RoundRobin;
  model_config.decode_policy = model::Policy::LeastLoaded;
  Fleet fleet(config, metrics);
  // Prefill: in turn, whatever the load. Decode: the free one, whosever turn it is.
  for (const Role role : {Role::Prefill, Role::Decode}) {
    WorkerSet& workers = fleet.find("m")->workers(role);
    const auto held = workers.book({}, no_dice);
    const auto second = workers.book({}, no_dice)->worker().id();
    const auto third = workers.book({}, no_dice)->worker().id();
    EXPECT_NE(second, held->worker().id());
    EXPECT_EQ(third == held->worker().id(), role == Role::Prefill);
  }
}

}  // namespace
}  // namespace baton::fleet
