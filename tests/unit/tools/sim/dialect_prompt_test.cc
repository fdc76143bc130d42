// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/answer.h"
#include "tools/sim/dialect.h"
#include "unit/tools/sim/byte_tokens.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

constexpr Engine kEngines[] = {Engine::Vllm, Engine::Sglang, Engine::Trtllm};

Options versioned_worker(Engine engine, std::string version = "") {
  Options options;
  options.engine = engine;
  options.version = std::move(version);
  return options;
}

// A chat in the field that an engine has for ids.
json chat_with(Engine engine, const json& ids) {
  json body{{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  if (engine == Engine::Vllm) body["kv_transfer_params"] = {{"prompt_token_ids", ids}};
  if (engine == Engine::Sglang) body["input_ids"] = ids;
  if (engine == Engine::Trtllm) body["prompt_token_ids"] = ids;
  return json::parse(body.dump());
}

Result<GenerationRequest> read(const Options& options, Api api, const json& body,
                               const TokenSource& tokens = WordTokens()) {
  GenerationRequest request;
  request.api = api;
  const std::string raw = body.dump();
  if (auto result = read_prompts(options, body, {tokens, raw}, request); !result)
    return fail(result.error());
  return request;
}

TEST(ChatIds, AreTakenFromTheFieldOfTheEngineAndCounted) {
  for (const Engine engine : kEngines) {
    const auto request = read(versioned_worker(engine), Api::Chat, chat_with(engine, {7, 8}));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->prompts, (TokenSource::Prompts{{7, 8}}));
    EXPECT_TRUE(request->with_token_ids);
    EXPECT_FALSE(request->token_mismatch) << "nobody could know the ids of the simulator's own";
    const auto text = read(versioned_worker(engine), Api::Chat, chat_with(engine, nullptr));
    ASSERT_TRUE(text);
    EXPECT_FALSE(text->with_token_ids);
  }
}

TEST(ChatIds, AreNotLookedForByOlderReleases) {
  for (const auto& [engine, before, since] :
       {std::tuple{Engine::Vllm, "0.26.1", "0.27.0"}, {Engine::Sglang, "0.5.15", "0.5.16"}}) {
    const json body = chat_with(engine, {7, 8});
    EXPECT_FALSE(read(versioned_worker(engine, before), Api::Chat, body)->with_token_ids);
    EXPECT_TRUE(read(versioned_worker(engine, since), Api::Chat, body)->with_token_ids);
  }
  // This one refuses what it does not know.
  const json body = chat_with(Engine::Trtllm, {7, 8});
  EXPECT_FALSE(read(versioned_worker(Engine::Trtllm, "0.21.0"), Api::Chat, body));
  EXPECT_TRUE(read(versioned_worker(Engine::Trtllm, "1.0.0"), Api::Chat, body));
}

TEST(ChatIds, AreHeldAgainstTheText) {
  const ByteTokens tokens;
  const auto mismatch = [&](const json& ids) {
    return read(versioned_worker(Engine::Vllm), Api::Chat, chat_with(Engine::Vllm, ids), tokens)
        ->token_mismatch;
  };
  EXPECT_FALSE(mismatch({'h', 'i'}));
  EXPECT_TRUE(mismatch({'h', 'o'}));
  EXPECT_TRUE(mismatch({'h'}));
  EXPECT_TRUE(mismatch({'h', 'i', '!'}));
  // Behind it may stand what was answered already.
  EXPECT_FALSE(mismatch({'h', 'i', output_token(1, 0), output_token(1, 1)}));
}

TEST(ChatIds, NeedMessagesBesideThemAndAList) {
  json without = chat_with(Engine::Sglang, {7});
  without.erase("messages");
  EXPECT_FALSE(read(versioned_worker(Engine::Sglang), Api::Chat, without));
  for (const json& ids : {json(5), json("7"), json::array(), json{-1}, json{"7"}})
    EXPECT_FALSE(read(versioned_worker(Engine::Sglang), Api::Chat, chat_with(Engine::Sglang, ids)))
        << ids;
}

TEST(CompletionIds, AreCounted) {
  for (const Engine engine : kEngines) {
    const auto counted = [&](const char* body) {
      return read(versioned_worker(engine), Api::Completions, json::parse(body))->with_token_ids;
    };
    EXPECT_TRUE(counted(R"({"prompt":[1,2]})"));
    EXPECT_TRUE(counted(R"({"prompt":[[1],[2]]})"));
    EXPECT_FALSE(counted(R"({"prompt":"text"})"));
    EXPECT_FALSE(counted(R"({"prompt":["a","b"]})"));
  }
}

TEST(Prompts, MustFitIntoTheContext) {
  Options options = versioned_worker(Engine::Vllm);
  options.max_model_len = 3;
  const json ids = chat_with(Engine::Vllm, {1, 2});
  EXPECT_TRUE(read(options, Api::Chat, ids));
  EXPECT_FALSE(read(options, Api::Chat, chat_with(Engine::Vllm, {1, 2, 3})));
}

}  // namespace
}  // namespace baton::sim
