// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/bench.h"

#include "support/fake_engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace baton::loadgen {
namespace {

using Json = nlohmann::json;
using test::FakeEngine;
using test::FakePeer;
using testing::HasSubstr;

std::string stream(std::string_view words) {
  std::string events;
  for (const char word : words)
    events += fmt::format("data: {{\"choices\":[{{\"text\":\"{}\"}}]}}\n\n", word);
  events += fmt::format(
      "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":10,\"completion_tokens\":{}}}}}\n\n"
      "data: [DONE]\n\n",
      words.size());
  return test::response(200, events,
                        "Content-Type: text/event-stream\r\nX-Baton-Decode-Worker: d1\r\n");
}

Options some(const FakeEngine& engine) {
  Options options;
  options.url = "http://" + engine.endpoint().to_string();
  options.model = "demo";
  options.concurrency = 2;
  options.requests = 20;
  options.workload.input_tokens = 4;
  return options;
}

Result<Outcome> bench(const Options& options) {
  const auto plan = make_plan(options);
  EXPECT_TRUE(plan) << plan.error().message();
  return run_bench(*plan, Progress::Style::Quiet, 0, [](std::string_view) {});
}

TEST(Bench, SendsAsManyRequestsAsAskedForOnAsManyConnections) {
  FakeEngine engine(test::always(stream("abc")));
  const auto outcome = bench(some(engine));
  ASSERT_TRUE(outcome) << outcome.error().message();
  const Tally& tally = outcome->tally;
  EXPECT_EQ(tally.completed, 20U);
  EXPECT_EQ(tally.failed, 0U);
  EXPECT_EQ(tally.ttft.count(), 20U);
  EXPECT_EQ(tally.itl.count(), 40U);
  EXPECT_EQ(tally.output_tokens, 60U);
  EXPECT_EQ(tally.prompt_tokens, 200U);
  EXPECT_EQ(tally.workers.at({"decode", "d1"}).requests, 20U);
  EXPECT_EQ(engine.requests().size(), 20U);
  EXPECT_LE(engine.connections(), 2U);
  EXPECT_FALSE(outcome->interrupted);
}

TEST(Bench, SendsTheSamePromptsWhateverTheNumberOfThreads) {
  std::vector<std::multiset<std::string>> sent;
  for (const std::uint32_t threads : {1U, 3U}) {
    FakeEngine engine(test::always(stream("a")));
    Options options = some(engine);
    options.threads = threads;
    options.concurrency = 5;
    ASSERT_TRUE(bench(options));
    std::multiset<std::string> bodies;
    for (const auto& request : engine.requests()) bodies.insert(request.body);
    sent.push_back(bodies);
  }
  EXPECT_EQ(sent[0].size(), 20U);
  EXPECT_EQ(sent[0], sent[1]);
}

TEST(Bench, SendsAnOpenLoopOnAllThreadsOnce) {
  FakeEngine engine(test::always(stream("a")));
  Options options = some(engine);
  options.concurrency = {};
  options.rate = 2000;
  options.threads = 3;
  const auto outcome = bench(options);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tally.completed, 20U);
  std::set<std::string> bodies;
  for (const auto& request : engine.requests()) bodies.insert(request.body);
  EXPECT_EQ(bodies.size(), 20U);
}

TEST(Bench, AsksForTheModelsWhereNoneIsNamed) {
  FakeEngine engine(
      test::by_path({{"/v1/models", test::response(200, R"({"data":[{"id":"first"},{"id":"b"}]})")},
                     {"/v1/completions", stream("a")}}));
  Options options = some(engine);
  options.model = "";
  const auto outcome = bench(options);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->model, "first");
  EXPECT_EQ(Json::parse(engine.requests().back().body)["model"], "first");
}

TEST(Bench, SaysWhatToDoWhereThereIsNoEndpointOrNoModel) {
  Options options;
  options.url = "http://" + test::closed_endpoint().to_string();
  EXPECT_THAT(bench(options).error().message(), HasSubstr("is the endpoint up?"));
  FakeEngine engine(test::always(test::response(200, R"({"data":[]})")));
  options.url = "http://" + engine.endpoint().to_string();
  EXPECT_THAT(bench(options).error().message(), HasSubstr("--model"));
  options.model = "demo";
  options.admin = "http://" + test::closed_endpoint().to_string();
  EXPECT_THAT(bench(options).error().message(), HasSubstr("--admin"));
}

TEST(Bench, CountsRefusalsAndFailuresApart) {
  // 429 with and without Retry-After, 503, 500, a broken stream, and a good answer, in turn.
  std::atomic<int> turn = 0;
  FakeEngine engine([&turn](FakePeer& peer) {
    while (peer.read_request()) {
      switch (turn++ % 6) {
        case 0:
          peer.write(test::response(429, "{}", "Retry-After: 0\r\n"));
          break;
        case 1:
          peer.write(test::response(429, "{}"));
          break;
        case 2:
          peer.write(test::response(503, "{}", "Retry-After: 0\r\n"));
          break;
        case 3:
          peer.write(test::response(500, R"({"error":{"code":"bad"}})"));
          break;
        case 4: {
          const std::string whole = stream("abc");
          peer.write(whole.substr(0, whole.find("data: [DONE]")));
          return;
        }
        default:
          peer.write(stream("a"));
      }
    }
  });
  Options options = some(engine);
  options.concurrency = 1;
  options.requests = 12;
  const auto outcome = bench(options);
  ASSERT_TRUE(outcome);
  const Tally& tally = outcome->tally;
  EXPECT_EQ(tally.completed, 2U);
  EXPECT_EQ(tally.refused, 6U);
  EXPECT_EQ(tally.refused_with_retry_after, 4U);
  EXPECT_EQ(tally.refusal.count(), 6U);
  EXPECT_EQ(tally.failed, 4U);
  EXPECT_EQ(tally.errors.at("http_429"), 4U);
  EXPECT_EQ(tally.errors.at("http_500 bad"), 2U);
  EXPECT_EQ(tally.errors.at("broken"), 2U);
}

TEST(Bench, GoesOnWithTheAnswerInTheNextTurn) {
  FakeEngine engine(test::always(stream("xyz")));
  Options options = some(engine);
  options.api = Api::Chat;
  options.concurrency = 1;
  options.requests = 3;
  options.session_ids = true;
  options.workload.kind = WorkloadKind::MultiTurn;
  options.workload.turns = 3;
  options.workload.prefix_tokens = 2;
  options.workload.think_time = std::chrono::milliseconds(1);
  ASSERT_TRUE(bench(options));
  const auto seen = engine.requests();
  ASSERT_EQ(seen.size(), 3U);
  const Json first = Json::parse(seen[0].body)["messages"];
  const Json last = Json::parse(seen[2].body)["messages"];
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(last.size(), 6U);
  EXPECT_EQ(last[0], first[0]);
  EXPECT_EQ(last[1], first[1]);
  EXPECT_EQ(last[2], Json({{"role", "assistant"}, {"content", "xyz"}}));
  EXPECT_EQ(last[4]["content"], "xyz");
  EXPECT_THAT(seen[0].head, HasSubstr("x-baton-session-id: bench-1-0\r\n"));
}

TEST(Bench, DoesNotMeasureTheWarmUp) {
  FakeEngine engine(test::always(stream("ab")));
  Options options = some(engine);
  options.warmup = "15";
  const auto outcome = bench(options);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tally.completed, 5U);
  EXPECT_EQ(outcome->tally.warmup, 15U);
  EXPECT_EQ(outcome->tally.ttft.count(), 5U);
}

TEST(Bench, CutsWhatStillRunsAfterTheDurationAndItsDrain) {
  FakeEngine engine([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  Options options = some(engine);
  options.requests = {};
  options.duration = std::chrono::milliseconds(1000);
  options.drain = std::chrono::milliseconds(50);
  const auto outcome = bench(options);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tally.cut, 2U);
  EXPECT_EQ(outcome->tally.completed, 0U);
  EXPECT_TRUE(engine.wait_for_drops(2));
}

TEST(Bench, DoesNotSendMoreAtOnceThanItMay) {
  FakeEngine engine([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  Options options = some(engine);
  options.concurrency = {};
  options.rate = 10'000;
  options.arrivals = Arrivals::Even;
  options.max_in_flight = 3;
  options.timeout = std::chrono::milliseconds(300);
  const auto outcome = bench(options);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tally.skipped, 17U);
  EXPECT_EQ(outcome->tally.errors.at("timeout"), 3U);
}

TEST(Bench, FollowsWhatTheRouterSaysOfItsWorkers) {
  FakeEngine engine(test::always(stream("a")));
  FakeEngine admin(test::by_path(
      {{"/metrics",
        test::response(200, "baton_worker_in_flight{worker=\"d1\",role=\"decode\"} 2\n")},
       {"/workers",
        test::response(200, R"({"workers":[{"name":"d9","role":"decode","model":"demo"}]})")}}));
  Options options = some(engine);
  options.admin = "http://" + admin.endpoint().to_string();
  options.concurrency = {};
  options.rate = 100;
  const auto outcome = bench(options);
  ASSERT_TRUE(outcome) << outcome.error().message();
  ASSERT_FALSE(outcome->fleet.moments().empty());
  const std::pair<std::string, std::string> worker("decode", "d1");
  EXPECT_EQ(outcome->fleet.moments()[0].gauges.at("in_flight").at(worker), 2);
  ASSERT_EQ(outcome->known_workers.size(), 1U);
  EXPECT_EQ(outcome->known_workers[0].second, "d9");
}

}  // namespace
}  // namespace baton::loadgen
