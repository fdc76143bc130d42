// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/response.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

json event(const std::string& sse) {
  EXPECT_TRUE(sse.starts_with("data: "));
  EXPECT_TRUE(sse.ends_with("\n\n"));
  return json::parse(sse.substr(6));
}

GenerationRequest chat_request() { return {}; }

TEST(Response, SglangChunksCarryNullsAndFinishApart) {
  const ResponseShape shape(Engine::Sglang, chat_request(), "rid", "demo", 99);
  const AnswerPlan plan{.finish = Finish::Stop};
  std::string token;
  shape.token(token, 0, {"ka", 5}, &plan, nullptr);
  EXPECT_EQ(event(token), json::parse(R"({"id":"rid","object":"chat.completion.chunk","created":99,
      "model":"demo","choices":[{"index":0,"delta":{"role":null,"content":"ka",
      "reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,
      "matched_stop":null}],"usage":null})"));
  EXPECT_FALSE(shape.finish_rides_on_token());
  std::string last;
  shape.close_choice(last, 0, plan);
  EXPECT_EQ(event(last)["choices"][0]["finish_reason"], "stop");
}

TEST(Response, SglangCompletionsFinishOnTheLastToken) {
  GenerationRequest request;
  request.api = Api::Completions;
  const ResponseShape shape(Engine::Sglang, request, "rid", "demo", 99);
  EXPECT_TRUE(shape.finish_rides_on_token());
  const AnswerPlan plan{.finish = Finish::Length};
  std::string token;
  shape.token(token, 0, {"ka", 5}, &plan, nullptr);
  EXPECT_EQ(event(token)["choices"][0]["finish_reason"], "length");
}

TEST(Response, SglangEchoesThePromptWithItsLogprobsWhereItComputedThem) {
  const std::vector<TokenId> prompt{7, 8};
  for (const Phase phase : {Phase::Aggregated, Phase::Prefill, Phase::Decode}) {
    GenerationRequest request;
    request.api = Api::Completions;
    request.phase = phase;
    request.echoes = {"say \"hi\""};
    request.logprobs = 1;
    const ResponseShape shape(Engine::Sglang, request, "rid", "demo", 99);
    const json tokens = phase == Phase::Decode ? json({"9"}) : json({"7", "8", "9"});
    const json whole = json::parse(
        shape.whole({{.index = 0, .text = "ka", .tokens = {9}, .prompt = &prompt}}, {}, ""));
    EXPECT_EQ(whole["choices"][0]["text"], "say \"hi\"ka");
    EXPECT_EQ(whole["choices"][0]["logprobs"]["tokens"], tokens);
    EXPECT_EQ(whole["usage"]["reasoning_tokens"], 0);
    EXPECT_TRUE(whole["usage"]["completion_tokens_details"].is_null());
    EXPECT_EQ(whole["metadata"]["weight_version"], "default");
    std::string first;
    shape.token(first, 0, {"ka", 9}, nullptr, nullptr, &prompt);
    EXPECT_EQ(event(first)["choices"][0]["text"], "say \"hi\"ka");
    EXPECT_EQ(event(first)["choices"][0]["logprobs"]["tokens"], tokens);
    std::string second;
    shape.token(second, 0, {"lo", 10}, nullptr, nullptr);
    EXPECT_EQ(event(second)["choices"][0]["text"], "lo");
    EXPECT_EQ(event(second)["choices"][0]["logprobs"]["tokens"], json({"10"}));
  }
}

TEST(Response, UsageChunkHasNoChoices) {
  const ResponseShape shape(Engine::Trtllm, chat_request(), "x", "demo", 1);
  std::string out;
  shape.usage(out, {.prompt_tokens = 10, .completion_tokens = 3, .cached_tokens = 8});
  EXPECT_EQ(event(out)["choices"], json::array());
  EXPECT_EQ(event(out)["usage"], json::parse(R"({"prompt_tokens":10,"completion_tokens":3,
      "total_tokens":13,"prompt_tokens_details":{"cached_tokens":8}})"));
}

TEST(Response, SglangTellsTokenIdsOfChatsInWholeAnswersOnly) {
  GenerationRequest request;
  request.return_token_ids = true;
  const std::vector<TokenId> prompt{1, 2};
  const ResponseShape shape(Engine::Sglang, request, "x", "demo", 1);
  const std::vector<FinishedChoice> choices{{.text = "ka", .tokens = {9}, .prompt = &prompt}};
  const json whole = json::parse(shape.whole(choices, {}, ""));
  EXPECT_EQ(whole["choices"][0]["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(whole["choices"][0]["response_token_ids"], json({9}));
  std::string opening;
  std::string token;
  shape.open_choice(opening, 0, 7, prompt);
  shape.token(token, 0, {"ka", 9, true}, nullptr, nullptr, &prompt);
  EXPECT_FALSE(event(opening).contains("prompt_token_ids"));
  EXPECT_FALSE(event(token)["choices"][0].contains("token_ids"));
}

TEST(Response, SglangStreamsTheTokenIdsOfCompletions) {
  GenerationRequest request;
  request.return_token_ids = true;
  request.api = Api::Completions;
  const std::vector<TokenId> prompt{1, 2};
  const ResponseShape shape(Engine::Sglang, request, "x", "demo", 1);
  std::string first;
  std::string second;
  shape.token(first, 0, {"ka", 9, true}, nullptr, nullptr, &prompt);
  shape.token(second, 0, {" lo", 8}, nullptr, nullptr);
  EXPECT_EQ(event(first)["choices"][0]["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(event(first)["choices"][0]["token_ids"], json({9}));
  EXPECT_FALSE(event(second)["choices"][0].contains("prompt_token_ids"));
  EXPECT_EQ(event(second)["choices"][0]["token_ids"], json({8}));
}

}  // namespace
}  // namespace baton::sim
