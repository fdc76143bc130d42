// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/admin_source.h"

#include "unit/fleet/fleet_fixture.h"

#include <optional>
#include <string>
#include <utility>

namespace baton::fleet {
namespace {

using model::Role;
using testing::HasSubstr;

struct AdminSourceTest : FleetTest {
  AdminSource& admin() {
    if (!admin_) admin_.emplace(fleet());
    return *admin_;
  }
  static model::Announcement announcement(std::uint16_t port, Role role = Role::Aggregated) {
    return {.model = "m", .spec = worker(port, role)};
  }
  // Requires: it succeeds.
  Fleet::Member add(model::Announcement one) { return admin().add(std::move(one))->member; }
  template <class T>
  static Errc code_of(const Result<T>& result) {
    return result ? Errc::Internal : result.error().code();
  }
  static AdminSource::Change to(model::Announcement after) {
    return [after](const model::Announcement&) -> Result<model::Announcement> { return after; };
  }

 private:
  std::optional<AdminSource> admin_;
};

TEST_F(AdminSourceTest, AddsAWorkerAndItsModel) {
  const auto added = admin().add(announcement(1));
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->is_new);
  EXPECT_EQ(added->member.origin, Origin::Admin);
  EXPECT_EQ(added->member.worker->authority(), "127.0.0.1:1");
  ASSERT_NE(fleet().find("m"), nullptr);
  EXPECT_EQ(fleet().find_worker("127.0.0.1:1"), added->member.worker);
}

TEST_F(AdminSourceTest, AddingTheSameTwiceIsAddingItOnce) {
  const auto first = add(announcement(1));
  const auto second = admin().add(announcement(1));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_new);
  EXPECT_EQ(second->member.worker, first.worker);
  EXPECT_EQ(fleet().members().size(), 1U);
}

TEST_F(AdminSourceTest, AddingItChangedChangesItUnderItsNumber) {
  const auto first = add(announcement(1, Role::Prefill));
  const auto second = admin().add(announcement(1, Role::Decode));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_new);
  EXPECT_EQ(second->member.worker->spec().role, Role::Decode);
  EXPECT_EQ(second->member.worker->id(), first.worker->id());
  EXPECT_TRUE(model().pools()->front()->workers(Role::Prefill).empty());
}

TEST_F(AdminSourceTest, AnotherInstanceIsAnotherWorker) {
  const auto first = add(announcement(1));
  model::Announcement restarted = announcement(1);
  restarted.spec.instance = "b";
  const auto second = add(restarted);
  EXPECT_NE(second.worker->id(), first.worker->id());
}

TEST_F(AdminSourceTest, AddingWhoIsDrainedTakesTheDrainBack) {
  const auto first = add(announcement(1));
  ASSERT_TRUE(admin().drain("127.0.0.1:1", true));
  EXPECT_TRUE(first.worker->draining());
  EXPECT_FALSE(add(announcement(1)).worker->draining());
}

TEST_F(AdminSourceTest, AServerOfSeveralModelsIsSeveralWorkers) {
  add(announcement(1));
  model::Announcement other = announcement(1);
  other.model = "n";
  EXPECT_TRUE(admin().add(other)->is_new);
  EXPECT_EQ(fleet().members().size(), 2U);
}

TEST_F(AdminSourceTest, NoTwoWorkersOfAModelHaveOneName) {
  model::Announcement named = announcement(1);
  named.spec.name = "w";
  add(named);
  EXPECT_TRUE(admin().add(named)) << "it may keep its own";
  model::Announcement same_name = announcement(2);
  same_name.spec.name = "w";
  const auto refused = admin().add(same_name);
  ASSERT_EQ(code_of(refused), Errc::Conflict);
  EXPECT_THAT(refused.error().message(), HasSubstr("127.0.0.1:1"));
  add(announcement(2));
  EXPECT_EQ(code_of(admin().amend("127.0.0.1:2", to(same_name))), Errc::Conflict);
  same_name.spec.name = "127.0.0.1:1";
  EXPECT_EQ(code_of(admin().add(same_name)), Errc::Conflict) << "an address is a name, too";
  same_name.model = "n";
  EXPECT_TRUE(admin().add(same_name)) << "another model's names are its own";
}

TEST_F(AdminSourceTest, AmendsWhatWasAnnouncedHere) {
  const auto before = add(announcement(1));
  const Booking running(before.worker);
  model::Announcement after = announcement(1, Role::Prefill);
  after.spec.taints = {"h100"};
  std::optional<model::Announcement> seen;
  const auto amended =
      admin().amend(std::to_string(before.worker->id().value),
                    [&](const model::Announcement& said) -> Result<model::Announcement> {
                      seen = said;
                      return after;
                    });
  ASSERT_TRUE(amended);
  EXPECT_EQ(seen, announcement(1));
  EXPECT_EQ(amended->worker->spec(), after.spec);
  EXPECT_EQ(amended->worker->id(), before.worker->id());
  EXPECT_EQ(amended->worker->in_flight(), 1) << "its load goes on";
}

TEST_F(AdminSourceTest, AChangeThatFailsChangesNothing) {
  add(announcement(1));
  const auto refused = admin().amend("127.0.0.1:1", [](const auto&) -> Result<model::Announcement> {
    return fail(Errc::InvalidRequest, "no");
  });
  EXPECT_EQ(code_of(refused), Errc::InvalidRequest);
  EXPECT_EQ(fleet().find_worker("127.0.0.1:1")->spec(), worker(1, Role::Aggregated));
}

TEST_F(AdminSourceTest, AnAmendedWorkerStaysTheServerItIs) {
  add(announcement(1));
  EXPECT_EQ(code_of(admin().amend("127.0.0.1:1", to(announcement(2)))), Errc::InvalidRequest);
  model::Announcement other_model = announcement(1);
  other_model.model = "n";
  EXPECT_EQ(code_of(admin().amend("127.0.0.1:1", to(other_model))), Errc::InvalidRequest);
  EXPECT_EQ(fleet().members().size(), 1U);
}

TEST_F(AdminSourceTest, TakesBackOnlyWhatWasAnnouncedHere) {
  add_model("m", {worker(1, Role::Aggregated)});
  fleet().announce(Origin::Etcd, "/workers/a", announcement(2));
  for (const char* name : {"127.0.0.1:1", "127.0.0.1:2"}) {
    const auto removed = admin().remove(name);
    ASSERT_EQ(code_of(removed), Errc::Conflict) << name;
    EXPECT_THAT(removed.error().message(), HasSubstr("drain"));
    EXPECT_EQ(code_of(admin().amend(name, to(announcement(1)))), Errc::Conflict) << name;
  }
  EXPECT_THAT(admin().remove("127.0.0.1:1").error().message(), HasSubstr("configuration"));
  EXPECT_THAT(admin().remove("127.0.0.1:2").error().message(), HasSubstr("etcd, as /workers/a"));
  EXPECT_EQ(fleet().members().size(), 2U);
}

TEST_F(AdminSourceTest, DoesNotSayWhatWouldNotCount) {
  fleet().announce(Origin::Etcd, "/workers/a", announcement(1));
  EXPECT_EQ(code_of(admin().add(announcement(1, Role::Decode))), Errc::Conflict);
  EXPECT_TRUE(fleet().roster().of(Origin::Admin).empty());
}

TEST_F(AdminSourceTest, WhatTheConfigurationSaysCountsAgainAfterwards) {
  add_model("m", {worker(1, Role::Aggregated)});
  EXPECT_EQ(add(announcement(1, Role::Decode)).origin, Origin::Admin);
  const auto removed = admin().remove("127.0.0.1:1");
  ASSERT_TRUE(removed);
  EXPECT_FALSE(removed->leaving);
  EXPECT_EQ(removed->origin, Origin::File);
  EXPECT_EQ(removed->worker->spec().role, Role::Aggregated);
}

TEST_F(AdminSourceTest, WhoIsRemovedLeavesWhenItsRequestsHaveEnded) {
  const auto added = add(announcement(1));
  {
    const Booking running(added.worker);
    const auto removed = admin().remove("127.0.0.1:1");
    ASSERT_TRUE(removed);
    EXPECT_TRUE(removed->leaving);
    EXPECT_EQ(fleet().find_worker("127.0.0.1:1"), nullptr) << "it gets no new request";
    fleet().sweep();
    EXPECT_TRUE(admin().find("127.0.0.1:1"));
    EXPECT_TRUE(admin().remove("127.0.0.1:1")) << "removing it twice is removing it once";
    EXPECT_TRUE(admin().drain("127.0.0.1:1", true));
    EXPECT_EQ(code_of(admin().drain("127.0.0.1:1", false)), Errc::Conflict);
    EXPECT_EQ(code_of(admin().amend("127.0.0.1:1", to(announcement(1)))), Errc::Conflict);
  }
  fleet().sweep();
  EXPECT_EQ(code_of(admin().find("127.0.0.1:1")), Errc::NotFound);
}

TEST_F(AdminSourceTest, DrainsAnybody) {
  add_model("m", {worker(1, Role::Aggregated)});
  const auto drained = admin().drain("127.0.0.1:1", true);
  ASSERT_TRUE(drained);
  EXPECT_TRUE(drained->worker->draining());
  fleet().sweep();
  const auto back = admin().drain("127.0.0.1:1", false);
  ASSERT_TRUE(back) << "it stays where the file still names it";
  EXPECT_FALSE(back->worker->draining());
}

TEST_F(AdminSourceTest, WhoWasAddedHereIsGoneOnceItIsDrained) {
  add(announcement(1));
  ASSERT_TRUE(admin().drain("127.0.0.1:1", true));
  fleet().sweep();
  EXPECT_TRUE(fleet().members().empty());
}

TEST_F(AdminSourceTest, SaysWhyAWorkerGoesOnDraining) {
  model::Announcement leaving = announcement(1);
  leaving.draining = true;
  fleet().announce(Origin::Etcd, "/workers/a", leaving);
  const auto refused = admin().drain("127.0.0.1:1", false);
  ASSERT_EQ(code_of(refused), Errc::Conflict);
  EXPECT_THAT(refused.error().message(), HasSubstr("etcd"));
}

TEST_F(AdminSourceTest, KnowsNobodyWhoIsNotThere) {
  EXPECT_EQ(code_of(admin().find("nobody")), Errc::NotFound);
  EXPECT_EQ(code_of(admin().remove("nobody")), Errc::NotFound);
  EXPECT_EQ(code_of(admin().drain("nobody", true)), Errc::NotFound);
  EXPECT_EQ(code_of(admin().amend("nobody", to(announcement(1)))), Errc::NotFound);
}

TEST_F(AdminSourceTest, IsAlwaysWell) {
  admin().start();
  EXPECT_EQ(admin().status().origin, Origin::Admin);
  EXPECT_TRUE(admin().status().well);
  admin().stop();
}

}  // namespace
}  // namespace baton::fleet
