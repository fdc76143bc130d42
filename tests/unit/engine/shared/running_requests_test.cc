// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/running_requests.h"

#include "unit/http_client/exchange_fixture.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace baton::engine {
namespace {

using model::Engine;
using test::by_path;
using test::FakeEngine;
using test::response;
using Count = std::optional<std::uint64_t>;

struct RunningRequestsTest : http_client::ExchangeFixture {
  Result<Count> ask(const model::Endpoint& endpoint, Engine engine) {
    model::WorkerSpec spec;
    spec.engine = engine;
    Result<Count> count;
    run([&]() -> awaitable<void> {
      count = co_await count_requests(pool, {{1}, endpoint}, spec, timeouts);
    });
    return count;
  }
};

TEST_F(RunningRequestsTest, AddsUpWhatRunsAndWaitsOnAllRanksOfVllm) {
  EXPECT_EQ(read_requests_of_metrics("# TYPE vllm:num_requests_running gauge\n"
                                     "vllm:num_requests_running{engine=\"0\",model=\"a}b\"} 2.0\n"
                                     "vllm:num_requests_running{engine=\"1\"} 1\n"
                                     "vllm:num_requests_waiting{engine=\"0\"} 4.0\n"
                                     "vllm:num_requests_waiting_by_reason{reason=\"x\"} 50\n"
                                     "vllm:prompt_tokens_total 900",
                                     Engine::Vllm),
            7U);
}

TEST_F(RunningRequestsTest, CountsHandOffsOfSglang) {
  EXPECT_EQ(read_requests_of_metrics("sglang:num_running_reqs{dp_rank=\"0\"} 0.0\n"
                                     "sglang:num_prefill_inflight_queue_reqs{dp_rank=\"0\"} 3.0\n",
                                     Engine::Sglang),
            3U);
}

TEST_F(RunningRequestsTest, DoesNotTakeSilenceForNothing) {
  EXPECT_EQ(read_requests_of_metrics("", Engine::Vllm), std::nullopt);
  EXPECT_EQ(read_requests_of_metrics("sglang:num_running_reqs 1\n", Engine::Vllm), std::nullopt);
  for (const char* broken : {"vllm:num_requests_running{engine=\"0\" 1",
                             "vllm:num_requests_running", "vllm:num_requests_running many",
                             "vllm:num_requests_running NaN", "vllm:num_requests_running -1"}) {
    EXPECT_EQ(read_requests_of_metrics(broken, Engine::Vllm), std::nullopt) << broken;
  }
}

TEST_F(RunningRequestsTest, AddsUpTheLoadsOfSglang) {
  EXPECT_EQ(
      read_requests_of_loads(
          R"({"loads":[{"num_running_reqs":2,"num_waiting_reqs":1},{"num_running_reqs":4}]})"),
      7U);
  for (const char* broken : {"", "[]", "{}", R"({"loads":[]})", R"({"loads":[3]})",
                             R"({"loads":[{"num_running_reqs":"2"}]})"}) {
    EXPECT_EQ(read_requests_of_loads(broken), std::nullopt) << broken;
  }
}

// Regression: a prefill worker looked idle while it was still sending KV caches.
TEST_F(RunningRequestsTest, CountsRequestsOfSglangThatNeitherRunNorWait) {
  EXPECT_EQ(read_requests_of_loads(
                R"({"loads":[{"num_running_reqs":0,"num_waiting_reqs":0,)"
                R"("disaggregation":{"mode":"prefill","prefill_bootstrap_queue_reqs":9,)"
                R"("prefill_inflight_queue_reqs":2},"queues":{"waiting":9,"grammar":1}},)"
                R"({"num_running_reqs":1,"disaggregation":null,"queues":{"grammar":"x"}}]})"),
            4U);
}

TEST_F(RunningRequestsTest, AsksVllmForItsMetrics) {
  const FakeEngine engine(
      by_path({{"/metrics", response(200, "vllm:num_requests_running{engine=\"0\"} 2\n")}}));
  const auto count = ask(engine.endpoint(), Engine::Vllm);
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, 2U);
}

TEST_F(RunningRequestsTest, PrefersTheLoadsOfSglang) {
  const FakeEngine engine(
      by_path({{"/v1/loads", response(200, R"({"loads":[{"num_running_reqs":1}]})")},
               {"/metrics", response(200, "sglang:num_running_reqs 9\n")}}));
  const auto count = ask(engine.endpoint(), Engine::Sglang);
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, 1U);
}

TEST_F(RunningRequestsTest, TakesTheMetricsOfAnOlderSglang) {
  const FakeEngine engine(by_path({{"/metrics", response(200, "sglang:num_running_reqs 9\n")}}));
  const auto count = ask(engine.endpoint(), Engine::Sglang);
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, 9U);
}

TEST_F(RunningRequestsTest, KnowsNothingWhereNothingIsTold) {
  const FakeEngine engine(by_path({}));
  const auto count = ask(engine.endpoint(), Engine::Vllm);
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, std::nullopt);
  const auto trtllm = ask(test::closed_endpoint(), Engine::Trtllm);
  ASSERT_TRUE(trtllm) << "nobody need be asked for that";
  EXPECT_EQ(*trtllm, std::nullopt);
}

TEST_F(RunningRequestsTest, SaysThatNobodyIsThere) {
  const auto count = ask(test::closed_endpoint(), Engine::Vllm);
  ASSERT_FALSE(count);
  EXPECT_EQ(count.error().code(), Errc::EngineUnreachable);
}

}  // namespace
}  // namespace baton::engine
