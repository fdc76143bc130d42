// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_response.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

json chunk_of(const std::string& sse) {
  EXPECT_TRUE(sse.starts_with("data: "));
  EXPECT_TRUE(sse.ends_with("\n\n"));
  return json::parse(sse.substr(6));
}

GenerationRequest named(GenerationRequest request) {
  request.model = "demo";
  return request;
}

TEST(SglangResponse, ChunksOfAChatLeaveOutWhatIsNotSetAndFinishApart) {
  const SglangResponse shape(named({}), "rid", 99);
  const AnswerPlan plan{.finish = Finish::Stop};
  std::string token;
  shape.token(token, 0, {"ka", 5}, &plan, nullptr);
  EXPECT_EQ(chunk_of(token),
            json::parse(R"({"id":"rid","object":"chat.completion.chunk","created":99,
      "model":"demo","choices":[{"index":0,"delta":{"content":"ka","reasoning_content":null},
      "logprobs":null,"finish_reason":null,"matched_stop":null}]})"));
  EXPECT_FALSE(shape.finish_rides_on_token());
  std::string last;
  shape.close_choice(last, 0, plan);
  EXPECT_EQ(chunk_of(last)["choices"][0]["finish_reason"], "stop");
}

TEST(SglangResponse, CompletionsFinishOnTheLastToken) {
  GenerationRequest request;
  request.api = Api::Completions;
  const SglangResponse shape(named(request), "rid", 99);
  EXPECT_TRUE(shape.finish_rides_on_token());
  const AnswerPlan plan{.finish = Finish::Length};
  std::string token;
  shape.token(token, 0, {"ka", 5}, &plan, nullptr);
  EXPECT_EQ(chunk_of(token)["choices"][0]["finish_reason"], "length");
}

TEST(SglangResponse, EchoesThePromptWithItsLogprobsWhereItComputedThem) {
  const std::vector<TokenId> prompt{7, 8};
  for (const Phase phase : {Phase::Aggregated, Phase::Prefill, Phase::Decode}) {
    GenerationRequest request;
    request.api = Api::Completions;
    request.phase = phase;
    request.echoes = {"say \"hi\""};
    request.logprobs = 1;
    const SglangResponse shape(named(request), "rid", 99);
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
    EXPECT_EQ(chunk_of(first)["choices"][0]["text"], "say \"hi\"ka");
    EXPECT_EQ(chunk_of(first)["choices"][0]["logprobs"]["tokens"], tokens);
    std::string second;
    shape.token(second, 0, {"lo", 10}, nullptr, nullptr);
    EXPECT_EQ(chunk_of(second)["choices"][0]["text"], "lo");
    EXPECT_EQ(chunk_of(second)["choices"][0]["logprobs"]["tokens"], json({"10"}));
  }
}

TEST(SglangResponse, TellsTokenIdsOfChatsInWholeAnswersOnly) {
  GenerationRequest request;
  request.return_token_ids = true;
  const std::vector<TokenId> prompt{1, 2};
  const SglangResponse shape(named(request), "x", 1);
  const std::vector<FinishedChoice> choices{{.text = "ka", .tokens = {9}, .prompt = &prompt}};
  const json whole = json::parse(shape.whole(choices, {}, ""));
  EXPECT_EQ(whole["choices"][0]["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(whole["choices"][0]["response_token_ids"], json({9}));
  std::string opening;
  std::string token;
  shape.open_choice(opening, 0, 7, prompt);
  shape.token(token, 0, {"ka", 9, true}, nullptr, nullptr, &prompt);
  EXPECT_FALSE(chunk_of(opening).contains("prompt_token_ids"));
  EXPECT_FALSE(chunk_of(token)["choices"][0].contains("token_ids"));
}

TEST(SglangResponse, StreamsTheTokenIdsOfCompletions) {
  GenerationRequest request;
  request.return_token_ids = true;
  request.api = Api::Completions;
  const std::vector<TokenId> prompt{1, 2};
  const SglangResponse shape(named(request), "x", 1);
  std::string first;
  std::string second;
  shape.token(first, 0, {"ka", 9, true}, nullptr, nullptr, &prompt);
  shape.token(second, 0, {" lo", 8}, nullptr, nullptr);
  EXPECT_EQ(chunk_of(first)["choices"][0]["prompt_token_ids"], json({1, 2}));
  EXPECT_EQ(chunk_of(first)["choices"][0]["token_ids"], json({9}));
  EXPECT_FALSE(chunk_of(second)["choices"][0].contains("prompt_token_ids"));
  EXPECT_EQ(chunk_of(second)["choices"][0]["token_ids"], json({8}));
}

TEST(SglangResponse, TellsWhereTheCachedTokensLayBehindTheChoices) {
  GenerationRequest request;
  request.sglang.cached_details = true;
  const SglangResponse shape(named(request), "x", 1);
  std::string out;
  shape.extension(out, {}, {.prompt_tokens = 40, .cached_tokens = 32});
  EXPECT_EQ(chunk_of(out)["sglext"]["cached_tokens_details"], (json{{"device", 32}, {"host", 0}}));
  out.clear();
  shape.extension(out, {}, {.prompt_tokens = 40});
  EXPECT_EQ(out, "") << "nothing to tell";
}

}  // namespace
}  // namespace baton::sim
