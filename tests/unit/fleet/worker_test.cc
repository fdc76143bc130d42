// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker.h"

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

TEST_F(WorkerLoad, IsAddressedByHostAndPort) {
  EXPECT_EQ(worker.authority(), "127.0.0.1:8001");
  EXPECT_EQ(other.authority(), "[::1]:8002");
}

}  // namespace
}  // namespace baton::fleet
