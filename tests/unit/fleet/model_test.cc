// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/model.h"

#include "unit/fleet/fleet_fixture.h"

namespace baton::fleet {
namespace {

using model::Disaggregation;
using model::Role;
using testing::ElementsAre;
using testing::HasSubstr;

struct ModelTest : FleetTest {};

TEST_F(ModelTest, SortsWorkersByRole) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode), worker(3, Role::Decode),
                  worker(4, Role::Aggregated)});
  EXPECT_EQ(model().workers(Role::Prefill).workers().size(), 1U);
  EXPECT_EQ(model().workers(Role::Decode).workers().size(), 2U);
  EXPECT_EQ(model().workers(Role::Aggregated).workers().size(), 1U);
  EXPECT_EQ(model().workers(Role::Decode).workers()[1]->authority(), "127.0.0.1:3");
}

TEST_F(ModelTest, TellsItsOptions) {
  config::Model& options = add_model("m", {worker(1, Role::Decode)});
  options.disaggregation = Disaggregation::Required;
  options.on_prefill_failure = model::OnPrefillFailure::Fallback;
  options.retries = 5;
  options.migration = 3;
  options.affinity.body_fields = {"user"};
  EXPECT_EQ(model().disaggregation(), Disaggregation::Required);
  EXPECT_EQ(model().on_prefill_failure(), model::OnPrefillFailure::Fallback);
  EXPECT_EQ(model().retries(), 5U);
  EXPECT_EQ(model().migration(), 3U);
  EXPECT_THAT(model().session_fields(), ElementsAre("user"));
}

TEST_F(ModelTest, RemembersSessionsOfPrefillAndDecodeApart) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode)}).affinity.ttl =
      std::chrono::minutes(1);
  const auto lease = model().affinity(Role::Decode).bind("s", {{7}, std::nullopt});
  EXPECT_EQ(model().affinity(Role::Aggregated).find("s"), (routing::Seat{{7}, std::nullopt}));
  EXPECT_EQ(model().affinity(Role::Prefill).find("s"), std::nullopt);
}

TEST_F(ModelTest, HasNoAffinityUnlessConfigured) {
  add_model("m", {worker(1, Role::Decode)});
  EXPECT_FALSE(model().affinity(Role::Decode).enabled());
}

TEST_F(ModelTest, EachRoleFollowsItsOwnPolicy) {
  config::Model& options = add_model("m", {worker(1, Role::Prefill), worker(2, Role::Prefill),
                                           worker(3, Role::Decode), worker(4, Role::Decode)});
  options.policy = model::Policy::RoundRobin;
  options.decode_policy = model::Policy::LeastLoaded;
  // Prefill: in turn, whatever the load. Decode: the free one, whosever turn it is.
  for (const Role role : {Role::Prefill, Role::Decode}) {
    WorkerSet& workers = model().workers(role);
    const auto held = workers.book({}, no_dice);
    const auto second = workers.book({}, no_dice)->worker().id();
    const auto third = workers.book({}, no_dice)->worker().id();
    EXPECT_NE(second, held->worker().id());
    EXPECT_EQ(third == held->worker().id(), role == Role::Prefill);
  }
}

TEST_F(ModelTest, SaysWhichRolesItLacksToServe) {
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
    config::Model& options = one.models.emplace_back();
    options.name = "m";
    options.workers = c.workers;
    telemetry::Registry registry;
    Fleet made(one, registry, log);
    const Model& model = *made.find("m");
    EXPECT_EQ(model.disaggregated(), c.disaggregated);
    if (c.missing.empty()) {
      EXPECT_EQ(model.why_not_ready(), "");
    } else {
      EXPECT_THAT(model.why_not_ready(), HasSubstr(c.missing));
    }
  }
}

TEST_F(ModelTest, IsNotDisaggregatedWhereThatIsOff) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode)}).disaggregation =
      Disaggregation::Off;
  EXPECT_FALSE(model().disaggregated());
  EXPECT_EQ(model().why_not_ready(), "");
}

TEST_F(ModelTest, ThatMayServeWithoutPrefillIsReadyWhateverPrefillDoes) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode)});
  Worker& prefill = *model().find_worker("127.0.0.1:1");
  EXPECT_EQ(model().why_not_ready(), "");
  for (const Availability one : {Availability::Up, Availability::Down, Availability::Up}) {
    prefill.set_availability(one);
    EXPECT_EQ(model().why_not_ready(), "");
  }
}

TEST_F(ModelTest, ThatRequiresPrefillIsReadyOnlyWhileItIsActive) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode)}).disaggregation =
      Disaggregation::Required;
  Worker& prefill = *model().find_worker("127.0.0.1:1");
  EXPECT_THAT(model().why_not_ready(), HasSubstr("no prefill worker has been seen yet"));
  prefill.set_availability(Availability::Up);
  EXPECT_EQ(model().why_not_ready(), "");
  prefill.set_availability(Availability::Down);
  EXPECT_THAT(model().why_not_ready(), HasSubstr("every prefill worker is down"));
  prefill.set_availability(Availability::Up);
  EXPECT_EQ(model().why_not_ready(), "");
  model().find_worker("127.0.0.1:2")->set_availability(Availability::Down);
  EXPECT_THAT(model().why_not_ready(), HasSubstr("no decode worker is up"));
}

TEST_F(ModelTest, ThatRequiresPrefillAndHasNoneIsNotReady) {
  add_model("m", {worker(2, Role::Decode)}).disaggregation = Disaggregation::Required;
  EXPECT_THAT(model().why_not_ready(), HasSubstr("no prefill worker has been seen yet"));
}

TEST_F(ModelTest, WithEveryAnsweringWorkerDownIsNotReady) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode), worker(3, Role::Aggregated)});
  model().find_worker("127.0.0.1:2")->set_availability(Availability::Down);
  EXPECT_EQ(model().why_not_ready(), "");
  model().find_worker("127.0.0.1:3")->set_availability(Availability::Down);
  EXPECT_THAT(model().why_not_ready(), HasSubstr("every worker is down"));
}

}  // namespace
}  // namespace baton::fleet
