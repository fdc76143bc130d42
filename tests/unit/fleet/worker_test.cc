// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace baton::fleet {
namespace {

model::WorkerSpec spec(std::string host, std::uint16_t port) {
  model::WorkerSpec made;
  made.endpoint = {std::move(host), port};
  return made;
}

struct WorkerLoad : testing::Test {
  telemetry::Gauge gauge;
  telemetry::Gauge other_gauge;
  Worker worker{{1}, spec("127.0.0.1", 8001), gauge};
  Worker other{{2}, spec("::1", 8002), other_gauge};
};

TEST_F(WorkerLoad, CountsABookingAsLongAsItLives) {
  {
    const Booking first(worker);
    const Booking second(worker);
    EXPECT_EQ(worker.in_flight(), 2);
    EXPECT_EQ(gauge.value(), 2);
  }
  EXPECT_EQ(worker.in_flight(), 0);
  EXPECT_EQ(gauge.value(), 0);
}

TEST_F(WorkerLoad, MovingABookingCountsItOnce) {
  Booking first(worker);
  const Booking moved(std::move(first));
  EXPECT_EQ(worker.in_flight(), 1);
  EXPECT_EQ(&moved.worker(), &worker);
}

TEST_F(WorkerLoad, AssigningABookingLetsTheOldOneGo) {
  Booking kept(worker);
  {
    Booking next(other);
    kept = std::move(next);
  }
  EXPECT_EQ(worker.in_flight(), 0);
  EXPECT_EQ(other.in_flight(), 1);
  EXPECT_EQ(&kept.worker(), &other);
}

TEST_F(WorkerLoad, AnEmptyBookingCountsNothing) {
  {
    const Booking empty;
  }
  EXPECT_EQ(worker.in_flight(), 0);
}

TEST_F(WorkerLoad, IsCountedOnTheRankItIsBookedFor) {
  model::WorkerSpec ranks = spec("127.0.0.1", 8003);
  ranks.data_parallel_size = 3;
  Worker many{{3}, ranks, gauge};
  {
    Booking first(many, 1);
    const Booking second(many, 2);
    EXPECT_EQ(first.rank(), 1U);
    EXPECT_EQ(second.seat(), (routing::Seat{{3}, 2}));
    EXPECT_EQ(many.in_flight(0), 0);
    EXPECT_EQ(many.in_flight(1), 1);
    EXPECT_EQ(many.in_flight(), 2);
    EXPECT_EQ(gauge.value(), 2);
    const Booking moved = std::move(first);
    EXPECT_EQ(moved.rank(), 1U);
    EXPECT_EQ(many.in_flight(1), 1);
  }
  EXPECT_EQ(many.in_flight(), 0);
  EXPECT_EQ(Booking(worker).rank(), std::nullopt);
}

TEST(WorkerName, IsItsIdOrItsAddress) {
  telemetry::Gauge gauge;
  model::WorkerSpec named = spec("h", 1);
  named.name = "w-1";
  const Worker one{{7}, named, gauge};
  const Worker other{{8}, spec("h", 2), gauge};
  EXPECT_EQ(one.name(), "w-1");
  EXPECT_EQ(other.name(), "h:2");
  for (const char* text : {"w-1", "h:1", "7"}) EXPECT_TRUE(one.is_called(text)) << text;
  for (const char* text : {"", "w-2", "h:2", "8", "07"}) EXPECT_FALSE(one.is_called(text)) << text;
}

TEST(WorkerTaints, AreThoseGivenAndItsPlaces) {
  telemetry::Gauge gauge;
  model::WorkerSpec placed = spec("h", 1);
  placed.taints = {"h200"};
  placed.topology = {"rack=r7"};
  const Worker worker{{1}, placed, gauge};
  EXPECT_THAT(worker.taints(), testing::ElementsAre("h200", "baton.topology/rack=r7"));
}

TEST(WorkerAvailability, IsUnknownUntilSomebodyTells) {
  telemetry::Gauge gauge;
  Worker worker{{1}, spec("h", 1), gauge};
  EXPECT_EQ(worker.availability(), Availability::Unknown);
  worker.set_availability(Availability::Down);
  EXPECT_EQ(worker.availability(), Availability::Down);
}

TEST_F(WorkerLoad, IsAddressedByHostAndPort) {
  EXPECT_EQ(worker.authority(), "127.0.0.1:8001");
  EXPECT_EQ(other.authority(), "[::1]:8002");
}

}  // namespace
}  // namespace baton::fleet
