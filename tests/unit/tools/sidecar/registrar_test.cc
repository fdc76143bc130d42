// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sidecar/registrar.h"

#include "config/announcement.h"
#include "support/fake_engine.h"
#include "support/io_fixture.h"
#include "unit/tools/sidecar/fake_etcd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace baton::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::response;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A vLLM server of two ranks, as far as a registrar looks at it.
struct FakeVllm {
  std::string answer(const test::SeenRequest& request) {
    const auto asks = [&](std::string_view path) {
      return request.head.starts_with(fmt::format("GET {} ", path));
    };
    if (asks("/health")) {
      ++checks;
      if (failing > 0) {
        --failing;
        return response(503, "");
      }
      return response(health, "");
    }
    if (asks("/v1/models") && cards != 200) return response(cards, "<html>");
    if (asks("/v1/models")) {
      return response(200, R"({"data":[{"id":"org/llama","owned_by":"vllm"}]})");
    }
    if (asks("/metrics") && tells_load) {
      return response(200, fmt::format("vllm:num_requests_running{{engine=\"0\"}} {}\n"
                                       "vllm:num_requests_running{{engine=\"1\"}} 0\n",
                                       running.load()));
    }
    return response(404, "");
  }

  std::atomic<int> health = 200;
  std::atomic<int> cards = 200;
  std::atomic<int> failing = 0;  // of the next checks
  std::atomic<int> checks = 0;
  std::atomic<int> running = 0;
  std::atomic<bool> tells_load = true;
  test::FakeEngine server{[this](test::FakePeer& peer) {
    while (const auto request = peer.read_request()) peer.write(answer(*request));
  }};
};

struct RegistrarTest : test::IoFixture {
  RegistrarOptions options() const {
    RegistrarOptions made;
    made.engine = engine.server.endpoint();
    made.introduction.announcement.spec.endpoint = {"10.0.0.2", 8000};
    made.introduction.announcement.spec.instance = "i1";
    made.introduction.announcement.spec.role = model::Role::Decode;
    made.prefix = "/w/";
    made.ttl = std::chrono::seconds(1);
    made.health_interval = milliseconds(20);
    made.settle = milliseconds(50);
    return made;
  }
  void live(RegistrarOptions options) {
    registrar = std::make_unique<Registrar>(
        io, deadlines, tasks, etcd.options(), std::move(options), [] {}, log);
    over = false;
    start([this]() -> test::awaitable<void> {
      outcome = co_await registrar->run();
      over = true;
    });
  }
  void TearDown() override {
    if (!over) {
      registrar->leave();
      registrar->leave();
      run_until([this] { return over; });
    }
    run_until([this] { return tasks.running() == 0; });
  }
  void await_key() {
    run_until([this] { return etcd.keys() == 1; });
    EXPECT_EQ(etcd.only_key(), kKey);
  }
  void await_no_key() {
    run_until([this] { return etcd.keys() == 0; });
  }
  model::Announcement announced() const {
    const auto read = config::parse_announcement(etcd.value(kKey).value_or(""), "etcd");
    EXPECT_TRUE(read);
    return read.value_or(model::Announcement());
  }
  std::size_t lines_of(std::string_view event) const {
    const std::string wanted = fmt::format(R"("event":"{}")", event);
    std::size_t found = 0;
    for (auto at = lines.find(wanted); at != lines.npos; at = lines.find(wanted, at + 1)) ++found;
    return found;
  }

  static constexpr const char* kKey = "/w/org/llama/decode/i1";
  FakeEtcd etcd;
  FakeVllm engine;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, lines};
  net::TaskGroup tasks{io, [](const std::exception_ptr&) { ADD_FAILURE() << "an exception"; }};
  std::unique_ptr<Registrar> registrar;
  std::expected<void, std::string> outcome;
  bool over = true;
};

TEST_F(RegistrarTest, WaitsForTheEngineAndAnnouncesWhatItSays) {
  engine.health = 503;
  live(options());
  run_until([this] { return engine.checks >= 3; });
  EXPECT_EQ(etcd.keys(), 0U);
  EXPECT_EQ(lines_of("engine_awaited"), 1U);
  EXPECT_THAT(lines, HasSubstr("status 503"));
  engine.health = 200;
  await_key();
  const model::Announcement worker = announced();
  EXPECT_EQ(worker.model, "org/llama");
  EXPECT_EQ(worker.spec.endpoint, (model::Endpoint{"10.0.0.2", 8000}));
  EXPECT_EQ(worker.spec.role, model::Role::Decode);
  EXPECT_EQ(worker.spec.instance, "i1");
  EXPECT_EQ(worker.spec.data_parallel_size, 2U);
  EXPECT_FALSE(worker.draining);
}

TEST_F(RegistrarTest, MakesUpAnInstance) {
  RegistrarOptions unnamed = options();
  unnamed.introduction.announcement.spec.instance.clear();
  live(unnamed);
  run_until([this] { return etcd.keys() == 1; });
  EXPECT_THAT(etcd.only_key(), StartsWith("/w/org/llama/decode/"));
  EXPECT_THAT(*etcd.value(etcd.only_key()), HasSubstr(R"("instance":")"));
}

TEST_F(RegistrarTest, EndsWhereTheEngineDeniesWhatIsSaid) {
  RegistrarOptions wrong = options();
  wrong.introduction.announcement.model = "other";
  live(wrong);
  run_until([this] { return over; });
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error(), AllOf(HasSubstr("the model is 'other'"), HasSubstr("'org/llama'")));
  EXPECT_EQ(etcd.calls("/v3/lease/grant"), 0);
}

TEST_F(RegistrarTest, WaitsWhileTheEngineCannotSayWhatItServes) {
  engine.cards = 500;
  live(options());
  run_until([this] { return engine.checks >= 2; });
  EXPECT_FALSE(over);
  EXPECT_EQ(lines_of("engine_awaited"), 1U);
  EXPECT_THAT(lines, HasSubstr("/v1/models"));
  engine.cards = 200;
  await_key();
}

TEST_F(RegistrarTest, EndsWhereNoEngineAnswers) {
  const test::FakeEngine website(test::always(response(200, "<html>")));
  RegistrarOptions wrong = options();
  wrong.engine = website.endpoint();
  live(wrong);
  run_until([this] { return over; });
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error(), HasSubstr("GET /v1/models"));
}

TEST_F(RegistrarTest, ForgivesTwoChecks) {
  live(options());
  await_key();
  engine.failing = 2;
  run_until([this] { return engine.failing == 0; });
  const int seen = engine.checks;
  run_until([&] { return engine.checks > seen + 2; });
  EXPECT_EQ(etcd.only_key(), kKey);
  EXPECT_EQ(lines_of("engine_lost"), 0U);
}

TEST_F(RegistrarTest, WithdrawsAnEngineWhoseHealthIsLostAndBringsItBack) {
  live(options());
  await_key();
  engine.health = 503;
  await_no_key();
  EXPECT_EQ(lines_of("engine_lost"), 1U);
  engine.health = 200;
  await_key();  // the process did not end: it is the same instance
  EXPECT_EQ(lines_of("engine_ready"), 2U);
  EXPECT_EQ(lines_of("engine_awaited"), 0U) << "engine_lost has said that";
}

TEST_F(RegistrarTest, DrainsUntilNothingRuns) {
  engine.running = 1;
  live(options());
  await_key();
  registrar->leave();
  run_until([this] { return announced().draining; });
  const auto asked = engine.server.requests().size();
  run_until([&] { return engine.server.requests().size() >= asked + 3; });
  EXPECT_FALSE(over);
  EXPECT_EQ(etcd.only_key(), kKey);
  engine.running = 0;
  run_until([this] { return over; });
  EXPECT_TRUE(outcome);
  EXPECT_EQ(etcd.keys(), 0U);
  EXPECT_EQ(etcd.leases(), 0U);
  EXPECT_THAT(lines, HasSubstr(R"("outcome":"idle")"));
}

TEST_F(RegistrarTest, DrainsNoLongerThanAllowed) {
  engine.running = 1;
  RegistrarOptions brief = options();
  brief.drain = milliseconds(200);
  live(brief);
  await_key();
  registrar->leave();
  run_until([this] { return over; });
  EXPECT_EQ(etcd.keys(), 0U);
  EXPECT_THAT(lines, AllOf(HasSubstr(R"("outcome":"time_over")"), HasSubstr(R"("requests":1)")));
}

TEST_F(RegistrarTest, DoesNotTakeSilenceForIdleness) {
  RegistrarOptions brief = options();
  brief.drain = milliseconds(300);
  live(brief);
  await_key();
  engine.tells_load = false;
  const auto begun = steady_clock::now();
  registrar->leave();
  run_until([this] { return over; });
  EXPECT_GE(steady_clock::now() - begun, brief.drain);
  EXPECT_THAT(lines, AllOf(HasSubstr(R"("outcome":"not_told")"), Not(HasSubstr(R"("requests")"))));
}

TEST_F(RegistrarTest, EndsAtOnceWhenToldTwice) {
  engine.running = 1;
  live(options());
  await_key();
  registrar->leave();
  run_until([this] { return announced().draining; });
  registrar->leave();
  run_until([this] { return over; });
  EXPECT_TRUE(outcome);
  EXPECT_EQ(etcd.keys(), 0U);
  EXPECT_THAT(lines, HasSubstr(R"("outcome":"cut_short")"));
}

TEST_F(RegistrarTest, LeavesTheKeyToItsLeaseWhereEtcdIsAway) {
  RegistrarOptions lasting = options();
  lasting.ttl = std::chrono::seconds(5);
  live(lasting);
  await_key();
  etcd.set_away(true);
  registrar->leave();
  registrar->leave();
  run_until([this] { return over; });
  EXPECT_TRUE(outcome);
  EXPECT_EQ(etcd.keys(), 1U);
  EXPECT_EQ(lines_of("registration_left"), 1U);
}

TEST_F(RegistrarTest, LeavesWithoutHavingFoundAnEngine) {
  engine.health = 503;
  live(options());
  run_until([this] { return engine.checks > 0; });
  registrar->leave();
  run_until([this] { return over; });
  EXPECT_TRUE(outcome);
  EXPECT_EQ(lines_of("drained"), 0U);
}

}  // namespace
}  // namespace baton::sidecar
