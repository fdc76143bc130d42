// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/token_routes.h"

#include "unit/tools/sim/byte_tokens.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

constexpr const char* kTokenize = "/tokenize";
constexpr const char* kRenderChat = "/v1/chat/completions/render";
constexpr const char* kRender = "/v1/completions/render";
constexpr const char* kChat = R"({"messages":[{"role":"user","content":"hi"}]})";

// What the path answers: null where there is no such path, a number where it is refused.
json ask(Engine engine, const char* path, const std::string& body, std::string version = "",
         const TokenSource& tokens = ByteTokens()) {
  Options options;
  options.engine = engine;
  options.version = std::move(version);
  options.max_model_len = 100;
  const auto answer = token_answer(options, tokens, path, body);
  if (!answer) return nullptr;
  return *answer ? json::parse(**answer) : json(answer->error().http_status());
}

TEST(Tokenize, AnswersInTheShapeOfTheEngine) {
  const json vllm =
      json::parse(R"({"count":2,"tokens":[104,105],"max_model_len":100,"token_strs":null})");
  EXPECT_EQ(ask(Engine::Vllm, kTokenize, R"({"prompt":"hi"})"), vllm);
  EXPECT_EQ(ask(Engine::Vllm, kTokenize, kChat), vllm);
  const json sglang = json::parse(R"({"count":2,"tokens":[104,105],"max_model_len":100})");
  for (const char* path : {"/tokenize", "/v1/tokenize"}) {
    EXPECT_EQ(ask(Engine::Sglang, path, R"({"prompt":"hi"})"), sglang);
    EXPECT_EQ(ask(Engine::Sglang, path, kChat), sglang);
  }
  EXPECT_EQ(ask(Engine::Vllm, "/v1/tokenize", kChat), nullptr);
  EXPECT_EQ(ask(Engine::Trtllm, kTokenize, kChat), nullptr);
}

TEST(Tokenize, TakesSeveralPromptsOnSglangOnly) {
  const char* const two = R"({"prompt":["a","bc"]})";
  EXPECT_EQ(ask(Engine::Sglang, kTokenize, two),
            json::parse(R"({"count":[1,2],"tokens":[[97],[98,99]],"max_model_len":100})"));
  EXPECT_EQ(ask(Engine::Vllm, kTokenize, two), 400);
}

TEST(Tokenize, RefusesWhatIsNoPrompt) {
  for (const char* body : {"{}", "[]", "no", R"({"prompt":"a","messages":[]})"})
    EXPECT_EQ(ask(Engine::Vllm, kTokenize, body), 400) << body;
}

TEST(Detokenize, AnswersInTheShapeOfTheEngine) {
  const char* const ids = R"({"tokens":[104,105]})";
  EXPECT_EQ(ask(Engine::Vllm, "/detokenize", ids), json::parse(R"({"prompt":"<s>hi"})"));
  EXPECT_EQ(ask(Engine::Sglang, "/detokenize", ids), json::parse(R"({"text":"hi"})"));
  EXPECT_EQ(
      ask(Engine::Sglang, "/v1/detokenize", R"({"tokens":[104],"skip_special_tokens":false})"),
      json::parse(R"({"text":"<s>h"})"));
  for (const char* body : {"{}", R"({"tokens":"x"})", R"({"tokens":[-1]})", "no"})
    EXPECT_EQ(ask(Engine::Vllm, "/detokenize", body), 400) << body;
}

TEST(Detokenize, HasNoWayBackFromTheSimulatorsOwnTokens) {
  EXPECT_EQ(ask(Engine::Vllm, "/detokenize", R"({"tokens":[104]})", "", WordTokens()), nullptr);
}

TEST(Render, IsVllmsFrom016On) {
  const json rendered = ask(Engine::Vllm, kRenderChat, kChat, "0.16.0");
  EXPECT_EQ(rendered["token_ids"], json({104, 105}));
  EXPECT_EQ(rendered["features"], nullptr);
  EXPECT_EQ(rendered["request_id"].get<std::string>().rfind("chatcmpl-", 0), 0U);
  EXPECT_EQ(ask(Engine::Vllm, kRenderChat, kChat, "0.15.9"), nullptr);
  EXPECT_EQ(ask(Engine::Sglang, kRenderChat, kChat), nullptr);
}

TEST(Render, OfACompletionIsAList) {
  const json rendered = ask(Engine::Vllm, kRender, R"({"prompt":["a","b"]})", "0.29.0");
  ASSERT_EQ(rendered.size(), 2U);
  EXPECT_EQ(rendered[0]["token_ids"], json({97}));
  EXPECT_EQ(rendered[1]["token_ids"], json({98}));
  EXPECT_EQ(ask(Engine::Vllm, kRender, R"({"prompt":["a",[5]]})", "0.29.0"), 400);
  EXPECT_EQ(ask(Engine::Vllm, kRender, R"({"prompt":"a"})", "0.29.0").size(), 1U);
}

TEST(Render, RefusesWhatTheRequestItselfWouldBeRefusedFor) {
  EXPECT_EQ(ask(Engine::Vllm, kRender, R"({"model":"other","prompt":"a"})", "0.29.0"), 404);
  EXPECT_EQ(ask(Engine::Vllm, kRender, R"({"prompt":"a","max_tokens":"x"})", "0.29.0"), 400);
  EXPECT_EQ(ask(Engine::Vllm, kRender, R"({"prompt":"a","max_tokens":101})", "0.29.0"), 400);
}

TEST(Render, IsRefusedByNewerVllmsUnlessItIsSwitchedOn) {
  EXPECT_EQ(ask(Engine::Vllm, kRenderChat, kChat, "0.29.0")["token_ids"], json({104, 105}));
  EXPECT_EQ(ask(Engine::Vllm, kRenderChat, kChat, "0.30.0"), 403);
  EXPECT_EQ(ask(Engine::Vllm, kRender, R"({"prompt":"hi"})", "0.32.0"), 403);
  Options options;
  options.version = "0.32.0";
  options.scale_out = true;
  EXPECT_TRUE(token_answer(options, ByteTokens(), kRenderChat, kChat).value().has_value());
}

}  // namespace
}  // namespace baton::sim
