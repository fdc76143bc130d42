// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/engine_tokens.h"

#include "unit/handoff/handoff_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::pipeline {
namespace {

using engine::Api;
using handoff::kChat;
using test::FakeEngine;
using test::response;

struct EngineTokensTest : handoff::HandoffFixture {
  Result<std::vector<tokenizer::TokenIds>> tokens(Api api, const std::string& body) {
    std::optional<Result<std::vector<tokenizer::TokenIds>>> told;
    run([&]() -> awaitable<void> {
      const handoff::HandoffRequest wanted = job(api, body);
      told.emplace(co_await engines.ask(wanted, said_route, cancellation));
    });
    return *told;
  }

  std::string lines;
  telemetry::Logger told_log{telemetry::Format::Json, telemetry::Level::Warning, lines};
  std::atomic<bool> said_route = false;
  EngineTokens engines{pool, cpu, 1024 * 1024, &told_log};
};

FakeEngine::Script tells(const std::string& ids) {
  return test::by_path(
      {{"/v1/chat/completions/render", response(200, "{\"token_ids\":" + ids + "}")},
       {"/v1/completions/render",
        response(200, "[{\"token_ids\":" + ids + "},{\"token_ids\":[1]}]")}});
}

TEST_F(EngineTokensTest, TellsWhatAWorkerSays) {
  const FakeEngine one(tells("[7,8]"));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  EXPECT_EQ(tokens(Api::Chat, kChat).value(), (std::vector<tokenizer::TokenIds>{{7, 8}}));
}

TEST_F(EngineTokensTest, AWorkerThatCouldNotAnswerIsLeftAloneForAWhile) {
  const FakeEngine one(test::always(response(500, "out of order")));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  EXPECT_FALSE(tokens(Api::Chat, kChat));
  EXPECT_FALSE(tokens(Api::Chat, kChat));
  EXPECT_EQ(one.requests().size(), 1U);
}

// A worker is not to blame for a client that left.
TEST_F(EngineTokensTest, WhereSomebodyLeavesTheWorkerIsAskedForTheNext) {
  const FakeEngine silent([](test::FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  serve(Engine::Vllm, {{Role::Aggregated, silent.endpoint()}});
  for (std::size_t asked = 1; asked <= 2; ++asked) {
    Cancellation leaves;
    std::optional<Result<std::vector<tokenizer::TokenIds>>> told;
    start([&]() -> awaitable<void> {
      const handoff::HandoffRequest wanted = job(Api::Chat, kChat);
      told.emplace(co_await engines.ask(wanted, said_route, leaves));
    });
    run_until([&] { return silent.requests().size() == asked; });
    leaves.request(Error(Errc::ClientGone, "gone"));
    run_until([&] { return told.has_value(); });
    EXPECT_EQ(told->error().code(), Errc::ClientGone);
    EXPECT_TRUE(silent.wait_for_drops(asked));
  }
}

TEST_F(EngineTokensTest, AWorkerThatRefusesOneRequestIsAskedForTheNext) {
  const FakeEngine one(test::always(response(400, "too long")));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  EXPECT_EQ(tokens(Api::Chat, kChat).error().code(), Errc::EngineRejected);
  EXPECT_FALSE(tokens(Api::Chat, kChat));
  EXPECT_EQ(one.requests().size(), 2U);
}

TEST_F(EngineTokensTest, TheKeyIsWhatThePromptDependsOn) {
  const auto key = [](const char* text, int minutes = 0) {
    return prompt_key(Api::Chat, wire::JsonObject::parse(text).value(),
                      std::chrono::system_clock::time_point(std::chrono::minutes(minutes)));
  };
  const std::string one = key(kChat);
  EXPECT_EQ(one,
            key(R"({"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]})"));
  EXPECT_NE(one, key(R"({"model":"m","add_generation_prompt":false,
                         "messages":[{"role":"user","content":"hi"}]})"));
  EXPECT_NE(one, key(R"({"model":"m","reasoning":{"enabled":true},
                         "messages":[{"role":"user","content":"hi"}]})"));
  EXPECT_NE(one, key(kChat, 10)) << "dates change";
  EXPECT_EQ(one, key(kChat, 9));
}

TEST_F(EngineTokensTest, SeveralPromptsAreSeveralLists) {
  const FakeEngine one(tells("[7]"));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  EXPECT_EQ(tokens(Api::Completions, R"({"model":"m","prompt":["a","b"]})").value(),
            (std::vector<tokenizer::TokenIds>{{7}, {1}}));
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

TEST_F(EngineTokensTest, SaysOnceThatAWorkerDoesNotRender) {
  const FakeEngine one(test::by_path({{"/v1/chat/completions/render", response(403, "{}")},
                                      {"/tokenize", response(200, R"({"tokens":[7]})")}}));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  EXPECT_EQ(tokens(Api::Chat, kChat).value(), (std::vector<tokenizer::TokenIds>{{7}}));
  EXPECT_EQ(tokens(Api::Chat, kChat).value(), (std::vector<tokenizer::TokenIds>{{7}}));
  const auto first = lines.find("--enable-scale-out");
  ASSERT_NE(first, std::string::npos) << lines;
  EXPECT_EQ(lines.find("--enable-scale-out", first + 1), std::string::npos) << lines;
}

TEST_F(EngineTokensTest, SaysWhyAWorkerCouldNotBeAsked) {
  const FakeEngine one(tells("[3000000000]"));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  EXPECT_FALSE(tokens(Api::Chat, kChat));
  EXPECT_NE(lines.find("3000000000"), std::string::npos) << lines;
}

}  // namespace
}  // namespace baton::pipeline
