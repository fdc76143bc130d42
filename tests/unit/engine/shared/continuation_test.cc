// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/continuation.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using model::Engine;

std::string why(const std::string& members, Api api = Api::Completions,
                Engine engine = Engine::Vllm) {
  const std::string comma = members.empty() ? "" : ",";
  const ClientRequest request(api, R"({"stream":true)" + comma + members + "}");
  return why_not_continuable(engine, request.call).value_or("");
}

TEST(WhyNotContinuable, HasNothingAgainstAnOrdinaryStream) {
  for (
      const char* members :
      {"", R"("prompt":"a","max_tokens":5,"temperature":0.7,"top_p":0.9,"n":1)",
       R"("prompt":[1,2,3])", R"("prompt":["a"])",
       R"("stop":null,"seed":null,"logprobs":null,"echo":false,"best_of":1)",
       R"("stop":[],"presence_penalty":0,"frequency_penalty":0.0,"repetition_penalty":1.0)",
       R"("response_format":{"type":"text"},"stop_token_ids":[5],"ignore_eos":true,"min_tokens":3)",
       R"("use_beam_search":false,"return_token_ids":true)"})
    EXPECT_EQ(why(members), "") << members;
  EXPECT_EQ(
      why(R"("messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}],)"
          R"("logprobs":false,"tools":[{}],"tool_choice":"auto")",
          Api::Chat),
      "");
  EXPECT_EQ(why("", Api::Completions, Engine::Sglang), "");
}

TEST(WhyNotContinuable, NamesWhatWouldComeOutWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("n":2)", "several choices or prompts"},
      {R"("prompt":["a","b"])", "several choices or prompts"},
      {R"("prompt":[[1],[2]])", "several choices or prompts"},
      {R"("response_format":{"type":"json_object"})", "guided decoding"},
      {R"("response_format":{})", "guided decoding"},
      {R"("guided_json":{"type":"object"})", "guided decoding"},
      {R"("guided_choice":["a"])", "guided decoding"},
      {R"("structured_outputs":{"regex":"a"})", "guided decoding"},
      {R"("regex":"a+")", "guided decoding"},
      {R"("ebnf":"root")", "guided decoding"},
      {R"("json_schema":"{}")", "guided decoding"},
      {R"("tool_choice":"required")", "guided decoding"},
      {R"("tool_choice":{"type":"function"})", "guided decoding"},
      {R"("logprobs":0)", "logprobs"},
      {R"("logprobs":true)", "logprobs"},
      {R"("prompt_logprobs":1)", "logprobs"},
      {R"("stop":"x")", "stop strings"},
      {R"("stop":["x"])", "stop strings"},
      {R"("bad_words":["x"])", "bad words"},
      {R"("seed":0)", "a seed"},
      {R"("presence_penalty":0.1)", "penalties"},
      {R"("frequency_penalty":-1e-3)", "penalties"},
      {R"("repetition_penalty":1.1)", "penalties"},
      {R"("frequency_penalty":"1")", "penalties"},
      {R"("echo":true)", "echo"},
      {R"("best_of":2)", "best_of"},
      {R"("use_beam_search":true)", "beam search"},
  };
  for (const auto& [members, reason] : cases) EXPECT_EQ(why(members), reason) << members;
}

TEST(WhyNotContinuable, RefusesPromptsThatAreMoreThanTokens) {
  EXPECT_NE(
      why(R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}])",
          Api::Chat),
      "");
  EXPECT_NE(why(R"("prompt_embeds":"QUJD")"), "");
}

TEST(WhyNotContinuable, NeedsAnEngineThatStreamsTokenIds) {
  for (const auto& [engine, api] : {std::pair{Engine::Trtllm, Api::Chat},
                                    {Engine::Trtllm, Api::Completions},
                                    {Engine::Sglang, Api::Chat}})
    EXPECT_EQ(why("", api, engine), "the engine streams no token ids");
}

TEST(WhyNotContinuable, ConcernsStreamsOnly) {
  for (const char* body :
       {"{}", R"({"stream":false})", R"({"stream":null})", R"({"stream":"true"})"}) {
    const ClientRequest request(Api::Chat, body);
    EXPECT_EQ(why_not_continuable(Engine::Vllm, request.call), "the answer is not streamed");
  }
}

TEST(WhyNotContinuable, ConcernsBranchesToo) {
  const ClientRequest request(Api::Chat, R"({"stream":true})");
  ClientCall call = request.call;
  call.choice = 0;
  EXPECT_EQ(why_not_continuable(Engine::Vllm, call), "several choices or prompts");
}

TEST(WhyNotContinuable, SurvivesMessagesOfAnyShape) {
  for (const char* messages :
       {"null", "1", "[1,[],null]", R"([{"content":7}])", R"([{"content":[1,"a",[]]}])", "[{}]"})
    EXPECT_EQ(why(std::string("\"messages\":") + messages, Api::Chat), "") << messages;
}

}  // namespace
}  // namespace baton::engine
