// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// prefill-router.md §3.1 and §3.7, row by row: what once made an outage of a restart.
#include "fleet/fleet.h"
#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <atomic>
#include <optional>
#include <thread>

namespace baton::fleet {
namespace {

using model::Role;

struct Races : FleetTest {
  Races() { add_model("m", {}).disaggregation = model::Disaggregation::Required; }

  void join(Role role, std::uint16_t port, std::string instance = "") {
    model::Announcement said{.model = "m", .spec = worker(port, role)};
    said.spec.instance = std::move(instance);
    fleet().announce(Origin::Etcd, std::to_string(port), std::move(said));
  }
  void leave(std::uint16_t port) { fleet().withdraw(Origin::Etcd, std::to_string(port)); }
  std::shared_ptr<Worker> at(std::uint16_t port) {
    return fleet().find_worker("127.0.0.1:" + std::to_string(port));
  }
  bool serves() {
    return model().why_not_ready().empty() && model().disaggregated() &&
           test::book_worker(workers(Role::Prefill), {}, no_dice) &&
           test::book_worker(workers(Role::Decode), {}, no_dice);
  }
};

constexpr std::uint16_t kPrefill = 1;
constexpr std::uint16_t kDecode = 2;
constexpr std::uint16_t kOtherDecode = 3;
constexpr std::uint16_t kOtherPrefill = 4;

// I2, and "decode torn down and rebuilt while prefill lives".
TEST_F(Races, DecodeRebuiltWhilePrefillLivesServesWithoutAnyNewsOfPrefill) {
  join(Role::Prefill, kPrefill);
  at(kPrefill)->answered();
  join(Role::Decode, kDecode, "first");
  join(Role::Decode, kOtherDecode, "first");
  EXPECT_TRUE(serves());
  leave(kDecode);
  leave(kOtherDecode);
  EXPECT_FALSE(serves());
  EXPECT_EQ(pool().prefill_state(), PrefillState::Active) << "that is not prefill's doing";
  join(Role::Decode, kDecode, "second");
  EXPECT_TRUE(serves());
}

// I3: what waited for a prefill worker leaves nothing behind.
TEST_F(Races, DecodeReplacedBeforeAnyPrefillCameServesOnceItComes) {
  join(Role::Decode, kDecode, "first");
  leave(kDecode);
  join(Role::Decode, kDecode, "second");
  EXPECT_FALSE(serves());
  join(Role::Prefill, kPrefill);
  at(kPrefill)->answered();
  EXPECT_TRUE(serves());
}

// I4 and I5: who is left counts, of the same role and namespace.
TEST_F(Races, OneOfSeveralThatLeavesTakesNobodyWithIt) {
  join(Role::Prefill, kPrefill);
  join(Role::Prefill, kOtherPrefill);
  join(Role::Decode, kDecode);
  join(Role::Decode, kOtherDecode);
  at(kPrefill)->answered();
  at(kOtherPrefill)->answered();
  leave(kPrefill);
  EXPECT_TRUE(serves());
  leave(kDecode);
  EXPECT_TRUE(serves());
  leave(kOtherPrefill);
  EXPECT_FALSE(serves());
  EXPECT_EQ(workers(Role::Decode).size(), 1U);
}

// "decode registers while prefill activates"
TEST_F(Races, DecodeThatJoinsWhilePrefillIsHeardOfMissesNothing) {
  for (int round = 0; round < 200; ++round) {
    join(Role::Prefill, kPrefill, std::to_string(round));
    const auto prefill = at(kPrefill);
    {
      std::atomic<bool> go{false};
      const std::jthread other([&] {
        while (!go) std::this_thread::yield();
        prefill->answered();
      });
      go = true;
      join(Role::Decode, kDecode);
    }
    ASSERT_TRUE(serves());
    leave(kPrefill);
    leave(kDecode);
    fleet().sweep();
  }
}

// "prefill gone between lifecycle test and dispatch"
TEST_F(Races, PrefillThatLeavesAfterALookIsAnErrorAndNotASilentDetour) {
  join(Role::Prefill, kPrefill);
  join(Role::Decode, kDecode);
  at(kPrefill)->answered();
  const auto seen = model().choose({}, no_dice);
  EXPECT_EQ(seen->prefill_state(), PrefillState::Active);
  leave(kPrefill);
  const auto booking = test::book_worker(seen->workers(Role::Prefill), {}, no_dice);
  ASSERT_FALSE(booking);
  EXPECT_EQ(booking.error().code(), Errc::NoWorkers);
}

// "target changes during build"
TEST_F(Races, AProbeOfAnInstanceThatWasReplacedTellsNothingOfTheNewOne) {
  join(Role::Decode, kDecode);
  join(Role::Prefill, kPrefill, "first");
  const auto old = at(kPrefill);
  join(Role::Prefill, kPrefill, "second");
  old->answered();
  EXPECT_EQ(pool().prefill_state(), PrefillState::Pending);
  EXPECT_FALSE(serves());
  at(kPrefill)->answered();
  EXPECT_TRUE(serves());
  old->misconfigured("late");
  EXPECT_TRUE(serves());
}

// "delete overtakes put"
TEST_F(Races, WhoWasWithdrawnDoesNotComeBackByNewsOfItself) {
  leave(kPrefill);
  join(Role::Decode, kDecode);
  join(Role::Prefill, kPrefill);
  const auto gone = at(kPrefill);
  leave(kPrefill);
  gone->answered();
  EXPECT_EQ(pool().prefill_state(), PrefillState::Pending);
  EXPECT_TRUE(workers(Role::Prefill).empty());
  fleet().sweep();
  EXPECT_EQ(fleet().members().size(), 1U);
}

// "request holds binding while it is swapped"
TEST_F(Races, ARequestKeepsTheWorkerItHas) {
  join(Role::Prefill, kPrefill, "first");
  const Booking held = test::book_worker(workers(Role::Prefill), {}, no_dice).value();
  join(Role::Prefill, kPrefill, "second");
  leave(kPrefill);
  fleet().sweep();
  EXPECT_EQ(held.worker().spec().instance, "first");
  EXPECT_EQ(held.worker().in_flight(), 1);
  EXPECT_EQ(fleet().members().size(), 1U) << "it is not gone before its request has ended";
}

// "router destroyed while background prefill drains"
TEST_F(Races, AFleetThatEndsLeavesARequestWhatItHas) {
  std::optional<Booking> held;
  std::shared_ptr<Model> kept;
  {
    Fleet ending(config, metrics, log);
    ending.announce(Origin::Etcd, "p", {.model = "m", .spec = worker(kPrefill, Role::Prefill)});
    kept = ending.find("m");
    held = test::book_worker(kept->pool("default")->workers(Role::Prefill), {}, no_dice).value();
  }
  held->worker().answered();
  EXPECT_EQ(kept->pool("default")->prefill_state(), PrefillState::Active);
  kept.reset();
  held->worker().unreachable(Failure::Unreachable, "nobody watches any more");
  EXPECT_EQ(held->worker().in_flight(), 1);
}

// "same id re-booked while old guard drops"
TEST_F(Races, ABookingThatEndsIsTakenFromTheWorkerItWasOn) {
  join(Role::Decode, kDecode, "first");
  std::optional<Booking> old(test::book_worker(workers(Role::Decode), {}, no_dice).value());
  join(Role::Decode, kDecode, "second");
  const Booking young = test::book_worker(workers(Role::Decode), {}, no_dice).value();
  old.reset();
  EXPECT_EQ(young.worker().in_flight(), 1);
}

// Health of the old one is gone with it.
TEST_F(Races, AReplacementBeginsWithoutTheFailuresOfTheOldOne) {
  join(Role::Decode, kDecode, "first");
  for (int i = 0; i < 3; ++i) at(kDecode)->failed(Failure::Broken, "it broke");
  EXPECT_FALSE(workers(Role::Decode).any_available());
  join(Role::Decode, kDecode, "second");
  EXPECT_TRUE(workers(Role::Decode).any_available());
}

// Requests look while workers come and go.
TEST_F(Races, WhoLooksWhileWorkersComeAndGoFindsWhoeverIsThere) {
  join(Role::Prefill, kPrefill);
  join(Role::Decode, kDecode);
  at(kPrefill)->answered();
  at(kDecode)->answered();
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 2; ++i) {
      clients.emplace_back([&] {
        while (!done) {
          const auto asked = fleet().find("m");
          const auto home = asked ? asked->choose({}, no_dice) : nullptr;
          if (!home || !test::book_worker(home->workers(Role::Decode), {}, no_dice) ||
              !test::book_worker(home->workers(Role::Prefill), {}, no_dice)) {
            ++failures;
          }
        }
      });
    }
    for (int round = 0; round < 300; ++round) {
      join(Role::Decode, kOtherDecode, std::to_string(round));
      join(Role::Prefill, kOtherPrefill, std::to_string(round));
      if (round % 3 == 0) leave(kOtherDecode);
      if (round % 3 == 1) leave(kOtherPrefill);
      fleet().sweep();
    }
    done = true;
  }
  EXPECT_EQ(failures, 0) << "the first pair was there all the time";
}

}  // namespace
}  // namespace baton::fleet
