// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/etcd_source.h"

#include "support/fake_etcd.h"
#include "support/io_fixture.h"
#include "unit/fleet/etcd_value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fleet {
namespace {

using std::chrono::milliseconds;
using test::FakeEtcd;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct EtcdSourceTest : test::IoFixture {
  ~EtcdSourceTest() override {
    if (source) stop();
  }
  void start(milliseconds linger = milliseconds(60'000)) {
    config::Etcd config;
    config.endpoints = {{etcd.endpoint(), false}};
    config.prefix = "/";
    config.timeout = milliseconds(2'000);
    config.linger = linger;
    source = std::make_unique<EtcdSource>(io, deadlines, tasks, fleet, config, metrics, log);
    source->start();
  }
  void stop() {
    source->stop();
    run_until([this] { return tasks.running() == 0; });
    source.reset();
  }
  // The servers that get requests, in order.
  std::vector<std::string> serving() {
    std::vector<std::string> all;
    for (const Fleet::Member& one : fleet.members()) {
      if (!one.leaving) all.push_back(one.worker->authority());
    }
    return all;
  }
  void run_until_serving(std::size_t count) {
    run_until([this, count] { return serving().size() == count; });
  }
  void run_until_well() {
    run_until([this] { return source->status().well; });
  }
  void run_until_lost() {
    run_until([this] { return told("etcd_lost") > 0 && !source->status().well; });
  }
  // Until something that etcd is told now has come through.
  void run_past_news() {
    etcd.put("/marker", worker_value(9));
    run_until([this] { return fleet.find_worker("127.0.0.1:9") != nullptr; });
    etcd.erase("/marker");
    run_until([this] { return fleet.find_worker("127.0.0.1:9") == nullptr; });
  }
  std::size_t told(std::string_view event) const {
    const std::string wanted = fmt::format(R"("event":"{}")", event);
    std::size_t count = 0;
    for (auto at = lines.find(wanted); at != lines.npos; at = lines.find(wanted, at + 1)) ++count;
    return count;
  }
  std::int64_t gauge(std::string_view name) { return metrics.gauge(name, help(name)).value(); }
  // A registry knows each metric by one help text.
  std::string help(std::string_view name) {
    for (const auto& one : metrics.describe()) {
      if (one.name == name) return one.help;
    }
    return "";
  }

  FakeEtcd etcd;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  Fleet fleet{config::Config{}, metrics, log};
  net::TaskGroup tasks{io, [](const std::exception_ptr&) { ADD_FAILURE() << "a task threw"; }};
  std::unique_ptr<EtcdSource> source;
};

TEST_F(EtcdSourceTest, ListsAndThenFollows) {
  etcd.put("/a", worker_value(1));
  start();
  EXPECT_FALSE(source->status().well);
  EXPECT_THAT(source->status().detail, HasSubstr("has not answered yet"));
  run_until_well();
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1"));
  EXPECT_EQ(source->status().detail, "");
  EXPECT_EQ(gauge("baton_etcd_connected"), 1);
  etcd.put("/b", worker_value(2));
  etcd.erase("/a");
  run_until([this] { return serving() == std::vector<std::string>{"127.0.0.1:2"}; });
  EXPECT_EQ(etcd.listings(), 1U);
  EXPECT_EQ(told("etcd_connected"), 1U);
}

TEST_F(EtcdSourceTest, SaysThatAKeyCannotBeUsed) {
  etcd.put("/a", worker_value(1));
  etcd.put("/bad", "nonsense");
  start();
  run_until_well();
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1"));
  EXPECT_THAT(source->status().detail, HasSubstr("1 key cannot be used"));
}

TEST_F(EtcdSourceTest, TakesAThousandAtOnceWithoutListingAgain) {
  start();
  run_until_well();
  std::vector<FakeEtcd::Change> changes;
  for (int port = 1; port <= 1000; ++port)
    changes.push_back({fmt::format("/{}", port), worker_value(port), 0});
  etcd.change(changes);
  run_until_serving(1000);
  for (auto& change : changes) change.value.reset();
  etcd.change(changes);
  run_until_serving(0);
  EXPECT_EQ(etcd.listings(), 1U);
}

// ---- etcd goes and comes ----

TEST_F(EtcdSourceTest, ListsAgainAfterACompactionAndChangesNothing) {
  etcd.put("/a", worker_value(1));
  start();
  run_until_well();
  const auto before = fleet.find_worker("127.0.0.1:1")->id();
  etcd.compact();
  run_until([this] { return etcd.listings() == 2; });
  run_past_news();
  EXPECT_EQ(fleet.find_worker("127.0.0.1:1")->id(), before);
  EXPECT_EQ(told("etcd_relist"), 1U);
  EXPECT_EQ(told("etcd_lost"), 0U);
}

TEST_F(EtcdSourceTest, ServesOnWhileEtcdIsAwayAndConverges) {
  etcd.put("/a", worker_value(1));
  etcd.put("/b", worker_value(2));
  start();
  run_until_well();
  const auto before = fleet.find_worker("127.0.0.1:1")->id();
  etcd.set_away(true);
  run_until_lost();
  EXPECT_EQ(gauge("baton_etcd_connected"), 0);
  EXPECT_EQ(serving().size(), 2U);
  EXPECT_THAT(source->status().detail, HasSubstr("etcd is away since 20"));
  EXPECT_THAT(source->status().detail, HasSubstr("serving with 2 workers last known"));
  EXPECT_THAT(source->status().detail, HasSubstr(etcd.endpoint().to_string()));
  etcd.erase("/b");
  etcd.put("/c", worker_value(3));
  etcd.set_away(false);
  run_until_well();
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1", "127.0.0.1:3"));
  EXPECT_EQ(fleet.find_worker("127.0.0.1:1")->id(), before);
  // However often it was tried.
  EXPECT_EQ(told("etcd_lost"), 1U);
  EXPECT_EQ(told("etcd_back"), 1U);
}

TEST_F(EtcdSourceTest, WaitsForAnEtcdThatIsNotThereYet) {
  etcd.set_away(true);
  etcd.put("/a", worker_value(1));
  start();
  run_until_lost();
  EXPECT_THAT(source->status().detail, HasSubstr("serving with 0 workers"));
  etcd.set_away(false);
  run_until_serving(1);
}

TEST_F(EtcdSourceTest, KeepsEverybodyWhenEtcdComesBackEmpty) {
  etcd.put("/a", worker_value(1), 7);
  etcd.put("/b", worker_value(2));
  start();
  run_until_well();
  etcd.set_away(true);
  run_until_lost();
  etcd.wipe();
  etcd.set_away(false);
  run_until_well();
  EXPECT_EQ(serving().size(), 2U);
  EXPECT_EQ(gauge("baton_etcd_lingering"), 2);
  EXPECT_THAT(source->status().detail, HasSubstr("2 workers are without a lease"));
  // A worker that registers again has never been away.
  const std::size_t changes = told("worker_changed");
  etcd.put("/a", worker_value(1), 8);
  etcd.put("/b", worker_value(2), 9);
  run_until([this] { return gauge("baton_etcd_lingering") == 0; });
  EXPECT_EQ(told("worker_changed"), changes);
}

// ---- leases ----

TEST_F(EtcdSourceTest, LetsGoOfWhoWasDeletedWhileItsLeaseLives) {
  etcd.put("/a", worker_value(1), 7);
  start();
  run_until_serving(1);
  etcd.erase("/a");
  run_until_serving(0);
  EXPECT_EQ(etcd.lease_questions(), 1U);
}

TEST_F(EtcdSourceTest, KeepsWhoseLeaseRanOutUntilTheTimeIsOver) {
  etcd.put("/a", worker_value(1), 7);
  start(milliseconds(700));
  run_until_well();
  etcd.expire(7);
  run_until([this] { return gauge("baton_etcd_lingering") == 1; });
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1"));
  run_until_serving(0);
  EXPECT_EQ(etcd.lease_questions(), 1U);
  EXPECT_EQ(told("etcd_linger_over"), 1U);
}

TEST_F(EtcdSourceTest, LetsGoOfWhoseEngineIsAwayToo) {
  etcd.put("/a", worker_value(1), 7);
  start();
  run_until_serving(1);
  etcd.expire(7);
  run_until([this] { return gauge("baton_etcd_lingering") == 1; });
  fleet.find_worker("127.0.0.1:1")->unreachable(Failure::Unreachable, "silence");
  run_until_serving(0);
}

TEST_F(EtcdSourceTest, KeepsWhoeverEtcdCannotTellOf) {
  etcd.set_secretive(true);
  etcd.put("/a", worker_value(1), 7);
  start();
  run_until_serving(1);
  run_until_well();
  etcd.erase("/a");
  run_until([this] { return etcd.lease_questions() == 1; });
  run_past_news();
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1"));
}

// ---- the end ----

TEST_F(EtcdSourceTest, StopsWhileItWatchesAndTheFleetStays) {
  etcd.put("/a", worker_value(1), 7);
  start();
  run_until_well();
  etcd.expire(7);
  run_until([this] { return gauge("baton_etcd_lingering") == 1; });
  stop();
  EXPECT_THAT(serving(), ElementsAre("127.0.0.1:1"));
}

TEST_F(EtcdSourceTest, StopsWhileEtcdIsAway) {
  etcd.set_away(true);
  start();
  run_until_lost();
  stop();
  EXPECT_THAT(serving(), IsEmpty());
}

TEST(EtcdSourceOptions, AreThoseOfTheConfiguration) {
  config::Etcd config;
  config.endpoints = {{{"a", 1}, true}, {{"b", 2}, false}};
  config.user = "u";
  config.password = "p";
  config.ca = "ca";
  config.certificate = "cert";
  config.key = "key";
  config.timeout = milliseconds(7);
  const etcd::Options options = client_options(config);
  EXPECT_THAT(options.endpoints, testing::SizeIs(2));
  EXPECT_EQ(options.endpoints[0].url(), "https://a:1");
  EXPECT_EQ(options.endpoints[1].url(), "http://b:2");
  EXPECT_EQ(options.user + options.password + options.tls.ca_file + options.tls.certificate_file +
                options.tls.key_file,
            "upcacertkey");
  EXPECT_EQ(options.timeout, milliseconds(7));
}

}  // namespace
}  // namespace baton::fleet
