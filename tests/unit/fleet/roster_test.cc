// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/roster.h"

#include "unit/fleet/fleet_fixture.h"

#include <algorithm>
#include <array>

namespace baton::fleet {
namespace {

using model::Role;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

model::Announcement said(std::uint16_t port, std::string instance = "", std::string model = "m") {
  model::Announcement made{.model = std::move(model), .spec = worker(port, Role::Decode)};
  made.spec.instance = std::move(instance);
  return made;
}

Slot slot(std::uint16_t port, std::string model = "m") {
  return {std::move(model), "127.0.0.1:" + std::to_string(port)};
}

// What counts for a slot: "origin key instance"; empty where nothing does.
std::string counts(const Roster& roster, const Slot& where) {
  const auto entry = roster.find(where);
  if (!entry) return "";
  return std::string(to_string(entry->origin)) + " " + entry->key + " " +
         entry->announcement.spec.instance;
}

TEST(Roster, ASlotIsAServerForAModel) {
  EXPECT_EQ(slot_of(said(1)), slot(1));
  EXPECT_NE(slot_of(said(1)), slot(2));
  EXPECT_NE(slot_of(said(1)), slot(1, "other"));
}

TEST(Roster, KnowsWhatWasSaidUntilItIsTakenBack) {
  Roster roster;
  EXPECT_EQ(counts(roster, slot(1)), "");
  EXPECT_THAT(roster.put(Origin::Etcd, "k", said(1, "i")), ElementsAre(slot(1)));
  EXPECT_EQ(counts(roster, slot(1)), "etcd k i");
  EXPECT_EQ(counts(roster, slot(1, "other")), "");
  EXPECT_EQ(roster.of(Origin::Etcd).size(), 1U);
  EXPECT_EQ(roster.of(Origin::File).size(), 0U);
  EXPECT_THAT(roster.remove(Origin::Etcd, "k"), ElementsAre(slot(1)));
  EXPECT_EQ(counts(roster, slot(1)), "");
}

TEST(Roster, TheSameAgainTouchesNothing) {
  Roster roster;
  roster.put(Origin::Etcd, "k", said(1));
  EXPECT_THAT(roster.put(Origin::Etcd, "k", said(1)), IsEmpty());
  EXPECT_THAT(roster.remove(Origin::Etcd, "other"), IsEmpty());
  EXPECT_THAT(roster.remove(Origin::Admin, "k"), IsEmpty()) << "keys are each source's own";
  EXPECT_EQ(counts(roster, slot(1)), "etcd k ");
}

TEST(Roster, SomethingElseUnderAKeyReplacesWhatWasThere) {
  Roster roster;
  roster.put(Origin::Etcd, "k", said(1, "old"));
  EXPECT_THAT(roster.put(Origin::Etcd, "k", said(1, "new")), ElementsAre(slot(1)));
  EXPECT_EQ(counts(roster, slot(1)), "etcd k new");
  EXPECT_THAT(roster.put(Origin::Etcd, "k", said(2)), UnorderedElementsAre(slot(1), slot(2)))
      << "the server it was at, and the one it is at";
  EXPECT_EQ(counts(roster, slot(1)), "");
  EXPECT_EQ(counts(roster, slot(2)), "etcd k ");
}

TEST(Roster, WhatCountsDoesNotDependOnTheOrderOfTheNews) {
  struct Claim {
    Origin origin;
    std::string key;
    std::string counts;
  };
  // The best one first.
  const std::array claims{Claim{Origin::Etcd, "a", "etcd a "}, Claim{Origin::Etcd, "b", "etcd b "},
                          Claim{Origin::Admin, "0", "admin 0 "},
                          Claim{Origin::File, "0", "file 0 "}};
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  do {
    Roster roster;
    std::size_t best = claims.size();
    for (const std::size_t i : order) {
      roster.put(claims[i].origin, claims[i].key, said(1));
      best = std::min(best, i);
      EXPECT_EQ(counts(roster, slot(1)), claims[best].counts);
    }
    std::array<bool, 4> there{true, true, true, true};
    for (const std::size_t i : order) {
      roster.remove(claims[i].origin, claims[i].key);
      there[i] = false;
      const auto next = std::ranges::find(there, true);
      EXPECT_EQ(
          counts(roster, slot(1)),
          next == there.end() ? "" : claims[static_cast<std::size_t>(next - there.begin())].counts);
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST(Roster, ReplaceIsAllThatASourceSays) {
  Roster roster;
  roster.put(Origin::Etcd, "gone", said(1));
  roster.put(Origin::Etcd, "same", said(2));
  roster.put(Origin::Etcd, "changed", said(3, "old"));
  roster.put(Origin::Admin, "other", said(4));
  Roster::Announcements all;
  all.emplace("same", said(2));
  all.emplace("changed", said(3, "new"));
  all.emplace("added", said(5));
  EXPECT_THAT(roster.replace(Origin::Etcd, all), UnorderedElementsAre(slot(1), slot(3), slot(5)));
  EXPECT_EQ(counts(roster, slot(1)), "");
  EXPECT_EQ(counts(roster, slot(2)), "etcd same ");
  EXPECT_EQ(counts(roster, slot(3)), "etcd changed new");
  EXPECT_EQ(counts(roster, slot(4)), "admin other ");
  EXPECT_EQ(counts(roster, slot(5)), "etcd added ");
  EXPECT_THAT(roster.replace(Origin::Etcd, all), IsEmpty());
}

TEST(Roster, AServerThatOnlyGotAnotherKeyStays) {
  Roster roster;
  roster.put(Origin::Etcd, "old", said(1, "i"));
  Roster::Announcements all;
  all.emplace("new", said(1, "i"));
  roster.replace(Origin::Etcd, all);
  EXPECT_EQ(counts(roster, slot(1)), "etcd new i");
  EXPECT_EQ(roster.of(Origin::Etcd).size(), 1U);
}

TEST(Roster, OriginsHaveNames) {
  EXPECT_EQ(to_string(Origin::File), "file");
  EXPECT_EQ(to_string(Origin::Admin), "admin");
  EXPECT_EQ(to_string(Origin::Etcd), "etcd");
}

}  // namespace
}  // namespace baton::fleet
