// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// prefill-router.md §2.11.
#include "pipeline/route_query.h"

#include "unit/handoff/handoff_fixture.h"
#include "unit/pipeline/recording_sink.h"
#include "unit/scheduling/book_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::pipeline {
namespace {

using handoff::json;
using testing::HasSubstr;

constexpr const char* kBody = R"({"model":"m","prompt":"p"})";

struct RouteQueryTest : handoff::HandoffFixture {
  void serve_four() {
    model::WorkerSpec second = spec(Engine::Vllm, Role::Prefill, {"10.0.0.2", 80});
    second.name = "p2";
    second.data_parallel_size = 2;
    serve({spec(Engine::Vllm, Role::Prefill, {"10.0.0.1", 80}), second,
           spec(Engine::Vllm, Role::Decode, {"10.0.0.3", 80}),
           spec(Engine::Vllm, Role::Decode, {"10.0.0.4", 80})});
  }
  Result<std::string> describe(const std::string& body) {
    RouteQuery query(*fleet, caches, prompts, ledger, random);
    std::optional<Result<std::string>> described;
    run([&]() -> awaitable<void> {
      described.emplace(co_await query.describe(headers, body, {}, cancellation));
    });
    return *std::move(described);
  }
  // Two prefill workers p1 and p2 and a decode worker, all weighed by their caches.
  void serve_by_cache() {
    options.policy = model::Policy::Kv;
    std::vector<model::WorkerSpec> workers;
    for (const char* name : {"p1", "p2", "d1"}) {
      const Role role = name[0] == 'p' ? Role::Prefill : Role::Decode;
      const auto port = static_cast<std::uint16_t>(workers.size() + 1);
      workers.push_back(spec(Engine::Vllm, role, {"10.0.0.1", port}));
      workers.back().name = name;
    }
    serve(workers);
    kvcache::KvCacheView::Table table;
    table.plans["m"].shapes = {{.size = 4}};
    for (const char* name : {"p1", "p2", "d1"}) {
      const kvcache::Holder holder{fleet->find_worker(name)->id(), 0};
      table.caches[holder] = std::make_shared<kvcache::Cache>(
          kvcache::Cache::Identity{holder, name, name, "m"}, caches.index().join(holder),
          kvcache::BlockShape{.size = 4});
    }
    caches.publish(table);
  }
  // As if the prompt had been sent there.
  void sent(const char* worker, const std::vector<kvcache::TokenId>& prompt) {
    caches.sent({fleet->find_worker(worker)->id(), 0},
                kvcache::hash_prompt(caches.plan("m"), prompt, ""));
  }
  RequestLedger ledger{metrics, log, false};
  Tokenizers tokenizers{std::size_t{1} << 20, metrics};
  kvcache::KvCacheView caches{config::KvIndex(), metrics, log};
  PromptStep prompts{tokenizers, caches, cpu, EngineTokens(pool, cpu, 1024 * 1024)};
  wire::Headers headers;
  Random random = [] { return std::uint64_t{0}; };
};

TEST_F(RouteQueryTest, TellsWhoWouldServeAndWhoElseCould) {
  serve_four();
  const auto route = json(describe(kBody).value());
  EXPECT_EQ(route["object"], "route");
  EXPECT_EQ(route["model"], "m");
  EXPECT_EQ(route["handoff"], "nixl_pull");
  EXPECT_EQ(route["prefill"]["worker"], "10.0.0.1:80");
  EXPECT_TRUE(route["prefill"]["dp_rank"].is_null());
  ASSERT_EQ(route["prefill"]["candidates"].size(), 3U) << "each rank is one";
  const auto ranked = route["prefill"]["candidates"][2];
  EXPECT_EQ(ranked["worker"], "p2");
  EXPECT_EQ(ranked["dp_rank"], 1);
  EXPECT_EQ(ranked["load"], 0);
  EXPECT_EQ(ranked["score"], 1.0);
  EXPECT_TRUE(ranked["why_not"].is_null());
  EXPECT_EQ(route["decode"]["worker"], "10.0.0.3:80");
}

TEST_F(RouteQueryTest, BooksNothingAndUsesUpNobodysTurn) {
  serve_four();
  const std::string first = describe(kBody).value();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(describe(kBody).value(), first);
  EXPECT_EQ(in_flight(), 0);
  const auto chosen =
      test::book_worker(fleet->find("m")->pool("default")->workers(Role::Prefill), {}, random);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->worker().name(), "10.0.0.1:80");
  EXPECT_EQ(json(describe(kBody).value())["prefill"]["worker"], "p2") << "now it is their turn";
}

TEST_F(RouteQueryTest, HasTheLoadInItsScores) {
  serve_four();
  const fleet::Booking busy(fleet->find_worker("10.0.0.3:80"));
  const fleet::Booking busier(fleet->find_worker("10.0.0.3:80"));
  const auto candidates = json(describe(kBody).value())["decode"]["candidates"];
  EXPECT_EQ(candidates[0]["load"], 2);
  EXPECT_EQ(candidates[0]["score"], 3.0);
  EXPECT_EQ(candidates[1]["score"], 1.0);
}

TEST_F(RouteQueryTest, SaysWhetherTheRequestWouldWaitAndForWhat) {
  config::QueueClass& one = options.routing.queue.classes.emplace_back();
  one.name = "default";
  one.busy_tokens = 0;
  serve_by_cache();
  const auto idle = json(describe(kBody).value());
  EXPECT_EQ(idle["waits"], false);
  EXPECT_TRUE(idle["waits_for"].is_null());
  auto prompt = std::make_shared<scheduling::KnownPrompt>();
  prompt->tokens = 100;
  scheduling::WorkerRequirements requirements;
  requirements.prompt = prompt;
  fleet::WorkerSet& prefills = fleet->find("m")->pool("default")->workers(Role::Prefill);
  const auto first = test::book_worker(prefills, requirements, random);
  const auto second = test::book_worker(prefills, requirements, random);
  ASSERT_NE(first->worker().name(), second->worker().name());
  const auto busy = json(describe(kBody).value());
  EXPECT_EQ(busy["waits"], true);
  EXPECT_EQ(busy["waits_for"],
            json(R"({"kind":"workers","worker":null,"dp_rank":null,"ahead":0})"));
  EXPECT_FALSE(busy["prefill"].is_null()) << "who it would be, were there time";
}

TEST_F(RouteQueryTest, SaysWhichWorkerTheRequestWouldWaitFor) {
  options.policy = model::Policy::Ttft;
  model::WorkerSpec only = spec(Engine::Vllm, Role::Aggregated, {"10.0.0.1", 80});
  only.name = "a1";
  only.data_parallel_size = 2;
  serve({only});
  auto prompt = std::make_shared<scheduling::KnownPrompt>();
  prompt->tokens = 1'000'000;
  scheduling::WorkerRequirements requirements;
  requirements.prompt = prompt;
  fleet::WorkerSet& workers = fleet->find("m")->pool("default")->workers(Role::Aggregated);
  const auto first = test::book_worker(workers, requirements, random);
  const auto second = test::book_worker(workers, requirements, random);
  const auto route = json(describe(R"({"model":"m","prompt":"p","stream":true})").value());
  EXPECT_EQ(route["waits"], true);
  EXPECT_EQ(route["waits_for"]["kind"], "worker");
  EXPECT_EQ(route["waits_for"]["worker"], "a1");
  EXPECT_EQ(route["waits_for"]["dp_rank"], route["decode"]["dp_rank"]);
}

TEST_F(RouteQueryTest, SaysWhyACandidateCannot) {
  serve_four();
  fleet->find_worker("10.0.0.1:80")->unreachable(fleet::Failure::Unreachable, "gone");
  const auto prefill = json(describe(kBody).value())["prefill"];
  EXPECT_EQ(prefill["worker"], "p2");
  EXPECT_THAT(std::string(prefill["candidates"][0]["why_not"]), HasSubstr("not available"));
}

TEST_F(RouteQueryTest, FollowsTheHintsOfWhoeverAsks) {
  serve_four();
  headers.add("X-Baton-Prefill-Instance-Id", "p2");
  headers.add("X-Baton-Prefill-Dp-Rank", "1");
  const auto prefill = json(describe(kBody).value())["prefill"];
  EXPECT_EQ(prefill["worker"], "p2");
  EXPECT_EQ(prefill["dp_rank"], 1);
}

TEST_F(RouteQueryTest, HasNoPrefillWhereOneWorkerServes) {
  serve({spec(Engine::Vllm, Role::Aggregated, {"10.0.0.1", 80})});
  const auto route = json(describe(kBody).value());
  EXPECT_TRUE(route["handoff"].is_null());
  EXPECT_TRUE(route["prefill"].is_null());
  EXPECT_EQ(route["decode"]["worker"], "10.0.0.1:80");
}

TEST_F(RouteQueryTest, RefusesWhatMakesNoSense) {
  serve_four();
  const struct {
    const char* body;
    Errc code;
  } cases[] = {
      {"", Errc::InvalidJson},
      {"[]", Errc::InvalidJson},
      {"{}", Errc::ModelNotFound},
      {R"({"model":7})", Errc::ModelNotFound},
      {R"({"model":"other"})", Errc::ModelNotFound},
      {R"({"model":"m","nvext":7})", Errc::InvalidRouting},
      {R"({"model":"m","nvext":{"prefill_worker_id":"nobody"}})", Errc::InvalidRouting},
      {R"({"model":"m","nvext":{"prefill_worker_id":"p2","prefill_dp_rank":2}})",
       Errc::InvalidRouting},
  };
  for (const auto& c : cases) {
    const auto route = describe(c.body);
    ASSERT_FALSE(route) << c.body;
    EXPECT_EQ(route.error().code(), c.code) << c.body << ": " << route.error().message();
  }
}

TEST_F(RouteQueryTest, RefusesHeadersThatMakeNoSense) {
  serve_four();
  headers.add("X-Baton-Prefill-Instance-Id", "p2");
  headers.add("X-Baton-Prefill-Dp-Rank", "one");
  const auto route = describe(kBody);
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().code(), Errc::InvalidRouting);
}

TEST_F(RouteQueryTest, FailsAsTheRequestWould) {
  serve({spec(Engine::Vllm, Role::Prefill, {"10.0.0.1", 80})});
  EXPECT_EQ(describe(kBody).error().code(), Errc::NoWorkers);
}

// A prompt that is known is looked for in the caches, as if it were to be served.
TEST_F(RouteQueryTest, KnowsThePromptAndWhoHasIt) {
  serve_by_cache();
  sent("p2", {1, 2, 3, 4, 5, 6, 7, 8});
  const auto route = json(describe(R"({"model":"m","prompt":[1,2,3,4,5,6,7,8,9,10]})").value());
  EXPECT_EQ(route["prompt_tokens"], 10);
  EXPECT_EQ(route["prefill"]["worker"], "p2");
  EXPECT_EQ(route["prefill"]["policy"], "kv");
  const auto candidates = route["prefill"]["candidates"];
  EXPECT_EQ(candidates[0]["cached_tokens"], 0);
  EXPECT_EQ(candidates[0]["new_tokens"], 10);
  EXPECT_EQ(candidates[1]["overlap"]["device"], 2);
  EXPECT_EQ(candidates[1]["cached_tokens"], 8);
  EXPECT_EQ(candidates[1]["cost"]["credit"], 2.0);
  EXPECT_EQ(candidates[1]["score"], candidates[1]["cost"]["total"]);
  EXPECT_EQ(route["decode"]["candidates"][0]["new_tokens"], 0) << "it computes nothing";
}

TEST_F(RouteQueryTest, AskingDoesNotMakeAnybodyHaveThePrompt) {
  serve_by_cache();
  const std::string body = R"({"model":"m","prompt":[1,2,3,4,5,6,7,8]})";
  const auto first = json(describe(body).value());
  const auto again = json(describe(body).value());
  for (const auto& candidate : again["prefill"]["candidates"]) {
    EXPECT_EQ(candidate["cached_tokens"], 0);
    EXPECT_EQ(candidate["prefill_tokens"], 0.0);
  }
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(RouteQueryTest, OfSeveralPromptsItTellsOfTheFirst) {
  serve_by_cache();
  sent("p2", {1, 2, 3, 4});
  const auto route =
      json(describe(R"({"model":"m","prompt":[[1,2,3,4,5],[6,7,8,9,10,11]]})").value());
  EXPECT_EQ(route["prompt_tokens"], 5);
  EXPECT_EQ(route["prefill"]["worker"], "p2");
}

TEST_F(RouteQueryTest, FollowsTheWeightsOfWhoeverAsks) {
  serve_by_cache();
  sent("p2", {1, 2, 3, 4});
  const auto route = json(describe(R"({"model":"m","prompt":[1,2,3,4,5],
      "nvext":{"router_config_override":{"overlap_score_credit":3}}})")
                              .value());
  EXPECT_EQ(route["prefill"]["candidates"][1]["cost"]["credit"], 3.0);
}

TEST_F(RouteQueryTest, IsTheAnswerOfAClientThatAskedForIt) {
  serve_four();
  RecordingSink sink(io);
  RequestRecord record;
  handoff::HandoffRequest asked = job(engine::Api::Completions, kBody);
  asked.prompt_tokens = std::string_view(kBody).size() / 4 + 1;  // nobody has counted them
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await answer_query(asked, random, sink, record));
  });
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(record.status, 200);
  EXPECT_EQ(sink.headers.find("content-type"), "application/json");
  EXPECT_EQ(sink.body, describe(kBody).value());
  EXPECT_EQ(record.response_bytes, sink.body.size());
}

}  // namespace
}  // namespace baton::pipeline
