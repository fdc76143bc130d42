// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/openai_api.h"

#include "unit/api/answer_recorder.h"
#include "unit/handoff/handoff_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::api {
namespace {

using handoff::json;
using test::FakeEngine;
using testing::StartsWith;

struct OpenAiApiTest : handoff::HandoffFixture {
  void SetUp() override {
    serve(Engine::Vllm, {{Role::Aggregated, server.endpoint()}});
    pipeline.emplace(*fleet, caches, prompts, *handoff, tasks, deadlines, ledger,
                     pipeline::Options{.forward_authorization = pipeline::ForwardAuthorization::No,
                                       .response_bytes = 1024,
                                       .handoff_fields = config::ClientHandoffFields::Strip,
                                       .tell_workers = false,
                                       .overload_status = 0});
    routes.emplace(openai_routes(*pipeline, *fleet, 1'700'000'000));
  }
  void call(std::string method, std::string target, std::string body = "") {
    run([&]() -> awaitable<void> { co_await call_route(*routes, method, target, body, recorder); });
  }
  FakeEngine server{
      test::always(test::response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})"))};
  pipeline::RequestLedger ledger{metrics, log, false};
  pipeline::Tokenizers tokenizers{std::size_t{1} << 20, metrics};
  kvcache::KvCacheView caches{config::KvIndex(), metrics, log};
  pipeline::PromptStep prompts{tokenizers, caches, cpu, pipeline::EngineTokens(pool, cpu, 1024)};
  std::optional<pipeline::Pipeline> pipeline;
  std::optional<http::Routes> routes;
  AnswerRecorder recorder;
};

TEST_F(OpenAiApiTest, NeedsAKeyEverywhere) {
  for (const http::Route& route : openai_routes(*pipeline, *fleet, 0)) {
    EXPECT_EQ(route.access, http::Access::Key) << route.path;
  }
}

TEST_F(OpenAiApiTest, ListsTheModels) {
  call("GET", "/v1/models");
  EXPECT_EQ(recorder.status, 200);
  EXPECT_EQ(json(recorder.body),
            json(R"({"object":"list","data":[{"id":"m","object":"model","created":1700000000,)"
                 R"("owned_by":"baton"}]})"));
}

TEST_F(OpenAiApiTest, ListsAliasesBesideNames) {
  config::Config aliased = config;
  aliased.models[0].aliases = {"alias/of m"};
  telemetry::Registry registry;
  fleet::Fleet other(aliased, registry, log);
  const http::Routes all(openai_routes(*pipeline, other, 1));
  run([&]() -> awaitable<void> { co_await call_route(all, "GET", "/v1/models", "", recorder); });
  EXPECT_EQ(json(recorder.body)["data"][1]["id"], "alias/of m");
}

TEST_F(OpenAiApiTest, TellsOfOneModel) {
  call("GET", "/v1/models/m?x=1");
  EXPECT_EQ(recorder.status, 200);
  EXPECT_EQ(json(recorder.body)["id"], "m");
  call("GET", "/v1/models/org/other");
  EXPECT_EQ(recorder.status, 404);
  EXPECT_EQ(json(recorder.body)["error"]["code"], "model_not_found");
  EXPECT_EQ(json(recorder.body)["error"]["param"], "model");
}

TEST_F(OpenAiApiTest, TellsWhetherAModelIsReady) {
  call("GET", "/v1/models/m/ready");
  EXPECT_EQ(recorder.status, 200);
  EXPECT_EQ(json(recorder.body)["model"], "m");
  EXPECT_EQ(json(recorder.body)["ready"], true);
  worker(server.endpoint()).unreachable(fleet::Failure::Unreachable, "gone");
  call("GET", "/v1/models/m/ready");
  EXPECT_EQ(recorder.status, 503);
  EXPECT_EQ(json(recorder.body)["ready"], false);
  call("GET", "/v1/models/other/ready");
  EXPECT_EQ(recorder.status, 404);
  EXPECT_EQ(json(recorder.body)["error"]["code"], "model_not_found");
}

TEST_F(OpenAiApiTest, AModelMayBeCalledReady) {
  config::Config odd = config;
  odd.models[0].aliases = {"m/ready", "org/x"};
  telemetry::Registry registry;
  fleet::Fleet other(odd, registry, log);
  const http::Routes all(openai_routes(*pipeline, other, 1));
  const auto get = [&](std::string target) {
    run([&]() -> awaitable<void> { co_await call_route(all, "GET", target, "", recorder); });
    return json(recorder.body);
  };
  EXPECT_EQ(get("/v1/models/m/ready")["id"], "m/ready");
  EXPECT_EQ(get("/v1/models/m/ready/ready")["ready"], true);
  EXPECT_EQ(get("/v1/models/org%2Fx/ready")["ready"], true);
}

TEST_F(OpenAiApiTest, SendsEachApiToItsPath) {
  call("POST", "/v1/chat/completions", R"({"model":"m","messages":[]})");
  EXPECT_EQ(recorder.body, R"({"choices":[{"index":0,"finish_reason":"stop"}]})");
  call("POST", "/v1/completions", R"({"model":"m","prompt":"p"})");
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_THAT(server.requests()[0].head, StartsWith("POST /v1/chat/completions HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests()[1].head, StartsWith("POST /v1/completions HTTP/1.1\r\n"));
}

}  // namespace
}  // namespace baton::api
