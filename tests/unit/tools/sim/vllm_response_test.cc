// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/vllm_response.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

json event(const std::string& sse) {
  EXPECT_TRUE(sse.starts_with("data: "));
  EXPECT_TRUE(sse.ends_with("\n\n"));
  return json::parse(sse.substr(6));
}

VllmResponse shape_of(GenerationRequest request = {}) {
  request.model = "demo";
  return {Options(), request, "id-\"1\"", 99};
}

const std::vector<TokenId> kPrompt{1, 2};

TEST(VllmResponse, ChunksHaveWhatVllmSetsAndFinishWithTheLastToken) {
  std::string out;
  const AnswerPlan plan{.finish = Finish::Length};
  shape_of().token(out, 2, {" kalo", 5}, &plan, nullptr);
  json chunk = event(out);
  EXPECT_TRUE(chunk["system_fingerprint"].get<std::string>().starts_with("vllm-0.32.0-"));
  chunk.erase("system_fingerprint");
  EXPECT_EQ(chunk, json::parse(R"({"id":"id-\"1\"","object":"chat.completion.chunk",
      "created":99,"model":"demo","choices":[{"index":2,"delta":{"content":" kalo"},
      "logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]})"));
}

TEST(VllmResponse, UsageChunkHasNoChoicesAndTheFingerprintOfTheStream) {
  GenerationRequest request;
  request.include_usage = true;
  const VllmResponse shape = shape_of(request);
  std::string out;
  shape.usage(
      out,
      {.prompt_tokens = 10, .completion_tokens = 3, .cached_tokens = 8, .created_cache_tokens = 2});
  EXPECT_EQ(event(out)["choices"], json::array());
  EXPECT_TRUE(event(out).contains("system_fingerprint"));
  EXPECT_EQ(event(out)["usage"], json::parse(R"({"prompt_tokens":10,"completion_tokens":3,
      "total_tokens":13,"prompt_tokens_details":{"cached_tokens":8,"created_cache_tokens":2}})"));
  std::string last;
  const AnswerPlan plan{.finish = Finish::Stop};
  shape.token(last, 0, {"ka", 5}, &plan, nullptr);
  EXPECT_FALSE(event(last).contains("system_fingerprint"));
}

TEST(VllmResponse, ToolCallArgumentsAreOneJsonTextInPieces) {
  GenerationRequest request;
  request.limits.tool_call = true;
  request.tool_name = "weather \"now\"";
  const VllmResponse shape = shape_of(request);
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
  EXPECT_EQ(event(last)["choices"][0]["finish_reason"], "tool_calls");
}

TEST(VllmResponse, WholeAnswersCarryTheHandOffOfThePrefillLeg) {
  const VllmResponse shape = shape_of();
  const std::vector<FinishedChoice> choices{
      {.text = "ka", .finish = Finish::Length, .prompt = &kPrompt}};
  const auto params = [&](const char* given) {
    return json::parse(shape.whole(choices, {}, given)).at("kv_transfer_params");
  };
  EXPECT_EQ(params(R"({"a":1})"), (json{{"a", 1}}));
  EXPECT_EQ(params("null"), nullptr);
  EXPECT_EQ(params(""), nullptr);
}

TEST(VllmResponse, TokenIdsComeWithTheirChunkAndThePromptsWithTheFirst) {
  GenerationRequest request;
  request.return_token_ids = true;
  request.api = Api::Completions;
  const VllmResponse shape = shape_of(request);
  std::string first;
  std::string second;
  std::string end;
  shape.token(first, 0, {"ka", 9, true}, nullptr, nullptr, &kPrompt);
  AnswerCursor::Piece together{.text = " lo", .token = 8};
  together.append({.text = " mi", .token = 7});
  shape.token(second, 0, together, nullptr, nullptr);
  const AnswerPlan plan{.tokens = 0, .finish = Finish::Stop};
  shape.token(end, 0, {}, &plan, nullptr);
  EXPECT_EQ(event(first)["choices"][0]["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(event(first)["choices"][0]["token_ids"], json({9}));
  EXPECT_EQ(event(second)["choices"][0]["prompt_token_ids"], nullptr);
  EXPECT_EQ(event(second)["choices"][0]["token_ids"], json({8, 7}));
  EXPECT_EQ(event(second)["choices"][0]["text"], " lo mi");
  EXPECT_EQ(event(end)["choices"][0]["token_ids"], json::array());
  const std::vector<FinishedChoice> choices{{.text = "ka", .tokens = {9}, .prompt = &kPrompt}};
  request.api = Api::Chat;
  const json whole = json::parse(shape_of(request).whole(choices, {}, ""));
  EXPECT_EQ(whole["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(whole["choices"][0]["token_ids"], json({9}));
}

TEST(VllmResponse, LogprobsOfAStreamAreThoseOfTheWholeAnswer) {
  for (const Api api : {Api::Chat, Api::Completions}) {
    GenerationRequest request;
    request.api = api;
    request.logprobs = 2;
    const VllmResponse shape = shape_of(request);
    AnswerCursor cursor({.hash = 77, .tokens = 3});
    json streamed = json::array();
    while (!cursor.done()) {
      std::string out;
      shape.token(out, 0, cursor.next(), nullptr, nullptr);
      const json logprobs = event(out)["choices"][0]["logprobs"];
      streamed.push_back(api == Api::Chat ? logprobs["content"][0] : logprobs["text_offset"][0]);
    }
    const std::vector<FinishedChoice> choices{
        {.text = "x", .hash = 77, .count = 3, .prompt = &kPrompt}};
    const json whole = json::parse(shape.whole(choices, {}, ""))["choices"][0]["logprobs"];
    EXPECT_EQ(streamed, api == Api::Chat ? whole["content"] : whole["text_offset"]);
  }
}

TEST(VllmResponse, EchoPutsThePromptBeforeTheAnswer) {
  GenerationRequest request;
  request.api = Api::Completions;
  request.echo = true;
  request.logprobs = 1;
  request.prompt_logprobs = 1;
  request.pieces = {{"Once", " upon"}};
  const std::vector<FinishedChoice> choices{
      {.text = "ka", .hash = 77, .count = 1, .prompt = &kPrompt}};
  const json choice = json::parse(shape_of(request).whole(choices, {}, ""))["choices"][0];
  EXPECT_EQ(choice["text"],
            "Once upon"
            "ka");
  EXPECT_EQ(choice["logprobs"]["text_offset"], json({0, 4, 9}));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"][0], nullptr);
  EXPECT_EQ(choice["prompt_logprobs"].size(), 2U);
  request.prompt_alone = true;
  const json alone = json::parse(shape_of(request).whole(choices, {}, ""))["choices"][0];
  EXPECT_EQ(alone["text"], "Once upon");
  EXPECT_EQ(alone["logprobs"]["tokens"], json({"Once", " upon"}));
}

}  // namespace
}  // namespace baton::sim
