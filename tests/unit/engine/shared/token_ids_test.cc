// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/token_ids.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using model::Engine;
using model::HandoffMode;
using model::SendTokenIds;
using model::Version;

constexpr Engine kEngines[] = {Engine::Vllm, Engine::Sglang, Engine::Trtllm};
constexpr const char* kIds = "[1,2,3]";

TEST(TokenIdsOfAChat, AreTakenFromTheReleaseThatKnowsThem) {
  const std::tuple<Engine, Version, Version> cases[] = {
      {Engine::Vllm, {0, 26, 9}, {0, 27, 0}},
      {Engine::Sglang, {0, 5, 15}, {0, 5, 16}},
      {Engine::Trtllm, {0, 21, 0}, {1, 0, 0}},
  };
  for (const auto& [engine, before, since] : cases) {
    EXPECT_FALSE(takes_token_ids(engine, Api::Chat, before));
    EXPECT_TRUE(takes_token_ids(engine, Api::Chat, since));
    EXPECT_FALSE(takes_token_ids(engine, Api::Chat, std::nullopt)) << "nobody knows";
    EXPECT_TRUE(takes_token_ids(engine, Api::Completions, before));
    EXPECT_TRUE(takes_token_ids(engine, Api::Completions, std::nullopt));
  }
}

TEST(TokenIdsOfALeg, FollowThePolicy) {
  for (const Engine engine : kEngines) {
    for (const Api api : {Api::Chat, Api::Completions}) {
      const auto sent = [&](SendTokenIds policy, std::optional<Version> version) {
        return sends_token_ids(policy, engine, api, version, Leg::Compute);
      };
      EXPECT_TRUE(sent(SendTokenIds::Always, std::nullopt));
      EXPECT_FALSE(sent(SendTokenIds::Never, Version{9, 9, 9}));
      EXPECT_TRUE(sent(SendTokenIds::Auto, Version{9, 9, 9}));
      EXPECT_EQ(sent(SendTokenIds::Auto, std::nullopt), api == Api::Completions);
    }
  }
}

TEST(TokenIdsOfALeg, GoToATrtllmGenerationWhateverThePolicy) {
  for (const Engine engine : kEngines) {
    EXPECT_EQ(sends_token_ids(SendTokenIds::Never, engine, Api::Chat, {}, Leg::Continue),
              engine == Engine::Trtllm);
  }
}

TEST(TokenIdsAsJson, AreOneListOrAListOfLists) {
  const std::vector<tokenizer::TokenIds> prompts = {{1, 22, 4294967295U}, {7}};
  EXPECT_EQ(token_ids_json(std::span(prompts).first(1)), "[1,22,4294967295]");
  EXPECT_EQ(token_ids_json(prompts), "[[1,22,4294967295],[7]]");
  EXPECT_EQ(token_ids_json(std::vector<tokenizer::TokenIds>{{}}), "[]");
  EXPECT_EQ(token_ids_json(std::vector<tokenizer::TokenIds>{{}, {}}), "[[],[]]");
}

TEST(TokenIdsAsJson, HaveRoomWhereAllAreAsLongAsCanBe) {
  const tokenizer::TokenIds longest(1000, 4294967295U);
  const std::string json = token_ids_json(std::vector<tokenizer::TokenIds>(50, longest));
  EXPECT_EQ(nlohmann::json::parse(json), nlohmann::json(std::vector(50, longest)));
}

// Every body of a request that carries ids.
struct ALegWithTokenIds : testing::Test {
  static std::vector<std::pair<std::string, nlohmann::json>> legs(const ClientCall& call,
                                                                  Engine engine) {
    std::vector<std::pair<std::string, nlohmann::json>> all;
    all.emplace_back("alone", json(plain_body(call, engine)));
    for (const HandoffMode mode : kAllModes) {
      if (model::engine_of(mode) != engine) continue;
      const Dialect& dialect = dialect_of(mode);
      const std::string name(model::to_string(mode));
      all.emplace_back(name + " prefill", json(dialect.prefill_body(call, {})));
      PrefillOutcome outcome;
      all.emplace_back(name + " decode without a hand-off",
                       json(dialect.decode_body(call, {}, outcome, DecodePurpose::Answer)));
      outcome.handoff = R"({"remote_port":5600})";
      for (const auto purpose : {DecodePurpose::Answer, DecodePurpose::Release}) {
        all.emplace_back(name + " decode", json(dialect.decode_body(call, {}, outcome, purpose)));
      }
    }
    return all;
  }
  static nlohmann::json ids_in(const nlohmann::json& body, Engine engine, Api api) {
    if (api == Api::Completions) return body.value("prompt", nlohmann::json());
    switch (engine) {
      case Engine::Vllm:
        return body.value("/kv_transfer_params/prompt_token_ids"_json_pointer, nlohmann::json());
      case Engine::Sglang:
        return body.value("input_ids", nlohmann::json());
      case Engine::Trtllm:
        break;
    }
    return body.value("prompt_token_ids", nlohmann::json());
  }
};

TEST_F(ALegWithTokenIds, HasThemWhereItsEngineTakesThem) {
  const ClientRequest chat(Api::Chat, R"({"messages":[{"role":"user","content":"hi"}]})");
  const ClientRequest text(Api::Completions, R"({"prompt":"hi"})");
  for (const Engine engine : kEngines) {
    for (const ClientRequest* request : {&chat, &text}) {
      ClientCall call = request->call;
      call.token_ids = kIds;
      for (const auto& [leg, body] : legs(call, engine)) {
        EXPECT_EQ(ids_in(body, engine, call.api), json(kIds)) << leg << body;
        if (call.api == Api::Chat) {
          EXPECT_EQ(body["messages"], json(chat.text)["messages"]) << leg;
        }
      }
    }
  }
}

TEST_F(ALegWithTokenIds, HasThemInTheFieldOfNoOtherEngine) {
  const ClientRequest chat(Api::Chat, R"({"messages":[]})");
  ClientCall call = chat.call;
  call.token_ids = kIds;
  EXPECT_EQ(json(plain_body(call, Engine::Vllm)),
            json(R"({"messages":[],"kv_transfer_params":{"prompt_token_ids":[1,2,3]}})"));
  EXPECT_EQ(json(plain_body(call, Engine::Sglang)), json(R"({"messages":[],"input_ids":[1,2,3]})"));
  EXPECT_EQ(json(plain_body(call, Engine::Trtllm)),
            json(R"({"messages":[],"prompt_token_ids":[1,2,3]})"));
}

TEST_F(ALegWithTokenIds, KeepsTheRestOfItsHandOff) {
  const ClientRequest chat(Api::Chat, R"({"messages":[]})");
  ClientCall call = chat.call;
  call.token_ids = kIds;
  const auto prefill = json(dialect_of(HandoffMode::NixlPull).prefill_body(call, {}));
  EXPECT_EQ(prefill["kv_transfer_params"]["do_remote_decode"], true);
  PrefillOutcome outcome;
  outcome.handoff = R"({"remote_port":5600,"prompt_token_ids":[9]})";
  EXPECT_EQ(json(dialect_of(HandoffMode::NixlPull)
                     .decode_body(call, {}, outcome, DecodePurpose::Answer))["kv_transfer_params"],
            json(R"({"remote_port":5600,"prompt_token_ids":[1,2,3]})"));
}

TEST_F(ALegWithTokenIds, PrefersThoseOfTheContextWorker) {
  const ClientRequest chat(Api::Chat, R"({"messages":[]})");
  ClientCall call = chat.call;
  call.token_ids = kIds;
  PrefillOutcome outcome;
  outcome.handoff = "{}";
  outcome.prompt_token_ids = "[4,5]";
  EXPECT_EQ(json(dialect_of(HandoffMode::ContextFirst)
                     .decode_body(call, {}, outcome, DecodePurpose::Answer))["prompt_token_ids"],
            json("[4,5]"));
}

TEST_F(ALegWithTokenIds, OfABranchHasThoseOfItsPrompt) {
  const ClientRequest text(Api::Completions, R"({"prompt":["a","b"],"n":2})");
  ClientCall call = text.call;
  call.prompt = R"("b")";
  call.choice = 1;
  call.token_ids = kIds;
  for (const Engine engine : kEngines) {
    for (const auto& [leg, body] : legs(call, engine)) {
      EXPECT_EQ(body["prompt"], json(kIds)) << leg;
      EXPECT_EQ(body["n"], 1) << leg;
    }
  }
}

TEST_F(ALegWithTokenIds, OfAListThatStaysOneHasThemAll) {
  const ClientRequest text(Api::Completions, R"({"prompt":["a","b"]})");
  ClientCall call = text.call;
  call.token_ids = "[[1],[2,3]]";
  EXPECT_EQ(json(plain_body(call, Engine::Vllm))["prompt"], json("[[1],[2,3]]"));
}

TEST_F(ALegWithTokenIds, ThatContinuesHasWhatTheWorkerSaid) {
  const Progress progress{.prompt_token_ids = "[8,9]", .token_ids = "7", .produced = 1};
  const ClientRequest chat(Api::Chat, R"({"messages":[]})");
  const ClientRequest text(Api::Completions, R"({"prompt":"p"})");
  for (const Engine engine : kEngines) {
    for (const ClientRequest* request : {&chat, &text}) {
      ClientCall call = request->call;
      call.token_ids = kIds;
      call.progress = &progress;
      for (const auto& [leg, body] : legs(call, engine))
        EXPECT_EQ(ids_in(body, engine, call.api), json("[8,9,7]")) << leg;
    }
  }
}

TEST_F(ALegWithTokenIds, KeepsItsTextWhereIdsWouldChangeTheAnswer) {
  for (const char* field : {R"("echo":true)", R"("suffix":"end")", R"("truncate_prompt_tokens":5)",
                            R"("use_beam_search":true)", R"("prompt_embeds":"AA==")"}) {
    for (const Engine engine : kEngines) {
      const std::string text_body = fmt::format(R"({{"prompt":"hi",{}}})", field);
      const ClientRequest text(Api::Completions, text_body);
      ClientCall call = text.call;
      call.token_ids = kIds;
      EXPECT_EQ(json(plain_body(call, engine)), json(text_body));
      const std::string chat_body = fmt::format(R"({{"messages":[],{}}})", field);
      const ClientRequest chat(Api::Chat, chat_body);
      ClientCall spoken = chat.call;
      spoken.token_ids = kIds;
      EXPECT_EQ(json(plain_body(spoken, engine)), json(chat_body));
    }
  }
  // These say nothing.
  const ClientRequest text(Api::Completions, R"({"prompt":"hi","echo":false,"suffix":null})");
  ClientCall call = text.call;
  call.token_ids = kIds;
  EXPECT_EQ(json(plain_body(call, Engine::Vllm))["prompt"], json(kIds));
}

TEST_F(ALegWithTokenIds, LeavesAloneWhatTheClientSentAsIds) {
  const ClientRequest text(Api::Completions, R"({"prompt":[5,6]})");
  ClientCall call = text.call;
  call.token_ids = kIds;
  EXPECT_EQ(json(plain_body(call, Engine::Vllm))["prompt"], json("[5,6]"));
  const ClientRequest both(Api::Completions, R"({"prompt":["a",[5,6]]})");
  ClientCall branch = both.call;
  branch.prompt = "[5,6]";
  branch.token_ids = kIds;
  EXPECT_EQ(json(plain_body(branch, Engine::Vllm))["prompt"], json("[5,6]"));
  const ClientRequest sglang(Api::Chat, R"({"messages":[],"input_ids":[5]})");
  ClientCall spoken = sglang.call;
  spoken.token_ids = kIds;
  EXPECT_EQ(json(plain_body(spoken, Engine::Sglang))["input_ids"], json("[5]"));
  const ClientRequest trtllm(Api::Chat, R"({"messages":[],"prompt_token_ids":[5]})");
  ClientCall other = trtllm.call;
  other.token_ids = kIds;
  EXPECT_EQ(json(plain_body(other, Engine::Trtllm))["prompt_token_ids"], json("[5]"));
}

}  // namespace
}  // namespace baton::engine
