// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/engine_tokens.h"

#include "unit/handoff/handoff_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace baton::pipeline {
namespace {

using engine::Api;
using test::FakeEngine;
using test::response;

constexpr const char* kChat = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";

struct EngineTokensTest : handoff::HandoffFixture {
  Result<std::vector<prompt::TokenIds>> tokens(Api api, const std::string& body) {
    std::optional<Result<std::vector<prompt::TokenIds>>> told;
    run([&]() -> awaitable<void> {
      const handoff::Job wanted = job(api, body);
      told.emplace(co_await engines.ask(wanted, memory));
    });
    return *told;
  }
  void up(const model::Endpoint& endpoint) { worker(endpoint).answered(); }

  EngineTokens engines{pool, 1024 * 1024};
  prompt::SegmentCache memory{std::size_t{1} << 20};
};

FakeEngine::Script tells(const std::string& ids) {
  return test::by_path(
      {{"/v1/chat/completions/render", response(200, "{\"token_ids\":" + ids + "}")},
       {"/v1/completions/render",
        response(200, "[{\"token_ids\":" + ids + "},{\"token_ids\":[1]}]")}});
}

TEST_F(EngineTokensTest, WhatAWorkerSaidIsNotAskedTwice) {
  const FakeEngine one(tells("[7,8]"));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  const std::vector<prompt::TokenIds> expected{{7, 8}};
  EXPECT_EQ(tokens(Api::Chat, kChat).value(), expected);
  EXPECT_EQ(tokens(Api::Chat, kChat).value(), expected);
  EXPECT_EQ(one.requests().size(), 1U);
  // What does not change the prompt does not count; what does, does.
  EXPECT_EQ(tokens(Api::Chat, R"({"model":"m","max_tokens":5,
                                  "messages":[{"role":"user","content":"hi"}]})")
                .value(),
            expected);
  EXPECT_EQ(one.requests().size(), 1U);
  ASSERT_TRUE(tokens(Api::Chat, R"({"model":"m","add_generation_prompt":false,
                                    "messages":[{"role":"user","content":"hi"}]})"));
  EXPECT_EQ(one.requests().size(), 2U);
}

TEST_F(EngineTokensTest, SeveralPromptsAreSeveralLists) {
  const FakeEngine one(tells("[7]"));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  EXPECT_EQ(tokens(Api::Completions, R"({"model":"m","prompt":["a","b"]})").value(),
            (std::vector<prompt::TokenIds>{{7}, {1}}));
}

TEST_F(EngineTokensTest, AsksThoseFirstThatComputePrompts) {
  const FakeEngine prefill(tells("[1]"));
  const FakeEngine decode(tells("[2]"));
  serve(Engine::Vllm, {{Role::Decode, decode.endpoint()}, {Role::Prefill, prefill.endpoint()}});
  EXPECT_EQ(worker_to_ask(*fleet->find("m"))->spec().endpoint, prefill.endpoint());
}

TEST_F(EngineTokensTest, AsksNobodyWhoCannotBeReached) {
  const FakeEngine decode(tells("[2]"));
  serve(Engine::Vllm,
        {{Role::Prefill, test::closed_endpoint()}, {Role::Decode, decode.endpoint()}});
  const auto prefill = worker_to_ask(*fleet->find("m"));
  ASSERT_EQ(prefill->spec().role, Role::Prefill);
  prefill->unreachable(fleet::Failure::Refused, "refused");
  EXPECT_EQ(worker_to_ask(*fleet->find("m"))->spec().role, Role::Decode);
}

TEST_F(EngineTokensTest, ATensorRtWorkerCannotBeAsked) {
  serve(Engine::Trtllm, {{Role::Aggregated, test::closed_endpoint()}});
  EXPECT_EQ(worker_to_ask(*fleet->find("m")), nullptr);
  EXPECT_EQ(tokens(Api::Chat, kChat).error().code(), Errc::NoWorkers);
}

}  // namespace
}  // namespace baton::pipeline
