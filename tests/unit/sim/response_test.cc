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

TEST(Response, VllmChunksLeaveOutWhatIsNotSetAndFinishWithTheLastToken) {
  const ResponseShape shape(Engine::Vllm, chat_request(), "chatcmpl-\"1\"", "demo", 99);
  std::string out;
  const AnswerPlan plan{.finish = Finish::Length};
  shape.token(out, 2, {" kalo", 5}, &plan, nullptr);
  EXPECT_EQ(event(out), json::parse(R"({"id":"chatcmpl-\"1\"","object":"chat.completion.chunk",
      "created":99,"model":"demo","choices":[{"index":2,"delta":{"content":" kalo"},
      "logprobs":null,"finish_reason":"length","stop_reason":null}]})"));
}

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

TEST(Response, UsageChunkHasNoChoices) {
  const ResponseShape shape(Engine::Vllm, chat_request(), "x", "demo", 1);
  std::string out;
  shape.usage(out, {.prompt_tokens = 10, .completion_tokens = 3, .cached_tokens = 8});
  EXPECT_EQ(event(out)["choices"], json::array());
  EXPECT_EQ(event(out)["usage"], json::parse(R"({"prompt_tokens":10,"completion_tokens":3,
      "total_tokens":13,"prompt_tokens_details":{"cached_tokens":8}})"));
}

TEST(Response, ToolCallArgumentsAreOneJsonTextInPieces) {
  GenerationRequest request;
  request.limits.tool_call = true;
  request.tool_name = "weather \"now\"";
  const ResponseShape shape(Engine::Vllm, request, "x", "demo", 1);
  const AnswerPlan plan{.finish = Finish::ToolCalls};
  std::string first;
  std::string last;
  shape.token(first, 0, {"ka", 1, true}, nullptr, nullptr);
  shape.token(last, 0, {" lo", 2}, &plan, nullptr);
  const auto arguments = [](const std::string& sse) {
    return event(sse)["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
        .get<std::string>();
  };
  EXPECT_EQ(json::parse(arguments(first) + arguments(last)), (json{{"text", "ka lo"}}));
  EXPECT_EQ(event(last)["choices"][0]["finish_reason"], nullptr);
}

TEST(Response, WholeAnswersCarryTheHandOffOfThePrefillLeg) {
  const ResponseShape shape(Engine::Vllm, chat_request(), "x", "demo", 1);
  const std::vector<TokenId> prompt{1, 2};
  const std::vector<FinishedChoice> choices{
      {.text = "ka", .finish = Finish::Length, .prompt = &prompt}};
  EXPECT_EQ(json::parse(shape.whole(choices, {}, R"({"a":1})"))["kv_transfer_params"],
            (json{{"a", 1}}));
  EXPECT_EQ(json::parse(shape.whole(choices, {}, "null")).at("kv_transfer_params"), nullptr);
  EXPECT_FALSE(json::parse(shape.whole(choices, {}, "")).contains("kv_transfer_params"));
}

TEST(Response, TokenIdsAreWhereEachEngineHasThem) {
  GenerationRequest request;
  request.return_token_ids = true;
  const std::vector<TokenId> prompt{1, 2};
  const std::vector<FinishedChoice> choices{{.text = "ka", .tokens = {9}, .prompt = &prompt}};
  const json vllm =
      json::parse(ResponseShape(Engine::Vllm, request, "x", "demo", 1).whole(choices, {}, ""));
  EXPECT_EQ(vllm["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(vllm["choices"][0]["token_ids"], json({9}));
  const json sglang =
      json::parse(ResponseShape(Engine::Sglang, request, "x", "demo", 1).whole(choices, {}, ""));
  EXPECT_EQ(sglang["choices"][0]["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(sglang["choices"][0]["response_token_ids"], json({9}));
}

TEST(Response, StreamedTokenIdsComeWithTheirChunkAndThePromptsWithTheFirst) {
  GenerationRequest request;
  request.return_token_ids = true;
  request.api = Api::Completions;
  const std::vector<TokenId> prompt{1, 2};
  for (const Engine engine : {Engine::Vllm, Engine::Sglang}) {
    const ResponseShape shape(engine, request, "x", "demo", 1);
    std::string first;
    std::string second;
    shape.token(first, 0, {"ka", 9, true}, nullptr, nullptr, &prompt);
    shape.token(second, 0, {" lo", 8}, nullptr, nullptr);
    EXPECT_EQ(event(first)["choices"][0]["prompt_token_ids"], json({1, 2}));
    EXPECT_EQ(event(first)["choices"][0]["token_ids"], json({9}));
    EXPECT_FALSE(event(second)["choices"][0].contains("prompt_token_ids"));
    EXPECT_EQ(event(second)["choices"][0]["token_ids"], json({8}));
  }
}

TEST(Response, StreamedChatsTellTokenIdsOnVllmOnly) {
  GenerationRequest request;
  request.return_token_ids = true;
  const std::vector<TokenId> prompt{1, 2};
  const auto chunks = [&](Engine engine) {
    const ResponseShape shape(engine, request, "x", "demo", 1);
    std::string opening;
    std::string token;
    shape.open_choice(opening, 0, 7, prompt);
    shape.token(token, 0, {"ka", 9, true}, nullptr, nullptr, &prompt);
    return std::pair(event(opening), event(token));
  };
  const auto [opening, token] = chunks(Engine::Vllm);
  EXPECT_EQ(opening["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(token["choices"][0]["token_ids"], json({9}));
  EXPECT_FALSE(token.contains("prompt_token_ids"));
  const auto [sglang_opening, sglang_token] = chunks(Engine::Sglang);
  EXPECT_FALSE(sglang_opening.contains("prompt_token_ids"));
  EXPECT_FALSE(sglang_token["choices"][0].contains("token_ids"));
}

TEST(Response, TheEndTokenHasNoId) {
  GenerationRequest request;
  request.return_token_ids = true;
  const ResponseShape shape(Engine::Vllm, request, "x", "demo", 1);
  const AnswerPlan plan{.tokens = 0, .finish = Finish::Stop};
  std::string out;
  shape.token(out, 0, {}, &plan, nullptr);
  EXPECT_EQ(event(out)["choices"][0]["token_ids"], json::array());
  EXPECT_EQ(event(out)["choices"][0]["finish_reason"], "stop");
}

}  // namespace
}  // namespace baton::sim
