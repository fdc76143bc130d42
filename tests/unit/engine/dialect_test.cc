// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/dialect.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

TEST(Dialect, KnowsThePathOfEachApi) {
  EXPECT_EQ(path_of(Api::Chat), "/v1/chat/completions");
  EXPECT_EQ(path_of(Api::Completions), "/v1/completions");
}

TEST(Dialect, KnowsTheOrderOfEachEngine) {
  EXPECT_EQ(dialect_of(model::Engine::Vllm).order(), LegOrder::PrefillFirst);
  EXPECT_EQ(dialect_of(model::Engine::Trtllm).order(), LegOrder::PrefillFirst);
  EXPECT_EQ(dialect_of(model::Engine::Sglang).order(), LegOrder::Together);
}

TEST(Dialect, TellsAListOfPromptsFromOnePrompt) {
  const struct {
    const char* prompt;
    bool several;
  } cases[] = {
      {R"("text")", false},   {R"([1,2,3])", false},  {R"([])", false},
      {R"(["a"])", true},     {R"(["a","b"])", true}, {R"([[1,2],[3]])", true},
      {R"( [ [1] ] )", true}, {R"(null)", false},     {R"("[\"a\"]")", false},
  };
  for (const auto& c : cases) {
    const std::string body = std::string(R"({"prompt":)") + c.prompt + "}";
    EXPECT_EQ(has_prompt_list(ClientRequest(Api::Completions, body).call), c.several) << body;
    // Chat requests have no prompt; what is there by that name is not looked at.
    EXPECT_FALSE(has_prompt_list(ClientRequest(Api::Chat, body).call)) << body;
  }
  EXPECT_FALSE(has_prompt_list(ClientRequest(Api::Completions, "{}").call));
}

TEST(Dialect, OnlySglangHandsOverAListOfPrompts) {
  const ClientRequest list(Api::Completions, R"({"prompt":["a","b"]})");
  const ClientRequest single(Api::Completions, R"({"prompt":[5,6]})");
  EXPECT_FALSE(dialect_of(model::Engine::Vllm).can_hand_off(list.call));
  EXPECT_FALSE(dialect_of(model::Engine::Trtllm).can_hand_off(list.call));
  EXPECT_TRUE(dialect_of(model::Engine::Sglang).can_hand_off(list.call));
  for (const auto engine : {model::Engine::Vllm, model::Engine::Trtllm, model::Engine::Sglang}) {
    EXPECT_TRUE(dialect_of(engine).can_hand_off(single.call)) << model::to_string(engine);
  }
}

TEST(Dialect, APlainBodyIsTheClientsByteForByte) {
  const std::string text =
      "{ \"model\" : \"m\",\n \"seed\":12345678901234567890123, \"x\":1.10e+2 ,\"\\u0061\":[ ] }";
  EXPECT_EQ(Dialect::plain_body(ClientRequest(Api::Chat, text).call).joined(), text);
}

TEST(Dialect, APlainBodyCarriesNoHandoffFieldOfTheClient) {
  const ClientRequest request(
      Api::Chat,
      R"({"kv_transfer_params":{"remote_host":"h"},"model":"m","bootstrap_host":"h",)"
      R"("bootstrap_port":1,"bootstrap_room":2,"disaggregated_params":{},"disagg_prefill_dp_rank":0,)"
      R"("kv_transfer\u005fparams":{},"messages":[]})");
  EXPECT_EQ(json(Dialect::plain_body(request.call)), json(R"({"model":"m","messages":[]})"));
}

TEST(Dialect, APlainBodyNamesTheModelAsTheWorkersDo) {
  const ClientRequest request(Api::Chat, R"({"model":"alias","messages":[]})", "the \"real\" one");
  EXPECT_EQ(json(Dialect::plain_body(request.call)),
            json(R"({"model":"the \"real\" one","messages":[]})"));
}

}  // namespace
}  // namespace baton::engine
