// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/monitor/watch.h"

#include "support/fake_engine.h"
#include "support/io_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::fleet {
namespace {

using std::chrono::milliseconds;
using test::FakeEngine;
using test::response;
using testing::HasSubstr;

const std::string kCards = response(200, R"({"data":[{"id":"m","owned_by":"vllm"}]})");
const std::string kServed =
    response(200, R"({"choices":[{"index":0,"text":"a","finish_reason":"length"}]})");

// An engine that answers as it is told, and can be told something else.
struct ObedientEngine {
  std::atomic<int> health{200};
  std::atomic<bool> other_model{false};
  std::atomic<int> completion{200};
  std::atomic<bool> has_adapter{false};
  FakeEngine server{[this](test::FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      const auto asks = [&](std::string_view path) {
        return request->head.find(std::string(path) + " HTTP") != std::string::npos;
      };
      if (asks("/health")) {
        peer.write(response(health, ""));
      } else if (asks("/v1/models")) {
        if (has_adapter) {
          peer.write(response(200, R"({"data":[{"id":"m","owned_by":"vllm"},
              {"id":"poet","owned_by":"vllm","parent":"m"}]})"));
          continue;
        }
        peer.write(other_model ? response(200, R"({"data":[{"id":"x","owned_by":"vllm"}]})")
                               : kCards);
      } else if (asks("/version")) {
        peer.write(response(200, R"({"version":"0.27.1rc1"})"));
      } else if (asks("/v1/completions")) {
        peer.write(completion == 200 ? kServed : response(completion, R"({"error":"no"})"));
      } else {
        peer.write(response(404, "{}"));
      }
    }
  }};
  std::size_t asked(std::string_view path) const {
    std::size_t count = 0;
    for (const auto& request : server.requests())
      count += request.head.find(std::string(path) + " HTTP") != std::string::npos;
    return count;
  }
};

struct WatchTest : test::IoFixture {
  ~WatchTest() override {
    if (!watch) return;
    watch->stop();
    run_until([this] { return tasks.running() == 0; });
  }
  Watch& begin(Watch::SelfTest self_test = nullptr) {
    watch = std::make_unique<Watch>(io, deadlines, tasks, fleet,
                                    http_client::PoolOptions{.connect_timeout = milliseconds(2000),
                                                             .idle_per_worker = 1,
                                                             .header_bytes = 65536,
                                                             .descriptors = descriptors},
                                    options, std::move(self_test));
    watch->start();
    return *watch;
  }
  std::shared_ptr<Worker> join(const model::Endpoint& endpoint, std::string instance = "") {
    model::Announcement one{.model = "m", .spec = {}};
    one.spec.endpoint = endpoint;
    one.spec.instance = std::move(instance);
    fleet.announce(Origin::Admin, "key", one);
    return worker();
  }
  std::shared_ptr<Worker> worker() const { return fleet.members().front().worker; }
  void wait_for(Condition condition) {
    run_until([&] { return worker()->condition() == condition; });
    EXPECT_EQ(worker()->condition(), condition) << worker()->health().why();
  }

  net::DescriptorBudget* descriptors = nullptr;
  Options options;
  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  Fleet fleet{config, metrics, log};
  net::TaskGroup tasks{io, [](std::exception_ptr) { ADD_FAILURE() << "an exception escaped"; }};
  std::unique_ptr<Watch> watch;
};

TEST_F(WatchTest, FindsOutWhoHasJoinedAndWhatItIs) {
  const ObedientEngine engine;
  begin();
  EXPECT_EQ(join(engine.server.endpoint())->condition(), Condition::New);
  EXPECT_EQ(watch->facts(worker()->id()), nullptr);
  EXPECT_EQ(worker()->version(), std::nullopt);
  wait_for(Condition::Up);
  EXPECT_EQ(worker()->version(), (model::Version{0, 27, 1}));
  const engine::Facts* const facts = watch->facts(worker()->id());
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->models.front().id, "m");
}

TEST_F(WatchTest, SaysNothingOfWorkersThatItHasNoDescriptorsToAsk) {
  const ObedientEngine engine;
  std::size_t refused = 0;
  net::DescriptorBudget nothing(0, [&](std::string_view) { ++refused; });
  descriptors = &nothing;
  begin();
  join(engine.server.endpoint());
  run_until([&] { return refused > 0; });
  run_for(milliseconds(50));
  EXPECT_EQ(worker()->condition(), Condition::New) << worker()->health().why();
  EXPECT_EQ(engine.server.connections(), 0U);
}

TEST_F(WatchTest, NoticesAdaptersThatComeAndGo) {
  ObedientEngine engine;
  options.health.interval = milliseconds(20);
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Up);
  EXPECT_EQ(fleet.find("poet"), nullptr);
  engine.has_adapter = true;
  run_until([&] { return fleet.find("poet") != nullptr; });
  EXPECT_EQ(fleet.find_served("poet").model->name(), "m");
  EXPECT_EQ(watch->facts(worker()->id())->models.size(), 2U);
  engine.has_adapter = false;
  run_until([&] { return fleet.find("poet") == nullptr; });
}

TEST_F(WatchTest, AsksNobodyWhatItIsWhereThatIsSwitchedOff) {
  ObedientEngine engine;
  engine.other_model = true;
  options.probe.enabled = false;
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Up);
  EXPECT_EQ(engine.asked("/v1/models"), 0U);
}

TEST_F(WatchTest, RefusesAWorkerThatIsSomethingElseUntilItIsMended) {
  ObedientEngine engine;
  engine.other_model = true;
  options.health.interval = milliseconds(50);
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Misconfigured);
  EXPECT_THAT(worker()->health().why(), HasSubstr("x"));
  engine.other_model = false;
  wait_for(Condition::Up);
}

TEST_F(WatchTest, WaitsForAnEngineThatIsNotReadyYet) {
  ObedientEngine engine;
  engine.health = 503;
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Unreachable);
  const auto before = worker();
  engine.health = 200;
  wait_for(Condition::Up);
  EXPECT_EQ(worker(), before) << "it is still the same process";
}

TEST_F(WatchTest, TellsWhereNobodyListens) {
  begin();
  join(test::closed_endpoint());
  wait_for(Condition::Unreachable);
  EXPECT_FALSE(worker()->health().process_ended()) << "it has never been there";
}

TEST_F(WatchTest, TakesWhoComesBackAfterItsProcessEndedForAnotherWorker) {
  const ObedientEngine engine;
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Up);
  const auto before = worker();
  before->failed(Failure::Refused, "nobody listens");
  run_until([&] { return worker() != before; });
  EXPECT_NE(worker()->id(), before->id());
  wait_for(Condition::Up);
  EXPECT_THAT(lines, HasSubstr(R"("to":"restarted")"));
}

TEST_F(WatchTest, KeepsAWorkerThatWasOnlyOutOfReach) {
  const ObedientEngine engine;
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Up);
  const auto before = worker();
  before->failed(Failure::Unreachable, "no connection within 2000 ms");
  wait_for(Condition::Up);
  EXPECT_EQ(worker(), before);
}

TEST_F(WatchTest, NoticesThatAnIdleWorkerHasDied) {
  ObedientEngine engine;
  options.health.interval = milliseconds(50);
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Up);
  engine.health = 503;
  wait_for(Condition::Unreachable);
}

TEST_F(WatchTest, BringsAnEjectedWorkerBackForATrial) {
  const ObedientEngine engine;
  begin();
  join(engine.server.endpoint());
  wait_for(Condition::Up);
  worker()->eject("it failed");
  wait_for(Condition::HalfOpen);
  {
    const Booking trial(worker());
  }
  EXPECT_EQ(worker()->condition(), Condition::HalfOpen)
      << "nobody knows how the trial would have ended";
}

TEST_F(WatchTest, SendsACanaryToAWorkerWithoutSuccess) {
  const ObedientEngine engine;
  options.canary.idle = milliseconds(50);
  begin();
  join(engine.server.endpoint());
  run_until([&] { return engine.asked("/v1/completions") >= 2; });
  EXPECT_EQ(worker()->condition(), Condition::Up);
  EXPECT_GT(worker()->health().last_success(), Time());
}

TEST_F(WatchTest, EjectsAWorkerWhoseCanariesFailAlthoughItsHealthIsFine) {
  ObedientEngine engine;
  engine.completion = 500;
  options.canary = {.idle = milliseconds(20), .timeout = milliseconds(2000), .failures = 2};
  begin();
  join(engine.server.endpoint());
  run_until([&] { return worker()->condition() == Condition::Ejected; });
  EXPECT_THAT(worker()->health().why(), HasSubstr("2 canaries failed"));
  EXPECT_GE(engine.asked("/v1/completions"), 2U);
}

TEST_F(WatchTest, TakesAPushBackOfACanaryForNoFailure) {
  ObedientEngine engine;
  engine.completion = 429;
  options.canary = {.idle = milliseconds(20), .timeout = milliseconds(2000), .failures = 1};
  begin();
  join(engine.server.endpoint());
  run_until([&] { return engine.asked("/v1/completions") >= 3; });
  EXPECT_EQ(worker()->condition(), Condition::Up);
}

TEST_F(WatchTest, LetsAWorkerServeOnlyWhenItHasPassedItsTest) {
  const ObedientEngine engine;
  options.probe.self_test = true;
  options.health.interval = milliseconds(50);
  int tests = 0;
  begin([&tests](const auto&, const std::string&) -> boost::asio::awaitable<Result<void>> {
    if (++tests == 1) co_return fail(Errc::EngineFailed, "nothing arrived");
    co_return Result<void>{};
  });
  join(engine.server.endpoint());
  wait_for(Condition::Misconfigured);
  EXPECT_THAT(worker()->health().why(), HasSubstr("self-test failed: nothing arrived"));
  wait_for(Condition::Up);
  EXPECT_EQ(tests, 2);
}

TEST_F(WatchTest, TellsTheOldWorkerWhatAProbeOfItFound) {
  ObedientEngine engine;
  engine.other_model = true;
  begin();
  const auto first = join(engine.server.endpoint(), "one");
  run_until([&] { return engine.asked("/health") >= 1; });
  engine.other_model = false;
  const auto second = join(engine.server.endpoint(), "two");
  EXPECT_NE(first, second);
  wait_for(Condition::Up);
  EXPECT_EQ(worker(), second);
}

TEST_F(WatchTest, ForgetsWhoHasGone) {
  const ObedientEngine engine;
  begin();
  const auto id = join(engine.server.endpoint())->id();
  wait_for(Condition::Up);
  fleet.withdraw(Origin::Admin, "key");
  run_until([&] { return fleet.members().empty(); });
  EXPECT_EQ(watch->facts(id), nullptr);
}

}  // namespace
}  // namespace baton::fleet
