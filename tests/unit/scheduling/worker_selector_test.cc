// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/worker_selector.h"

#include "handoff/request.h"
#include "support/plain_model.h"
#include "telemetry/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::scheduling {
namespace {

using model::Disaggregation;
using model::Engine;
using model::HandoffMode;
using model::Role;
using testing::HasSubstr;

struct WorkerSelectorTest : testing::Test {
  // Named p1, p2 …, d1 …, a1 …
  model::WorkerSpec& add(Role role, Engine engine = Engine::Vllm) {
    const char letter = role == Role::Prefill ? 'p' : role == Role::Decode ? 'd' : 'a';
    std::size_t number = 1;
    for (const auto& other : config.workers) number += other.role == role ? 1 : 0;
    model::WorkerSpec& made = config.workers.emplace_back();
    made.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(config.workers.size())};
    made.engine = engine;
    made.role = role;
    made.name = letter + std::to_string(number);
    return made;
  }
  void add(Role role, int count) {
    for (int i = 0; i < count; ++i) add(role);
  }
  std::shared_ptr<fleet::Model> model() {
    if (!fleet) {
      config.name = "m";
      config::Config all;
      all.models.push_back(config);
      fleet.emplace(all, metrics, log);
    }
    return fleet->find("m");
  }
  fleet::Worker& worker(const std::string& name) { return *model()->find_worker(name); }
  // A new request.
  WorkerSelector& begin(const std::string& body = R"({"model":"m","prompt":"p"})") {
    selector.reset();
    job.reset();
    job.emplace(ScheduledRequest{.model = model(),
                                 .api = engine::Api::Completions,
                                 .body = engine::ClientBody::parse(body).value(),
                                 .request_id = "id-1",
                                 .hints = std::make_shared<const Hints>(hints)});
    return selector.emplace(*job, random);
  }
  static std::string name(const WorkerSelector::Attempt& booking) {
    return booking ? booking->worker().name() : "error: " + booking.error().message();
  }
  static Errc code(const WorkerSelector::Attempt& booking) {
    return booking ? Errc::Internal : booking.error().code();
  }
  std::int64_t in_flight() {
    std::int64_t total = 0;
    for (const auto& one : fleet->members()) total += one.worker->in_flight();
    return total;
  }
  static std::string picked(const std::optional<Choice>& choice) {
    return choice ? choice->candidates[choice->picked].worker->name() : "none";
  }

  config::Model config = test::model_in_turn();
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  handoff::Counters counters{metrics, "m"};
  std::optional<fleet::Fleet> fleet;
  Hints hints;
  std::uint64_t draw = 0;
  Random random = [this] { return draw; };
  std::optional<ScheduledRequest> job;
  std::optional<WorkerSelector> selector;
};

// Modes: prefill-router.md §3.2.

TEST_F(WorkerSelectorTest, AutoDisaggregatesWhereBothKindsOfWorkersAre) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  EXPECT_TRUE(begin().permissions().disaggregate);
  EXPECT_FALSE(selector->permissions().required);
}

TEST_F(WorkerSelectorTest, AutoServesOnOneWorkerWhereAKindIsMissing) {
  add(Role::Decode, 1);
  EXPECT_FALSE(begin().permissions().disaggregate);
  EXPECT_EQ(name(selector->alone()), "d1");
}

TEST_F(WorkerSelectorTest, RequiredDisaggregatesAlsoWhereNobodyIsThere) {
  config.disaggregation = Disaggregation::Required;
  add(Role::Decode, 1);
  EXPECT_TRUE(begin().permissions().disaggregate);
  EXPECT_TRUE(selector->permissions().required);
  EXPECT_EQ(code(selector->prefill()), Errc::NoWorkers);
}

TEST_F(WorkerSelectorTest, RequiredNeverLetsAnAggregatedWorkerHaveATurn) {
  config.disaggregation = Disaggregation::Required;
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  add(Role::Aggregated, 8);
  for (draw = 0; draw < 9; ++draw) EXPECT_TRUE(begin().permissions().disaggregate) << draw;
}

TEST_F(WorkerSelectorTest, OffServesOnOneWorkerWhoeverIsThere) {
  config.disaggregation = Disaggregation::Off;
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  EXPECT_FALSE(begin().permissions().disaggregate);
  EXPECT_EQ(name(selector->alone()), "d1");
}

TEST_F(WorkerSelectorTest, WhatCannotBeHandedOffGoesToOneWorker) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  EXPECT_FALSE(begin(R"({"model":"m","prompt":"p","echo":true})").permissions().disaggregate);
}

TEST_F(WorkerSelectorTest, TheModelsOptionsArePassedOn) {
  config.on_prefill_failure = model::OnPrefillFailure::Fallback;
  config.retries = 7;
  config.migration = 3;
  add(Role::Decode, 1);
  EXPECT_EQ(begin().permissions().retries, 7U);
  EXPECT_EQ(selector->permissions().on_prefill_failure, model::OnPrefillFailure::Fallback);
  EXPECT_EQ(selector->permissions().migrations, 0U) << "this request cannot be continued";
  job->continuable = true;
  selector.reset();
  EXPECT_EQ(selector.emplace(*job, random).permissions().migrations, 3U);
}

TEST_F(WorkerSelectorTest, OnlySomeDecodeWorkersCanServeAlone) {
  add(Role::Prefill, Engine::Sglang);
  add(Role::Decode, Engine::Sglang);
  EXPECT_FALSE(begin().permissions().decode_may_prefill);
  fleet.reset();
  add(Role::Aggregated, Engine::Sglang);
  draw = 1;  // not its turn
  EXPECT_TRUE(begin().permissions().decode_may_prefill) << "the aggregated one can";
  EXPECT_TRUE(selector->permissions().disaggregate);
  EXPECT_EQ(name(selector->alone()), "a1");
}

TEST_F(WorkerSelectorTest, AggregatedWorkersBesideOthersGetTheirShare) {
  add(Role::Prefill, 1);
  add(Role::Decode, 3);
  add(Role::Aggregated, 1);
  int alone = 0;
  for (draw = 0; draw < 8; ++draw) {
    if (begin().permissions().disaggregate) continue;
    ++alone;
    EXPECT_EQ(name(selector->alone()), "a1");
  }
  EXPECT_EQ(alone, 2) << "one in four, as one of four workers that answer";
}

// Pins: prefill-router.md §2.8.

TEST_F(WorkerSelectorTest, PinsNameTheWorkers) {
  add(Role::Prefill, 3);
  add(Role::Decode, 3);
  hints.prefill = Pin{"p2", {}};
  hints.decode = Pin{"d3", {}};
  begin();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(name(selector->prefill()), "p2");
    EXPECT_EQ(name(selector->decode()), "d3");
  }
}

TEST_F(WorkerSelectorTest, APinOfAnAggregatedWorkerSendsTheRequestThere) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  add(Role::Aggregated, 2);
  hints.decode = Pin{"a2", {}};
  draw = 3;
  EXPECT_FALSE(begin().permissions().disaggregate);
  EXPECT_EQ(name(selector->alone()), "a2");
}

TEST_F(WorkerSelectorTest, APinNobodyHasIsTheRequestsMistake) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  hints.prefill = Pin{"d1", {}};
  EXPECT_EQ(code(begin().prefill()), Errc::InvalidRouting);
  hints.prefill.reset();
  hints.decode = Pin{"p1", {}};
  EXPECT_EQ(code(begin().prefill()), Errc::InvalidRouting) << "before the prefill is sent";
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(WorkerSelectorTest, ThePolicyDirectNeedsPinsAndNamesTheHeader) {
  config.policy = model::Policy::Direct;
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  const auto missing = begin().prefill();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Errc::InvalidRouting);
  EXPECT_THAT(missing.error().message(), HasSubstr("x-baton-prefill-instance-id"));
  hints.prefill = Pin{"p1", {}};
  const auto second = begin().prefill();
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("x-baton-worker-instance-id"));
  hints.decode = Pin{"d1", {}};
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d1");
}

TEST_F(WorkerSelectorTest, NoOtherWorkersThanAllowedAreChosen) {
  add(Role::Prefill, 3);
  add(Role::Decode, 3);
  hints.allowed = {"p3", "d2"};
  begin();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(name(selector->prefill()), "p3");
    EXPECT_EQ(name(selector->decode()), "d2");
  }
  hints.allowed = {"p3"};
  EXPECT_EQ(code(begin().prefill()), Errc::NoEligibleWorker) << "no decode could follow";
}

TEST_F(WorkerSelectorTest, RequiredTaintsHoldForBoth) {
  for (const Role role : {Role::Prefill, Role::Decode}) {
    add(role);
    add(role).taints = {"gold"};
  }
  hints.constraints.required = {"gold"};
  begin();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(name(selector->prefill()), "p2");
    EXPECT_EQ(name(selector->decode()), "d2");
  }
}

TEST_F(WorkerSelectorTest, WhoHasFailedIsNotChosenAgain) {
  add(Role::Prefill, 2);
  add(Role::Decode, 2);
  begin();
  selector->prefill_failed(worker("p1"));
  selector->decode_failed(worker("d2"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(name(selector->prefill()), "p2");
    EXPECT_EQ(name(selector->decode()), "d1");
  }
  selector->prefill_failed(worker("p2"));
  EXPECT_EQ(code(selector->prefill()), Errc::NoWorkers);
  EXPECT_TRUE(begin().prefill()) << "another request may try";
}

TEST_F(WorkerSelectorTest, AfterAFailedHandoffOthersAreAskedForBothParts) {
  add(Role::Prefill, 2);
  add(Role::Decode, 2);
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  selector->handoff_failed(worker("d1"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(name(selector->prefill()), "p2");
    EXPECT_EQ(name(selector->decode()), "d2");
  }
}

TEST_F(WorkerSelectorTest, AfterAFailedHandoffTheOnlyDecodeWorkerServesWithAnotherPrefillWorker) {
  add(Role::Prefill, 2);
  add(Role::Decode, 1);
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  selector->handoff_failed(worker("d1"));
  EXPECT_EQ(name(selector->prefill()), "p2");
  EXPECT_EQ(name(selector->decode()), "d1");
  selector->handoff_failed(worker("d1"));
  EXPECT_FALSE(selector->prefill()) << "it has failed with each of them";
}

TEST_F(WorkerSelectorTest, AfterAFailedHandoffTheOnlyPrefillWorkerServesWithAnotherDecodeWorker) {
  add(Role::Prefill, 1);
  add(Role::Decode, 2);
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  selector->handoff_failed(worker("d2"));
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d1");
}

TEST_F(WorkerSelectorTest, AfterAFailedHandoffADownWorkerIsNotAskedInsteadOfASuspectedOne) {
  add(Role::Prefill, 2);
  add(Role::Decode, 2);
  worker("p2").unreachable(fleet::Failure::Unreachable, "gone");
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  selector->handoff_failed(worker("d1"));
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d2");
}

TEST_F(WorkerSelectorTest, AfterAFailedHandoffTheDecodeWorkerServesAloneOnlyWhereThatIsAllowed) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  for (const auto policy : {model::OnPrefillFailure::Retry, model::OnPrefillFailure::Fallback}) {
    fleet.reset();
    config.on_prefill_failure = policy;
    begin();
    EXPECT_EQ(name(selector->prefill()), "p1");
    selector->handoff_failed(worker("d1"));
    EXPECT_FALSE(selector->prefill());
    EXPECT_EQ(selector->alone().has_value(), policy == model::OnPrefillFailure::Fallback);
  }
}

TEST_F(WorkerSelectorTest, WhatIsChosenIsCountedUntilItIsLetGo) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  begin();
  {
    const auto prefill = selector->prefill();
    const auto decode = selector->decode();
    EXPECT_EQ(worker("p1").in_flight(), 1);
    EXPECT_EQ(worker("d1").in_flight(), 1);
  }
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(WorkerSelectorTest, ADecodeWorkerHandsOffTheSameWay) {
  add(Role::Prefill).handoff = HandoffMode::Mooncake;
  add(Role::Decode, 1);
  add(Role::Decode).handoff = HandoffMode::Mooncake;
  begin();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(name(selector->prefill()), "p1");
    EXPECT_EQ(name(selector->decode()), "d2");
  }
}

TEST_F(WorkerSelectorTest, ARequestWithNoOtherWayAsksWhoDidNotAnswerLately) {
  add(Role::Aggregated, 1);
  worker("a1").unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_EQ(name(begin().alone()), "a1");
}

TEST_F(WorkerSelectorTest, NobodyAsksWhoIsAboutToLeaveOrIsMisconfigured) {
  add(Role::Aggregated, 2);
  worker("a1").set_draining(true);
  worker("a2").misconfigured("another model");
  EXPECT_EQ(code(begin().alone()), Errc::NoWorkers);
}

TEST_F(WorkerSelectorTest, WorkersThatAreDownHaveNoShareOfAMixedFleet) {
  add(Role::Prefill, 1);
  add(Role::Decode, 2);
  add(Role::Aggregated, 1);
  for (const char* decode : {"d1", "d2"})
    worker(decode).unreachable(fleet::Failure::Unreachable, "gone");
  for (draw = 0; draw < 9; ++draw) EXPECT_FALSE(begin().permissions().disaggregate) << draw;
  EXPECT_EQ(name(selector->alone()), "a1");
  worker("d1").answered();
  worker("a1").unreachable(fleet::Failure::Unreachable, "gone");
  for (draw = 0; draw < 9; ++draw) EXPECT_TRUE(begin().permissions().disaggregate) << draw;
}

TEST_F(WorkerSelectorTest, AReleaseGoesToAnyoneOfTheMode) {
  add(Role::Prefill, 1);
  add(Role::Decode, 2);
  hints.allowed = {"p1", "d1"};
  begin();
  EXPECT_EQ(
      name(selector->releaser(*selector->pool(), HandoffMode::NixlPull, {}, {worker("d1").id()})),
      "d2")
      << "the preferences of the request do not matter here";
  EXPECT_FALSE(selector->releaser(*selector->pool(), HandoffMode::Mooncake, {}, {}));
}

TEST_F(WorkerSelectorTest, AReleaseMayGoToSomebodyWhoIsAboutToLeave) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  begin();
  worker("d1").set_draining(true);
  EXPECT_EQ(name(selector->releaser(*selector->pool(), HandoffMode::NixlPull, {}, {})), "d1");
}

TEST_F(WorkerSelectorTest, AReleaseFindsSomebodyWhereRequestsNameTheirWorkers) {
  add(Role::Prefill, 1);
  add(Role::Decode, 2);
  config.policy = model::Policy::Direct;
  hints.prefill = Pin{"p1", {}};
  hints.decode = Pin{"d1", {}};
  begin();
  EXPECT_EQ(
      name(selector->releaser(*selector->pool(), HandoffMode::NixlPull, {}, {worker("d1").id()})),
      "d2");
  Constraints elsewhere;
  elsewhere.required = {"baton.topology/rack=r7"};
  EXPECT_FALSE(selector->releaser(*selector->pool(), HandoffMode::NixlPull, elsewhere, {}))
      << "nobody outside the transfer domain could fetch";
}

// Topology: prefill-router.md §3.8.

struct Topology : WorkerSelectorTest {
  void add_prefill(const std::string& rack,
                   model::Enforcement enforcement = model::Enforcement::Required) {
    add(Role::Prefill).transfer_domain = model::TransferDomain{
        .name = "rack", .value = rack, .enforcement = enforcement, .weight = 1.0};
  }
  void add_decode(const std::string& rack) { add(Role::Decode).topology = {"rack=" + rack}; }
};

TEST_F(Topology, KeepsTheDecodeInThePrefillsDomain) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r2");
  add_decode("r1");
  for (int i = 0; i < 4; ++i) {
    begin();
    const std::string prefill = name(selector->prefill());
    EXPECT_EQ(name(selector->decode()), prefill == "p1" ? "d2" : "d1");
  }
}

TEST_F(Topology, ThatNobodySatisfiesIsAnErrorBeforeAnythingIsSent) {
  add_prefill("r1");
  add_decode("r2");
  const auto nobody = begin().prefill();
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), Errc::NoEligibleWorker);
  EXPECT_THAT(nobody.error().message(), HasSubstr("rack=r1"));
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(Topology, PassesAPrefillWorkerOverThatNoDecodeCouldFollow) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r2");
  for (int i = 0; i < 3; ++i) {
    begin();
    EXPECT_EQ(name(selector->prefill()), "p2");
    EXPECT_EQ(name(selector->decode()), "d1");
  }
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(Topology, OfAFailedHandoffIsNotLeftForAPrefillWorkerThatNoDecodeCouldFollow) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r1");
  add_decode("r1");
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  selector->handoff_failed(worker("d1"));
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d2");
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(Topology, OfAFailedHandoffIsNotLeftWhereTheRequestNamesItsDecodeWorker) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r1");
  hints.decode = Pin{.worker = "d1", .rank = {}};
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  selector->handoff_failed(worker("d1"));
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d1") << "whoever names a worker means it";
}

TEST_F(Topology, WaitsForABusyOneBehindOneThatNoDecodeCouldFollow) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r2");
  const BusyThreshold busy{.tokens = 0, .share = {}};
  begin();
  job->prompt_tokens = 100;
  selector.emplace(*job, random);
  auto running = selector->prefill(busy);
  ASSERT_EQ(name(running), "p2");
  struct Listener : fleet::LoadListener {
    void load_fell() override { ++rung; }
    int rung = 0;
  };
  const auto listener = std::make_shared<Listener>();
  selector->pool()->load_notifier().add(listener);
  WorkerSelector later(*job, random);
  EXPECT_EQ(code(later.prefill(busy)), Errc::WorkersBusy);
  // A request that looked at the other one and gave it back would wake itself for ever.
  EXPECT_EQ(listener->rung, 0);
  running = fail(Errc::Internal, "ended");
  EXPECT_EQ(listener->rung, 1);
  EXPECT_EQ(name(later.prefill(busy)), "p2");
}

TEST_F(Topology, OfAWorkerThatWasGivenBackIsTold) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r2");
  DecisionLog decisions(10);
  begin().explain_to(decisions.open("id-1", "m", 0));
  const auto booking = selector->prefill();
  const auto decided = decisions.find("id-1");
  ASSERT_EQ(decided->decisions.size(), 2U);
  EXPECT_THAT(decided->decisions[0].given_back, HasSubstr("rack=r1"));
  EXPECT_EQ(decided->decisions[1].given_back, "");
}

TEST_F(Topology, DoesNotPassOverAPrefillWorkerThatIsAskedFor) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r2");
  hints.prefill = Pin{"p1", {}};
  EXPECT_EQ(code(begin().prefill()), Errc::NoEligibleWorker);
}

TEST_F(Topology, ThatIsPreferredIsLeftWhereItMustBe) {
  add_prefill("r1", model::Enforcement::Preferred);
  add_decode("r2");
  add_decode("r1");
  begin();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(name(selector->prefill()), "p1");
    EXPECT_EQ(name(selector->decode()), "d2");
  }
  selector->decode_failed(worker("d2"));
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d1");
}

TEST_F(Topology, AddsToWhatTheRequestRequires) {
  add_prefill("r1");
  add_decode("r1");
  add_decode("r1");
  config.workers.back().taints = {"gold"};
  add_decode("r2");
  config.workers.back().taints = {"gold"};
  config.workers.front().taints = {"gold"};
  hints.constraints.required = {"gold"};
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d2");
}

// Sessions: prefill-router.md §4.7.

struct Sessions : WorkerSelectorTest {
  Sessions() {
    config.affinity.ttl = std::chrono::minutes(5);
    add(Role::Prefill, 3);
    add(Role::Decode, 3);
    hints.session_id = "s";
  }
  std::pair<std::string, std::string> serve() {
    begin();
    const std::string prefill = name(selector->prefill());
    return {prefill, name(selector->decode())};
  }
};

TEST_F(Sessions, StayWithTheirWorkers) {
  const auto first = serve();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(serve(), first);
  hints.session_id = "another";
  EXPECT_NE(serve(), first) << "its turn comes";
}

TEST_F(Sessions, AreNotBoundToAWorkerThatWasGivenBack) {
  const auto session_rank = [this] { return model()->affinity(Role::Prefill).find("s"); };
  begin();
  ASSERT_TRUE(selector->prefill());
  ASSERT_TRUE(session_rank());
  selector->given_back("it was of no use");
  EXPECT_EQ(session_rank(), std::nullopt);
  serve();
  const auto before = session_rank();
  ASSERT_TRUE(before);
  begin();
  ASSERT_TRUE(selector->prefill());
  selector->given_back("it was of no use");
  EXPECT_EQ(session_rank(), before);
}

TEST_F(Sessions, AreNotKeptWithoutATimeToLive) {
  config.affinity.ttl = {};
  const auto first = serve();
  EXPECT_NE(serve(), first);
}

TEST_F(Sessions, RebindAfterAFailure) {
  const auto [prefill, decode] = serve();
  begin();
  selector->prefill_failed(worker(prefill));
  const std::string other = name(selector->prefill());
  EXPECT_NE(other, prefill);
  EXPECT_EQ(name(selector->decode()), decode) << "the other half stays";
  EXPECT_EQ(serve(), std::pair(other, decode));
  begin();
  selector->decode_failed(worker(decode));
  selector->prefill().value();
  const std::string next = name(selector->decode());
  EXPECT_NE(next, decode);
  EXPECT_EQ(serve(), std::pair(other, next));
}

TEST_F(Sessions, RebindWhereTheirWorkerIsGone) {
  const auto [prefill, decode] = serve();
  worker(prefill).unreachable(fleet::Failure::Unreachable, "gone");
  const auto second = serve();
  EXPECT_NE(second.first, prefill);
  worker(prefill).answered();
  EXPECT_EQ(serve(), second);
}

TEST_F(Sessions, RebindWhereTheirWorkerMayNotServe) {
  const auto [prefill, decode] = serve();
  hints.allowed = std::vector<std::string>{"d1", "d2", "d3"};
  for (const char* one : {"p1", "p2", "p3"}) {
    if (one != prefill) hints.allowed->push_back(one);
  }
  EXPECT_NE(serve().first, prefill);
}

TEST_F(Sessions, ThatAreElsewhereMakeAPinAMistake) {
  const auto [prefill, decode] = serve();
  hints.prefill = Pin{prefill, {}};
  EXPECT_EQ(serve(), std::pair(prefill, decode)) << "the same is no conflict";
  hints.prefill = Pin{prefill == "p1" ? "p2" : "p1", {}};
  const auto conflict = begin().prefill();
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code(), Errc::InvalidRouting);
  EXPECT_THAT(conflict.error().message(), HasSubstr("x-baton-session-id"));
}

// Namespaces: prefill-router.md §3.6.

struct Namespaces : WorkerSelectorTest {
  void add_to(const std::string& name_space, Role role, Engine engine = Engine::Vllm) {
    add(role, engine).name_space = name_space;
  }
  std::string home() const { return selector->pool()->name(); }
};

TEST_F(Namespaces, PairPrefillAndDecodeWithinOne) {
  for (const char* one : {"blue", "green"}) {
    add_to(one, Role::Prefill);
    add_to(one, Role::Decode);
  }
  for (draw = 0; draw < 4; ++draw) {
    begin();
    const std::string number = home() == "blue" ? "1" : "2";
    EXPECT_EQ(name(selector->prefill()), "p" + number);
    EXPECT_EQ(name(selector->decode()), "d" + number);
  }
}

TEST_F(Namespaces, NeverPairAcross) {
  add_to("blue", Role::Prefill);
  add_to("green", Role::Decode);
  EXPECT_FALSE(begin().permissions().disaggregate);
  EXPECT_EQ(home(), "green") << "blue cannot bring an answer";
  EXPECT_EQ(name(selector->alone()), "d1");
}

TEST_F(Namespaces, AreLeftWhereNobodyIsLeft) {
  for (const char* one : {"blue", "green"}) {
    add_to(one, Role::Prefill);
    add_to(one, Role::Decode);
  }
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d1");
  selector->prefill_failed(worker("p1"));
  EXPECT_EQ(name(selector->prefill()), "p2");
  EXPECT_EQ(home(), "green");
  EXPECT_EQ(name(selector->decode()), "d2") << "both legs move";
  selector->prefill_failed(worker("p2"));
  EXPECT_EQ(code(selector->prefill()), Errc::NoWorkers);
}

TEST_F(Namespaces, AreLeftByARequestOfOneWorker) {
  add_to("blue", Role::Aggregated);
  add_to("green", Role::Aggregated);
  begin();
  EXPECT_EQ(name(selector->alone()), "a1");
  selector->decode_failed(worker("a1"));
  EXPECT_EQ(name(selector->alone()), "a2");
  EXPECT_EQ(home(), "green");
  selector->decode_failed(worker("a2"));
  EXPECT_EQ(code(selector->alone()), Errc::NoWorkers);
}

TEST_F(Namespaces, AreLeftForOneOfAnotherKind) {
  add_to("blue", Role::Decode);
  add_to("green", Role::Aggregated);
  add_to("red", Role::Decode);
  begin();
  EXPECT_EQ(name(selector->alone()), "d1");
  selector->decode_failed(worker("d1"));
  EXPECT_EQ(name(selector->alone()), "a1");
  selector->decode_failed(worker("a1"));
  EXPECT_EQ(name(selector->alone()), "d2");
}

TEST_F(Namespaces, AreNotLeftForADecodeWorkerThatCannotServeAlone) {
  add_to("blue", Role::Aggregated, Engine::Sglang);
  add_to("green", Role::Decode, Engine::Sglang);
  begin();
  EXPECT_EQ(name(selector->alone()), "a1");
  selector->decode_failed(worker("a1"));
  EXPECT_EQ(code(selector->alone()), Errc::NoWorkers);
}

TEST_F(Namespaces, AreNotLeftByAPin) {
  for (const char* one : {"blue", "green"}) {
    add_to(one, Role::Prefill);
    add_to(one, Role::Decode);
  }
  hints.decode = Pin{"d2", {}};
  begin();
  EXPECT_EQ(home(), "green");
  EXPECT_EQ(name(selector->prefill()), "p2");
  EXPECT_EQ(name(selector->decode()), "d2");
  worker("d2").unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_EQ(code(begin().prefill()), Errc::NoEligibleWorker);
}

TEST_F(Namespaces, OfAReleaseAreThoseOfThePrefillWorker) {
  for (const char* one : {"blue", "green"}) {
    add_to(one, Role::Prefill);
    add_to(one, Role::Decode);
  }
  begin();
  selector->prefill().value();
  const auto pinned_in = selector->pool();
  selector->prefill_failed(worker("p1"));
  selector->prefill().value();
  EXPECT_EQ(home(), "green");
  EXPECT_EQ(name(selector->releaser(*pinned_in, HandoffMode::NixlPull, {}, {})), "d1");
}

// Query-only: prefill-router.md §2.11.

TEST_F(WorkerSelectorTest, APreviewMovesNoCursorAndCountsNothing) {
  add(Role::Prefill, 2);
  add(Role::Decode, 3);
  for (int i = 0; i < 3; ++i) {
    const auto preview = begin().preview();
    ASSERT_TRUE(preview);
    EXPECT_EQ(preview->mode, HandoffMode::NixlPull);
    EXPECT_EQ(picked(preview->prefill), "p1");
    EXPECT_EQ(picked(preview->decode), "d1");
    EXPECT_EQ(preview->decode->candidates.size(), 3U);
  }
  EXPECT_EQ(in_flight(), 0);
  begin();
  EXPECT_EQ(name(selector->prefill()), "p1");
  EXPECT_EQ(name(selector->decode()), "d1");
}

TEST_F(WorkerSelectorTest, APreviewOfOneWorkerHasNoPrefill) {
  add(Role::Aggregated, 1);
  const auto preview = begin().preview();
  ASSERT_TRUE(preview);
  EXPECT_EQ(preview->mode, std::nullopt);
  EXPECT_EQ(picked(preview->prefill), "none");
  EXPECT_EQ(picked(preview->decode), "a1");
}

TEST_F(WorkerSelectorTest, APreviewPassesByWhereNoPrefillIsThere) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  worker("p1").unreachable(fleet::Failure::Unreachable, "gone");
  const auto preview = begin().preview();
  ASSERT_TRUE(preview);
  EXPECT_EQ(preview->mode, std::nullopt);
  EXPECT_EQ(picked(preview->decode), "d1");
}

TEST_F(WorkerSelectorTest, APreviewFailsAsTheChoiceWould) {
  add(Role::Prefill, 1);
  add(Role::Decode, 1);
  hints.prefill = Pin{"nobody", {}};
  EXPECT_EQ(begin().preview().error().code(), Errc::InvalidRouting);
  fleet.reset();
  hints.prefill.reset();
  config.disaggregation = Disaggregation::Required;
  worker("p1").unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_EQ(begin().preview().error().code(), Errc::NoWorkers);
}

TEST_F(Topology, OfAPreviewIsThatOfTheChoice) {
  add_prefill("r1");
  add_prefill("r2");
  add_decode("r2");
  const auto preview = begin().preview();
  ASSERT_TRUE(preview) << preview.error().message();
  EXPECT_EQ(picked(preview->prefill), "p2");
  EXPECT_EQ(picked(preview->decode), "d1");
}

TEST_F(Sessions, OfAPreviewAreThoseOfTheChoice) {
  const auto [prefill, decode] = serve();
  const auto preview = begin().preview();
  ASSERT_TRUE(preview);
  EXPECT_EQ(picked(preview->prefill), prefill);
  EXPECT_EQ(picked(preview->decode), decode);
}

}  // namespace
}  // namespace baton::scheduling
