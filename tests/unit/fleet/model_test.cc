// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/model.h"

#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <map>

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
  EXPECT_EQ(workers(Role::Prefill).size(), 1U);
  EXPECT_EQ(workers(Role::Decode).size(), 2U);
  EXPECT_EQ(workers(Role::Aggregated).size(), 1U);
  EXPECT_EQ(workers(Role::Decode).members()->workers[1]->authority(), "127.0.0.1:3");
}

TEST_F(ModelTest, TellsTheEnginesOfItsWorkers) {
  model::WorkerSpec other = worker(2, Role::Decode);
  other.engine = model::Engine::Sglang;
  model::WorkerSpec elsewhere = worker(3, Role::Decode);
  elsewhere.engine = model::Engine::Trtllm;
  elsewhere.name_space = "elsewhere";
  add_model("m", {worker(1, Role::Prefill), other, elsewhere});
  EXPECT_EQ(model().engines({Role::Prefill}), model::EngineSet{model::Engine::Vllm});
  EXPECT_EQ(model().engines({Role::Decode}),
            (model::EngineSet{model::Engine::Sglang, model::Engine::Trtllm}));
  EXPECT_TRUE(model().engines({Role::Aggregated}).empty());
  model().remove(*model().find_worker("127.0.0.1:1"));
  EXPECT_TRUE(model().engines({Role::Prefill}).empty());
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
  EXPECT_EQ(model().affinity(Role::Aggregated).find("s"), (scheduling::RankId{{7}, std::nullopt}));
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
    WorkerSet& set = workers(role);
    const auto held = test::book_worker(set, {}, no_dice);
    const auto second = test::book_worker(set, {}, no_dice)->worker().id();
    const auto third = test::book_worker(set, {}, no_dice)->worker().id();
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
  prefill.answered();
  EXPECT_EQ(model().why_not_ready(), "");
  prefill.unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(model().why_not_ready(), "");
  prefill.misconfigured("another model");
  EXPECT_EQ(model().why_not_ready(), "");
}

TEST_F(ModelTest, ThatRequiresPrefillIsReadyOnlyWhileItIsActive) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode)}).disaggregation =
      Disaggregation::Required;
  Worker& prefill = *model().find_worker("127.0.0.1:1");
  EXPECT_THAT(model().why_not_ready(), HasSubstr("no prefill worker has been heard of yet"));
  prefill.answered();
  EXPECT_EQ(model().why_not_ready(), "");
  prefill.unreachable(Failure::Unreachable, "gone");
  EXPECT_THAT(model().why_not_ready(), HasSubstr("every prefill worker is down"));
  prefill.answered();
  EXPECT_EQ(model().why_not_ready(), "");
  model().find_worker("127.0.0.1:2")->unreachable(Failure::Unreachable, "gone");
  EXPECT_THAT(model().why_not_ready(), HasSubstr("no decode worker is up"));
}

TEST_F(ModelTest, ThatRequiresPrefillAndHasNoneIsNotReady) {
  add_model("m", {worker(2, Role::Decode)}).disaggregation = Disaggregation::Required;
  EXPECT_THAT(model().why_not_ready(), HasSubstr("there is no prefill worker"));
}

TEST_F(ModelTest, WithEveryAnsweringWorkerDownIsNotReady) {
  add_model("m", {worker(1, Role::Prefill), worker(2, Role::Decode), worker(3, Role::Aggregated)});
  model().find_worker("127.0.0.1:2")->unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(model().why_not_ready(), "");
  model().find_worker("127.0.0.1:3")->unreachable(Failure::Unreachable, "gone");
  EXPECT_THAT(model().why_not_ready(), HasSubstr("every worker is down"));
}

// Namespaces: old and new deployments of one model, side by side.

struct NamespacesTest : FleetTest {
  static model::WorkerSpec in(std::string name_space, std::uint16_t port, Role role) {
    model::WorkerSpec spec = worker(port, role);
    spec.name_space = std::move(name_space);
    return spec;
  }
  std::string chosen(std::uint64_t dice = 0, const scheduling::Hints& hints = {}) {
    return model().choose(hints, [dice] { return dice; })->name();
  }
  // How many of `throws` dice choose each.
  std::map<std::string, int> shares(std::uint64_t throws) {
    std::map<std::string, int> counts;
    for (std::uint64_t dice = 0; dice < throws; ++dice) ++counts[chosen(dice)];
    return counts;
  }
};

TEST_F(NamespacesTest, EachHasItsOwnWorkers) {
  add_model("m", {in("green", 1, Role::Prefill), in("green", 2, Role::Decode),
                  in("blue", 3, Role::Prefill), in("blue", 4, Role::Decode)});
  ASSERT_EQ(model().pools()->size(), 2U);
  EXPECT_EQ(model().pools()->front()->name(), "blue") << "in order of name";
  EXPECT_EQ(model().pool("green")->workers(Role::Prefill).find("127.0.0.1:3"), nullptr);
  EXPECT_NE(model().pool("blue")->workers(Role::Prefill).find("127.0.0.1:3"), nullptr);
  EXPECT_EQ(model().pool("default"), nullptr);
  EXPECT_NE(model().find_worker("127.0.0.1:4"), nullptr);
}

TEST_F(NamespacesTest, PrefillAndDecodeOfDifferentOnesAreNoPair) {
  add_model("m", {in("blue", 1, Role::Prefill), in("green", 2, Role::Decode)});
  EXPECT_FALSE(model().disaggregated());
  EXPECT_EQ(model().why_not_ready(), "") << "green can serve";
  worker_called("127.0.0.1:2").unreachable(Failure::Unreachable, "gone");
  EXPECT_THAT(model().why_not_ready(), HasSubstr("blue: it has prefill workers but no decode"));
  EXPECT_THAT(model().why_not_ready(), HasSubstr("green: every worker is down"));
}

TEST_F(NamespacesTest, WithoutWorkersItIsAnEmptyOne) {
  add_model("m", {});
  EXPECT_TRUE(model().pools()->empty());
  const auto nobody = model().choose({}, no_dice);
  ASSERT_NE(nobody, nullptr);
  EXPECT_TRUE(nobody->empty());
}

TEST_F(NamespacesTest, GetRequestsInProportionToTheirWorkers) {
  add_model("m", {in("blue", 1, Role::Prefill), in("blue", 2, Role::Decode),
                  in("green", 3, Role::Prefill), in("green", 4, Role::Prefill),
                  in("green", 5, Role::Decode), in("green", 6, Role::Decode),
                  in("green", 7, Role::Aggregated)});
  EXPECT_EQ(shares(400), (std::map<std::string, int>{{"blue", 100}, {"green", 300}}));
}

TEST_F(NamespacesTest, OnlyThoseThatAreReadyGetRequests) {
  add_model("m", {in("blue", 1, Role::Decode), in("green", 2, Role::Decode),
                  in("red", 3, Role::Prefill)});
  EXPECT_EQ(shares(10), (std::map<std::string, int>{{"blue", 5}, {"green", 5}}));
  worker_called("127.0.0.1:1").unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(shares(10), (std::map<std::string, int>{{"green", 10}}));
  worker_called("127.0.0.1:2").unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(shares(9).size(), 3U) << "where none is ready, any may have better luck";
}

TEST_F(NamespacesTest, RequiredDisaggregationIsAskedOfEach) {
  add_model("m", {in("blue", 1, Role::Decode), in("green", 2, Role::Prefill),
                  in("green", 3, Role::Decode)})
      .disaggregation = Disaggregation::Required;
  worker_called("127.0.0.1:2").answered();
  EXPECT_EQ(shares(10), (std::map<std::string, int>{{"green", 10}}));
}

TEST_F(NamespacesTest, APinChoosesTheOneOfItsWorker) {
  add_model("m", {in("blue", 1, Role::Prefill), in("blue", 2, Role::Decode),
                  in("green", 3, Role::Prefill), in("green", 4, Role::Decode)});
  for (const std::uint64_t dice : {0U, 1U}) {
    scheduling::Hints by_decode;
    by_decode.decode = scheduling::Pin{"127.0.0.1:4", {}};
    EXPECT_EQ(chosen(dice, by_decode), "green");
    scheduling::Hints by_prefill;
    by_prefill.prefill = scheduling::Pin{"127.0.0.1:1", {}};
    EXPECT_EQ(chosen(dice, by_prefill), "blue");
  }
  worker_called("127.0.0.1:4").unreachable(Failure::Unreachable, "gone");
  scheduling::Hints hints;
  hints.decode = scheduling::Pin{"127.0.0.1:4", {}};
  EXPECT_EQ(chosen(0, hints), "green") << "a pin is taken or refused, never replaced";
}

TEST_F(NamespacesTest, ASessionStaysInItsOne) {
  add_model("m", {in("blue", 1, Role::Decode), in("green", 2, Role::Decode)}).affinity.ttl =
      std::chrono::minutes(1);
  scheduling::Hints hints;
  hints.session_id = "s";
  const auto lease =
      model().affinity(Role::Decode).bind("s", {worker_called("127.0.0.1:2").id(), {}});
  for (const std::uint64_t dice : {0U, 1U}) EXPECT_EQ(chosen(dice, hints), "green");
  EXPECT_EQ(chosen(0), "blue") << "others go where the dice say";
  worker_called("127.0.0.1:2").unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(chosen(1, hints), "blue") << "not where it cannot be served";
}

}  // namespace
}  // namespace baton::fleet
