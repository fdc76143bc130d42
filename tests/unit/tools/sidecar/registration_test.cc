// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sidecar/registration.h"

#include "support/io_fixture.h"
#include "unit/tools/sidecar/fake_etcd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace baton::sidecar {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds kTtl{1};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

struct RegistrationTest : test::IoFixture {
  void SetUp() override {
    start([this]() -> test::awaitable<void> {
      co_await registration.run();
      over = true;
    });
  }
  void TearDown() override {
    client.stop();
    registration.finish();
    run_until([this] { return over; });
  }
  void register_it(const std::string& key = "/w/a", const std::string& value = "v") {
    registration.want({key, value});
    run_until([&] { return registration.settled(); });
    EXPECT_EQ(etcd.value(key), value);
  }

  FakeEtcd etcd;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, lines};
  etcd::Client client{io, deadlines, etcd.options()};
  int registered = 0;
  Registration registration{io, client, kTtl, [this] { ++registered; }, log};
  bool over = false;
};

TEST_F(RegistrationTest, KeepsTheKeyAliveWithoutWritingItAgain) {
  register_it();
  run_until([this] { return etcd.calls("/v3/lease/keepalive") >= 3; });
  EXPECT_FALSE(registration.stalled()) << lines;
  EXPECT_EQ(etcd.calls("/v3/kv/put"), 1);
  EXPECT_EQ(etcd.calls("/v3/lease/grant"), 1);
  EXPECT_EQ(registered, 1);
  EXPECT_EQ(count(lines, R"("event":"registered")"), 1U);
}

TEST_F(RegistrationTest, WithdrawsTheKeyWithItsLease) {
  register_it();
  registration.want_nothing();
  run_until([this] { return registration.settled(); });
  EXPECT_EQ(etcd.keys(), 0U);
  EXPECT_EQ(etcd.leases(), 0U);
  EXPECT_THAT(lines, HasSubstr(R"("event":"withdrawn")"));
  register_it();
}

TEST_F(RegistrationTest, RegistersAgainWhereTheLeaseIsGone) {
  register_it();
  etcd.end_all_leases();
  run_until([this] { return etcd.value("/w/a") == "v"; });
  run_until([this] { return registration.settled(); });
  EXPECT_EQ(registered, 2);
  EXPECT_EQ(count(lines, R"("event":"registration_lost")"), 1U);
}

TEST_F(RegistrationTest, TakesAnotherLeaseWhereItsOwnEndsBeforeThePut) {
  etcd.end_lease_before_next_put();
  register_it();
  EXPECT_EQ(etcd.calls("/v3/lease/grant"), 2);
}

TEST_F(RegistrationTest, WaitsForAnEtcdThatIsAwayAndSaysSoOnce) {
  etcd.set_away(true);
  registration.want({"/w/a", "v"});
  run_until([this] { return registration.stalled(); });
  run_for(std::chrono::milliseconds(700));  // several further attempts
  EXPECT_EQ(count(lines, R"("event":"registration_stalled")"), 1U);
  EXPECT_THAT(lines, HasSubstr(etcd.options().endpoints.front().endpoint.to_string()));
  etcd.set_away(false);
  register_it();
  EXPECT_EQ(count(lines, R"("event":"registration_resumed")"), 1U);
}

TEST_F(RegistrationTest, KeepsItsLeaseOverAShortAbsenceOfEtcd) {
  register_it();
  etcd.set_away(true);
  run_until([this] { return registration.stalled(); });
  etcd.set_away(false);
  run_until([this] { return !registration.stalled(); });
  EXPECT_EQ(etcd.calls("/v3/lease/grant"), 1);
  EXPECT_EQ(etcd.value("/w/a"), "v");
  EXPECT_THAT(lines, Not(HasSubstr("registration_lost")));
}

TEST_F(RegistrationTest, SaysThatEtcdRefuses) {
  etcd.refuse_all(test::response(
      400,
      R"({"message":"etcdserver: authentication failed, invalid user ID or password","code":3})"));
  registration.want({"/w/a", "v"});
  run_until([this] { return registration.stalled(); });
  EXPECT_THAT(lines, HasSubstr("invalid user ID or password"));
  etcd.refuse_all("");
  register_it();
}

TEST_F(RegistrationTest, ChangesAValueUnderTheSameLease) {
  register_it("/w/a", "v");
  register_it("/w/a", "draining");
  EXPECT_EQ(etcd.calls("/v3/lease/grant"), 1);
  EXPECT_EQ(registered, 1) << "it is the same registration";
}

TEST_F(RegistrationTest, GivesAnotherKeyAnotherLease) {
  register_it("/w/a");
  register_it("/w/b");
  EXPECT_EQ(etcd.only_key(), "/w/b");
  EXPECT_EQ(etcd.leases(), 1U);
  EXPECT_EQ(etcd.calls("/v3/lease/grant"), 2);
}

TEST_F(RegistrationTest, EndsWhenNothingIsLeft) {
  register_it();
  registration.finish();
  run_until([this] { return over; });
  EXPECT_EQ(etcd.keys(), 0U);
  EXPECT_EQ(registration.held_key(), nullptr);
}

TEST_F(RegistrationTest, EndsAtOnceWhereNothingWasWanted) {
  registration.finish();
  run_until([this] { return over; });
  EXPECT_EQ(etcd.calls("/v3/lease/grant"), 0);
}

TEST_F(RegistrationTest, TrustsALeaseToEndByItselfWhereEtcdIsAway) {
  const auto begun = steady_clock::now();
  register_it();
  etcd.set_away(true);
  registration.finish();
  run_until([this] { return registration.stalled(); });
  EXPECT_NE(registration.held_key(), nullptr);
  run_until([this] { return over; });
  EXPECT_GE(steady_clock::now() - begun, kTtl);
}

}  // namespace
}  // namespace baton::sidecar
