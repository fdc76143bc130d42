// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/fleet.h"

#include "support/plain_model.h"
#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <algorithm>
#include <set>
#include <utility>

namespace baton::fleet {
namespace {

using model::Role;

TEST_F(FleetTest, FindsAModelByItsNameAndItsAliases) {
  add_model("large", {worker(1, Role::Aggregated)}).aliases = {"big", "gpt-x"};
  add_model("small", {worker(2, Role::Aggregated)});
  const auto large = fleet().find("large");
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(large->name(), "large");
  EXPECT_EQ(fleet().find("big"), large);
  EXPECT_EQ(fleet().find("gpt-x"), large);
  EXPECT_NE(fleet().find("small"), large);
  for (const char* unknown : {"", "Large", "large ", "medium"}) {
    EXPECT_EQ(fleet().find(unknown), nullptr) << unknown;
  }
}

TEST_F(FleetTest, FindsAModelByTheAdaptersOfItsWorkers) {
  add_model("m", {worker(1, model::Role::Aggregated), worker(2, model::Role::Aggregated)});
  add_model("other", {worker(3, model::Role::Aggregated)}).adapters = {"on-demand", "poet"};
  const model::WorkerId first = worker_called("127.0.0.1:1").id();
  EXPECT_EQ(fleet().find("clerk"), nullptr);
  // A name of a model stays that; what the file says of an adapter comes before what workers say.
  fleet().loaded(first, {"clerk", "other", "poet"});
  EXPECT_EQ(fleet().find_served("clerk").model->name(), "m");
  EXPECT_EQ(fleet().find_served("clerk").adapter->name, "clerk");
  EXPECT_FALSE(fleet().find_served("clerk").adapter->on_demand);
  EXPECT_FALSE(fleet().find_served("other").adapter);
  EXPECT_FALSE(fleet().find_served("m").adapter);
  EXPECT_EQ(fleet().find_served("poet").model->name(), "other");
  EXPECT_TRUE(fleet().find_served("on-demand").adapter->on_demand);
  EXPECT_THAT(fleet().adapters(),
              testing::ElementsAre(testing::Pair("clerk", "m"), testing::Pair("on-demand", "other"),
                                   testing::Pair("poet", "other")));
  fleet().loaded(first, {});
  EXPECT_EQ(fleet().find("clerk"), nullptr);
}

TEST_F(FleetTest, GivesEveryWorkerAnIdOfItsOwn) {
  add_model("a", {worker(1, Role::Aggregated), worker(2, Role::Aggregated)});
  add_model("b", {worker(1, Role::Prefill), worker(2, Role::Decode)});
  std::set<model::WorkerId> ids;
  for (const auto& member : fleet().members()) ids.insert(member.worker->id());
  EXPECT_EQ(ids.size(), 4U);
}

TEST_F(FleetTest, NumbersAndTurnsFollowTheFile) {
  add_model("m", {worker(30, Role::Decode), worker(4, Role::Decode), worker(200, Role::Decode)});
  std::string order;
  for (int i = 0; i < 4; ++i) {
    const auto booking = test::book_worker(workers(Role::Decode), {}, no_dice);
    order += std::to_string(booking->worker().id().value) + "=" + booking->worker().name() + " ";
  }
  EXPECT_EQ(order, "1=127.0.0.1:30 2=127.0.0.1:4 3=127.0.0.1:200 1=127.0.0.1:30 ");
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
  const auto first = test::book_worker(workers(Role::Decode), {}, no_dice);
  const auto second = test::book_worker(workers(Role::Decode), {}, no_dice);
  ASSERT_TRUE(first && second);
  EXPECT_THAT(metrics.render(),
              testing::HasSubstr("baton_worker_in_flight{model=\"m\",worker=\"127.0.0.1:2\","
                                 "role=\"decode\"} 1"));
}

TEST_F(FleetTest, TellsTheBatchLimitsThatHold) {
  add_model("m", {worker(1, Role::Decode), worker(2, Role::Decode)}).routing.slo =
      config::Slo{.ttft = {}, .itl = std::chrono::milliseconds(10)};
  add_model("n", {worker(3, Role::Decode)});
  const Time now = Clock::now();
  for (const char* const limited : {"127.0.0.1:1", "127.0.0.1:3"}) {
    for (int i = 1; i <= 8; ++i) {
      worker_called(limited).batch_limit(0).observe(6, 0.01001, 0.01,
                                                    now + i * std::chrono::milliseconds(100));
    }
  }
  const std::string text = metrics.render();
  EXPECT_THAT(text, testing::HasSubstr("baton_worker_batch_limit{model=\"m\","
                                       "worker=\"127.0.0.1:1\",role=\"decode\"} 5\n"));
  EXPECT_EQ(occurrences(text, "baton_worker_batch_limit{"), 1U);
  EXPECT_EQ(workers(Role::Decode).free_places(), std::nullopt);
}

// Workers that come, go and come back.

struct ChangingFleet : FleetTest {
  ChangingFleet() {
    fleet().on_added([this](const std::shared_ptr<Worker>& one, const std::string&) {
      const bool is_new =
          std::ranges::none_of(joined, [&](const auto& other) { return other->id() == one->id(); });
      if (is_new) joined.push_back(one);
    });
    fleet().on_gone([this](model::WorkerId id) { gone.push_back(id.value); });
  }
  static model::Announcement said(model::WorkerSpec spec, std::string model = "m") {
    return {.model = std::move(model), .spec = std::move(spec)};
  }
  static model::WorkerSpec instance(model::WorkerSpec spec, std::string name) {
    spec.instance = std::move(name);
    return spec;
  }
  void announce(const std::string& key, model::WorkerSpec spec, Origin origin = Origin::Etcd) {
    fleet().announce(origin, key, said(std::move(spec)));
  }
  std::shared_ptr<Worker> at(std::uint16_t port) {
    return fleet().find_worker("127.0.0.1:" + std::to_string(port));
  }
  std::string book(Role role) {
    const auto booking = test::book_worker(workers(role), {}, no_dice);
    return booking ? booking->worker().authority() : booking.error().message();
  }

  std::vector<std::shared_ptr<Worker>> joined;
  std::vector<std::uint64_t> gone;
};

TEST_F(ChangingFleet, AWorkerServesFromItsAnnouncementToItsWithdrawal) {
  EXPECT_EQ(fleet().find("m"), nullptr);
  announce("a", worker(1, Role::Decode));
  ASSERT_NE(fleet().find("m"), nullptr);
  EXPECT_EQ(book(Role::Decode), "127.0.0.1:1");
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0], at(1));
  announce("a", worker(1, Role::Decode));
  EXPECT_EQ(joined.size(), 1U) << "the same again is no news";
  announce("b", worker(2, Role::Decode));
  fleet().withdraw(Origin::Etcd, "a");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(book(Role::Decode), "127.0.0.1:2");
  EXPECT_EQ(at(1), nullptr);
  EXPECT_TRUE(gone.empty()) << "until somebody sweeps";
  fleet().sweep();
  EXPECT_THAT(gone, testing::ElementsAre(1U));
}

TEST_F(ChangingFleet, AModelThatIsNotConfiguredIsThereAsLongAsItHasWorkers) {
  announce("a", worker(1, Role::Decode));
  announce("b", worker(2, Role::Prefill));
  const auto kept = fleet().find("m");
  fleet().withdraw(Origin::Etcd, "a");
  EXPECT_EQ(fleet().find("m"), kept);
  fleet().withdraw(Origin::Etcd, "b");
  EXPECT_EQ(fleet().find("m"), nullptr);
  EXPECT_TRUE(fleet().models().empty());
  EXPECT_EQ(kept->name(), "m") << "a request that asked for it still has it";
  EXPECT_THAT(kept->why_not_ready(), testing::HasSubstr("no workers"));
}

TEST_F(ChangingFleet, AConfiguredModelStaysWithoutWorkers) {
  config::Model options = test::model_in_turn();
  options.name = "m";
  options.aliases = {"alias"};
  fleet().configure({options});
  const auto kept = fleet().find("m");
  announce("a", worker(1, Role::Decode));
  fleet().withdraw(Origin::Etcd, "a");
  EXPECT_EQ(fleet().find("m"), kept);
  EXPECT_EQ(fleet().find("alias"), kept);
  fleet().configure({});
  EXPECT_EQ(fleet().find("m"), nullptr);
}

TEST_F(ChangingFleet, ReplaceIsAllThatASourceSays) {
  announce("a", worker(1, Role::Decode));
  announce("b", worker(2, Role::Decode));
  announce("admin", worker(3, Role::Decode), Origin::Admin);
  const auto kept = at(2);
  Roster::Announcements all;
  all.emplace("b", said(worker(2, Role::Decode)));
  all.emplace("d", said(worker(4, Role::Decode)));
  fleet().replace(Origin::Etcd, all);
  EXPECT_EQ(at(1), nullptr);
  EXPECT_EQ(at(2), kept);
  EXPECT_NE(at(3), nullptr);
  EXPECT_NE(at(4), nullptr);
  fleet().replace(Origin::Etcd, {});
  EXPECT_EQ(workers(Role::Decode).size(), 1U);
}

TEST_F(ChangingFleet, AnotherInstanceAtTheSameAddressIsAnotherWorker) {
  announce("a", instance(worker(1, Role::Decode), "first"));
  const auto old = at(1);
  old->answered();
  std::optional<Booking> running(test::book_worker(workers(Role::Decode), {}, no_dice).value());
  announce("a", instance(worker(1, Role::Decode), "second"));
  const auto now = at(1);
  ASSERT_NE(now, old);
  EXPECT_NE(now->id(), old->id());
  EXPECT_EQ(now->in_flight(), 0);
  EXPECT_EQ(now->condition(), Condition::New);
  EXPECT_EQ(&running->worker(), old.get()) << "the request keeps its worker";
  EXPECT_EQ(old->in_flight(), 1);
  EXPECT_EQ(workers(Role::Decode).size(), 1U);
  EXPECT_EQ(&test::book_worker(workers(Role::Decode), {}, no_dice)->worker(), now.get());
  // What the old one does or suffers is none of the new one's business.
  old->misconfigured("late");
  EXPECT_EQ(now->condition(), Condition::New);
  fleet().sweep();
  EXPECT_TRUE(gone.empty()) << "it still has a request";
  EXPECT_EQ(fleet().members().size(), 2U);
  running.reset();
  EXPECT_TRUE(gone.empty());
  fleet().sweep();
  EXPECT_THAT(gone, testing::ElementsAre(old->id().value));
  fleet().sweep();
  EXPECT_EQ(gone.size(), 1U);
  EXPECT_EQ(fleet().members().size(), 1U);
}

TEST_F(ChangingFleet, OneWithAnotherNumberOfRanksIsAnotherWorker) {
  announce("a", worker(1, Role::Decode));
  const auto old = at(1);
  model::WorkerSpec ranks = worker(1, Role::Decode);
  ranks.data_parallel_size = 4;
  announce("a", ranks);
  EXPECT_NE(at(1)->id(), old->id());
  EXPECT_EQ(at(1)->ranks(), 4U);
}

TEST_F(ChangingFleet, NobodyIsMissedWhoIsBeingReplaced) {
  // A pair moves to other addresses in one step: at no moment is there nobody.
  announce("p", worker(1, Role::Prefill));
  announce("d", worker(2, Role::Decode));
  at(1)->answered();
  lines.clear();
  Roster::Announcements all;
  all.emplace("p", said(worker(3, Role::Prefill)));
  all.emplace("d", said(worker(4, Role::Decode)));
  const auto kept = fleet().find("m");
  fleet().on_added([&](const std::shared_ptr<Worker>& one, const std::string&) {
    EXPECT_EQ(fleet().find("m"), kept);
    EXPECT_EQ(kept->why_not_ready(), "");
    EXPECT_TRUE(kept->disaggregated());
    if (one->spec().role == Role::Prefill) one->answered();
  });
  fleet().replace(Origin::Etcd, all);
  EXPECT_EQ(fleet().find("m"), kept);
  EXPECT_EQ(pool().prefill_state(), PrefillState::Active);
  EXPECT_EQ(occurrences(lines, "prefill_unavailable"), 0U) << lines;
}

TEST_F(ChangingFleet, TwoSourcesOfOneServerAreOneWorker) {
  model::WorkerSpec by_file = worker(1, Role::Decode);
  by_file.taints = {"file"};
  model::WorkerSpec by_etcd = worker(1, Role::Decode);
  by_etcd.taints = {"etcd"};
  announce("f", by_file, Origin::File);
  const auto number = at(1)->id();
  announce("e", by_etcd, Origin::Etcd);
  EXPECT_EQ(at(1)->id(), number);
  EXPECT_THAT(at(1)->taints(), testing::ElementsAre("etcd"));
  EXPECT_EQ(fleet().find_member("127.0.0.1:1")->origin, Origin::Etcd);
  announce("f", worker(1, Role::Decode), Origin::File);
  EXPECT_THAT(at(1)->taints(), testing::ElementsAre("etcd")) << "the other one counts";
  announce("f", by_file, Origin::File);
  fleet().withdraw(Origin::Etcd, "e");
  EXPECT_EQ(at(1)->id(), number) << "it has not left";
  EXPECT_THAT(at(1)->taints(), testing::ElementsAre("file"));
  EXPECT_EQ(fleet().find_member("127.0.0.1:1")->origin, Origin::File);
  EXPECT_EQ(workers(Role::Decode).size(), 1U);
  fleet().withdraw(Origin::File, "f");
  EXPECT_EQ(at(1), nullptr);
  EXPECT_EQ(joined.size(), 1U);
}

TEST_F(ChangingFleet, WhatIsSaidOfAWorkerMayChangeWhileItServes) {
  announce("d", worker(1, Role::Decode));
  const auto before = at(1);
  before->answered();
  const Booking running = test::book_worker(workers(Role::Decode), {}, no_dice).value();
  model::WorkerSpec other = worker(1, Role::Aggregated);
  other.taints = {"h200"};
  other.name = "renamed";
  announce("d", other);
  const auto after = fleet().find_worker("renamed");
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->id(), before->id());
  EXPECT_EQ(after->in_flight(), 1);
  EXPECT_EQ(after->condition(), Condition::Up);
  EXPECT_THAT(after->taints(), testing::ElementsAre("h200"));
  EXPECT_EQ(workers(Role::Decode).size(), 0U);
  EXPECT_EQ(workers(Role::Aggregated).size(), 1U);
  EXPECT_EQ(joined.size(), 1U);
  fleet().sweep();
  EXPECT_TRUE(gone.empty());
  // News of a request that began before the change.
  running.worker().unreachable(Failure::Unreachable, "gone");
  EXPECT_EQ(after->condition(), Condition::Unreachable);
}

TEST_F(ChangingFleet, WhoeverWantsToKnowIsToldWhoSitsWhere) {
  announce("a", worker(1, Role::Decode));
  std::vector<std::string> seen;
  fleet().on_added([&](const std::shared_ptr<Worker>& one, const std::string& of) {
    seen.push_back(of + " " + one->name());
  });
  EXPECT_THAT(seen, testing::ElementsAre("m 127.0.0.1:1")) << "those that are there at once";
  fleet().announce(Origin::Etcd, "b", said(worker(2, Role::Decode), "other"));
  model::WorkerSpec renamed = worker(1, Role::Decode);
  renamed.name = "renamed";
  announce("a", renamed);
  announce("a", renamed);
  EXPECT_THAT(seen, testing::ElementsAre("m 127.0.0.1:1", "other 127.0.0.1:2", "m renamed"));
}

TEST_F(ChangingFleet, SeveralChangesAtOnce) {
  announce("a", worker(1, Role::Decode));
  announce("b", worker(2, Role::Decode));
  Fleet::Changes changes;
  changes.emplace("a", std::nullopt);
  changes.emplace("c", said(worker(3, Role::Decode)));
  changes.emplace("unknown", std::nullopt);
  fleet().apply(Origin::Etcd, std::move(changes));
  EXPECT_EQ(at(1), nullptr);
  EXPECT_NE(at(2), nullptr) << "of which nothing was said";
  EXPECT_NE(at(3), nullptr);
}

TEST_F(ChangingFleet, AWorkerMayMoveToAnotherNamespace) {
  announce("d", worker(1, Role::Decode));
  const auto number = at(1)->id();
  model::WorkerSpec moved = worker(1, Role::Decode);
  moved.name_space = "green";
  announce("d", moved);
  EXPECT_EQ(model().pool("default"), nullptr);
  ASSERT_NE(model().pool("green"), nullptr);
  EXPECT_EQ(at(1)->id(), number);
}

TEST_F(ChangingFleet, OtherOptionsOfAModelKeepItsWorkers) {
  config::Model options = test::model_in_turn();
  options.name = "m";
  options.workers = {worker(1, Role::Prefill), worker(2, Role::Decode)};
  fleet().configure({options});
  announce("etcd", worker(3, Role::Decode));
  const auto before = fleet().find("m");
  at(1)->answered();
  at(2)->answered();
  const Booking running = test::book_worker(workers(Role::Decode), {}, no_dice).value();
  const auto busy = running.worker().authority();
  lines.clear();
  options.disaggregation = model::Disaggregation::Required;
  options.retries = 9;
  fleet().configure({options});
  EXPECT_NE(fleet().find("m"), before);
  EXPECT_EQ(model().retries(), 9U);
  EXPECT_EQ(before->retries(), 2U) << "a request keeps the options it began with";
  EXPECT_EQ(workers(Role::Prefill).size(), 1U);
  EXPECT_EQ(workers(Role::Decode).size(), 2U);
  EXPECT_EQ(fleet().find_worker(busy)->in_flight(), 1);
  EXPECT_EQ(fleet().find_worker(busy)->id(), running.worker().id());
  EXPECT_EQ(at(1)->condition(), Condition::Up);
  EXPECT_EQ(model().why_not_ready(), "");
  EXPECT_EQ(joined.size(), 3U);
  const auto old_home = before->pool("default");
  ASSERT_NE(old_home, nullptr);
  EXPECT_TRUE(test::book_worker(old_home->workers(Role::Decode), {}, no_dice))
      << "so does its next attempt";
  fleet().sweep();
  EXPECT_TRUE(gone.empty());
  EXPECT_THAT(metrics.render(),
              testing::HasSubstr("baton_prefill_state{model=\"m\",namespace=\"default\"} 1\n"));
  EXPECT_EQ(occurrences(lines, "prefill_unavailable"), 0U) << "nobody has left: " << lines;
}

TEST_F(ChangingFleet, TheSameConfigurationAgainChangesNothing) {
  config::Model options = test::model_in_turn();
  options.name = "m";
  options.workers = {worker(1, Role::Decode)};
  fleet().configure({options});
  const auto before = fleet().find("m");
  const auto kept = at(1);
  lines.clear();
  fleet().configure({options});
  EXPECT_EQ(fleet().find("m"), before);
  EXPECT_EQ(at(1), kept);
  EXPECT_EQ(lines, "");
}

TEST_F(ChangingFleet, AConfigurationWithoutAModelLeavesThoseOfOtherSources) {
  config::Model options = test::model_in_turn();
  options.name = "m";
  options.retries = 9;
  options.workers = {worker(1, Role::Decode)};
  fleet().configure({options});
  announce("etcd", worker(2, Role::Decode));
  const auto kept = at(2)->id();
  fleet().configure({});
  ASSERT_NE(fleet().find("m"), nullptr);
  EXPECT_EQ(model().retries(), config::Model().retries);
  EXPECT_EQ(at(1), nullptr);
  EXPECT_EQ(at(2)->id(), kept);
}

TEST_F(ChangingFleet, AnOperatorsDrainHoldsWhateverTheSourceSays) {
  announce("a", worker(1, Role::Decode));
  announce("b", worker(2, Role::Decode));
  const auto number = at(1)->id();
  const Booking running(at(1));
  ASSERT_TRUE(fleet().drain(number, true));
  EXPECT_TRUE(at(1)->draining());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(book(Role::Decode), "127.0.0.1:2");
  model::WorkerSpec other = worker(1, Role::Decode);
  other.taints = {"h200"};
  announce("a", other);
  EXPECT_TRUE(at(1)->draining());
  EXPECT_EQ(running.worker().in_flight(), 1) << "what runs goes on";
  fleet().sweep();
  EXPECT_NE(at(1), nullptr) << "it stays for as long as its source says so";
  ASSERT_TRUE(fleet().drain(number, false));
  EXPECT_FALSE(at(1)->draining());
  EXPECT_FALSE(fleet().drain({999}, true));
}

TEST_F(ChangingFleet, ADrainIsOverWithTheInstanceItWasFor) {
  announce("a", instance(worker(1, Role::Decode), "first"));
  fleet().drain(at(1)->id(), true);
  announce("a", instance(worker(1, Role::Decode), "second"));
  EXPECT_FALSE(at(1)->draining());
  fleet().drain(at(1)->id(), true);
  fleet().withdraw(Origin::Etcd, "a");
  announce("a", instance(worker(1, Role::Decode), "second"));
  EXPECT_FALSE(at(1)->draining());
}

TEST_F(ChangingFleet, ASourceMaySayThatItsWorkerIsAboutToLeave) {
  model::Announcement one = said(worker(1, Role::Decode));
  fleet().announce(Origin::Etcd, "a", one);
  one.draining = true;
  fleet().announce(Origin::Etcd, "a", one);
  EXPECT_TRUE(at(1)->draining());
  fleet().drain(at(1)->id(), false);
  EXPECT_TRUE(at(1)->draining()) << "an operator cannot undo what the source says";
  one.draining = false;
  fleet().announce(Origin::Etcd, "a", one);
  EXPECT_FALSE(at(1)->draining());
}

TEST_F(ChangingFleet, WhoCameByTheAdminAddressIsGoneOnceDrained) {
  announce("w", worker(1, Role::Decode), Origin::Admin);
  std::optional<Booking> running(at(1));
  fleet().drain(at(1)->id(), true);
  fleet().sweep();
  ASSERT_NE(at(1), nullptr) << "not before its last request has ended";
  running.reset();
  fleet().sweep();
  EXPECT_EQ(at(1), nullptr);
  EXPECT_TRUE(fleet().roster().of(Origin::Admin).empty());
  EXPECT_THAT(gone, testing::ElementsAre(1U));
}

TEST_F(ChangingFleet, ARestartedProcessIsAnotherWorker) {
  announce("a", worker(1, Role::Decode));
  const auto old = at(1);
  old->answered();
  const Booking running(old);
  fleet().restarted(old->id());
  ASSERT_NE(at(1), nullptr);
  EXPECT_NE(at(1)->id(), old->id());
  EXPECT_EQ(at(1)->in_flight(), 0);
  EXPECT_EQ(at(1)->condition(), Condition::New);
  EXPECT_EQ(workers(Role::Decode).size(), 1U);
  EXPECT_EQ(joined.size(), 2U);
  fleet().restarted(old->id());
  EXPECT_EQ(joined.size(), 2U) << "the old one is no longer the one";
}

TEST_F(ChangingFleet, TellsWhoIsThereAndWhoIsLeaving) {
  announce("a", worker(1, Role::Decode));
  announce("b", worker(2, Role::Prefill), Origin::Admin);
  const Booking running(at(1));
  fleet().withdraw(Origin::Etcd, "a");
  const auto members = fleet().members();
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].worker, at(2));
  EXPECT_EQ(members[0].origin, Origin::Admin);
  EXPECT_EQ(members[0].key, "b");
  EXPECT_EQ(members[0].model, fleet().find("m"));
  EXPECT_EQ(members[0].pool, fleet().find("m")->pool("default"));
  EXPECT_FALSE(members[0].leaving);
  EXPECT_EQ(members[1].worker->authority(), "127.0.0.1:1");
  EXPECT_TRUE(members[1].leaving);
  EXPECT_TRUE(fleet().find_member("127.0.0.1:1")->leaving);
  EXPECT_FALSE(fleet().find_member("nobody"));
  EXPECT_THAT(metrics.render(),
              testing::HasSubstr("baton_workers{model=\"m\",namespace=\"default\",role=\"decode\","
                                 "state=\"draining\"} 1\n"));
}

TEST_F(ChangingFleet, WhoComesAndWhoLeavesAtOneAddressIsOneSeriesOfMetrics) {
  announce("a", instance(worker(1, Role::Decode), "first"));
  const Booking old(at(1));
  announce("a", instance(worker(1, Role::Decode), "second"));
  const Booking young(at(1));
  const std::string text = metrics.render();
  EXPECT_THAT(text, testing::HasSubstr("baton_worker_in_flight{model=\"m\",worker=\"127.0.0.1:1\","
                                       "role=\"decode\"} 2\n"));
  EXPECT_EQ(occurrences(text, "baton_worker_in_flight{"), 1U);
}

TEST_F(ChangingFleet, MetricsOfANamespaceThatIsGoneAreNotWritten) {
  for (const char* name_space : {"blue", "green"}) {
    const int first = name_space == std::string_view("blue") ? 1 : 3;
    for (const Role role : {Role::Prefill, Role::Decode}) {
      model::WorkerSpec one =
          worker(static_cast<std::uint16_t>(first + (role == Role::Decode ? 1 : 0)), role);
      one.name_space = name_space;
      announce(name_space + std::string(model::to_string(role)), one);
    }
  }
  fleet().withdraw(Origin::Etcd, "blueprefill");
  fleet().withdraw(Origin::Etcd, "bluedecode");
  fleet().sweep();
  const std::string text = metrics.render();
  for (const std::string name :
       {"baton_prefill_state", "baton_prefill_transitions_total", "baton_workers"}) {
    const auto line = name + "{model=\"m\",namespace=";
    EXPECT_THAT(text, testing::HasSubstr(line + "\"green\""));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr(line + "\"blue\"")));
  }
}

// Digits of counters may become more, series may not.
std::size_t series(const std::string& text) { return occurrences(text, "\n"); }

TEST_F(ChangingFleet, MetricsDoNotGrowWithThoseWhoCameAndWent) {
  const auto churn = [this](int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string key = std::to_string(i);
      model::WorkerSpec one =
          worker(static_cast<std::uint16_t>(i + 1), i % 2 == 0 ? Role::Prefill : Role::Decode);
      one.instance = key;
      announce(key, one);
      at(static_cast<std::uint16_t>(i + 1))->answered();
      if (i >= 4) fleet().withdraw(Origin::Etcd, std::to_string(i - 4));
      fleet().sweep();
      lines.clear();
    }
  };
  churn(0, 10);
  const std::size_t few = series(metrics.render());
  churn(10, 10'000);
  EXPECT_EQ(series(metrics.render()), few);
  EXPECT_EQ(gone.size(), 10'000U - 4);
}

}  // namespace
}  // namespace baton::fleet
