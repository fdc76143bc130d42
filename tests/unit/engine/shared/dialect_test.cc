// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/dialect.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

#include <set>

namespace baton::engine {
namespace {

// The client's body with everything a client might smuggle in.
constexpr const char* kSmuggled =
    R"({"kv_transfer_params":{"remote_host":"evil"},"model":"m","bootstrap_host":"evil",)"
    R"("bootstrap_port":1,"bootstrap_room":2,"bootstrap_pair_key":"k","disaggregated_params":{"evil":1},)"
    R"("disagg_prefill_dp_rank":0,"routed_dp_rank":1,"data_parallel_rank":2,"decode_tp_size":4,)"
    R"("kv_transfer\u005fparams":{"evil":1},"nvext":{"backend_instance_id":1},"messages":[]})";

HandoffTicket ticket() {
  HandoffTicket made;
  made.request_id = "r-1";
  made.disagg_request_id = 1099511627776;
  made.bootstrap_room = 7;
  made.peer.host = "10.0.0.5";
  return made;
}

TEST(Dialect, KnowsThePathOfEachApi) {
  EXPECT_EQ(path_of(Api::Chat), "/v1/chat/completions");
  EXPECT_EQ(path_of(Api::Completions), "/v1/completions");
}

TEST(Dialect, IsAnotherOneForEachMode) {
  std::set<const Dialect*> seen;
  for (const auto mode : kAllModes) seen.insert(&dialect_of(mode));
  EXPECT_EQ(seen.size(), std::size(kAllModes));
}

TEST(Dialect, LetsNoHandoffFieldOfAClientIntoAnyLeg) {
  const ClientRequest request(Api::Chat, kSmuggled);
  PrefillOutcome outcome;
  outcome.handoff = "{}";
  for (const auto mode : kAllModes) {
    const Dialect& dialect = dialect_of(mode);
    const std::string legs[] = {
        dialect.prefill_body(request.call, ticket()).joined(),
        dialect.decode_body(request.call, ticket(), outcome, DecodePurpose::Answer).joined(),
        dialect.decode_body(request.call, ticket(), outcome, DecodePurpose::Release).joined(),
        plain_body(request.call, model::engine_of(mode)).joined()};
    for (const std::string& leg : legs) {
      for (const char* word :
           {"evil", "nvext", "dp_rank", "data_parallel_rank", "decode_tp_size", "pair_key"}) {
        EXPECT_EQ(leg.find(word), std::string::npos) << model::to_string(mode) << ": " << leg;
      }
    }
  }
}

// Regression: SGLang aborts by the beginning of a rid, so a client's could end other requests.
TEST(Dialect, LetsNoNameOfAClientsIntoAnyLeg) {
  const ClientRequest request(
      Api::Chat, R"({"rid":"a","prompt_token_ids_b64":"AA==","injected_chat_template_kwargs":{},)"
                 R"("conversation_params":{},"model":"m"})");
  for (const auto engine : {model::Engine::Vllm, model::Engine::Sglang, model::Engine::Trtllm})
    EXPECT_EQ(json(plain_body(request.call, engine)), json(R"({"model":"m"})"));
  HandoffTicket ticket;
  for (const auto mode : kAllModes) {
    const auto body = json(dialect_of(mode).prefill_body(request.call, ticket));
    for (const char* field :
         {"rid", "prompt_token_ids_b64", "injected_chat_template_kwargs", "conversation_params"})
      EXPECT_FALSE(body.contains(field)) << field;
  }
}

TEST(Dialect, StripsWhatTheOperatorSays) {
  const ClientRequest request(Api::Chat, R"({"priority":9,"extra_key":"k","lora_path":"x","n":1})");
  const std::vector<std::string> stripped{"priority", "extra_key"};
  ClientCall call = request.call;
  call.stripped = stripped;
  for (const auto engine : {model::Engine::Vllm, model::Engine::Sglang, model::Engine::Trtllm})
    EXPECT_EQ(json(plain_body(call, engine)), json(R"({"lora_path":"x","n":1})"));
}

TEST(Dialect, AsksForAWholePrefillAnswerInEveryMode) {
  const ClientRequest request(
      Api::Chat, R"({"stream":true,"stream_options":{"include_usage":true},"messages":[]})");
  for (const auto mode : kAllModes) {
    const auto body = json(dialect_of(mode).prefill_body(request.call, ticket()));
    EXPECT_EQ(body["stream"], false) << model::to_string(mode);
    EXPECT_FALSE(body.contains("stream_options")) << model::to_string(mode);
  }
}

TEST(Dialect, ReleasesWithOneTokenInEveryMode) {
  const ClientRequest request(Api::Chat,
                              R"({"stream":true,"stream_options":{},"max_tokens":50,"n":3,)"
                              R"("max_completion_tokens":60,"min_tokens":9,"messages":[]})");
  ClientCall call = request.call;
  call.with_token_ids = true;
  PrefillOutcome outcome;
  outcome.handoff = "{}";
  for (const auto mode : kAllModes) {
    const auto body =
        json(dialect_of(mode).decode_body(call, ticket(), outcome, DecodePurpose::Release));
    EXPECT_EQ(body["stream"], false) << model::to_string(mode);
    EXPECT_EQ(body["max_tokens"], 1) << model::to_string(mode);
    EXPECT_EQ(body["max_completion_tokens"], 1) << model::to_string(mode);
    EXPECT_EQ(body["n"], 1) << model::to_string(mode);
    for (const char* gone : {"stream_options", "min_tokens", "return_token_ids"})
      EXPECT_FALSE(body.contains(gone)) << model::to_string(mode) << ' ' << gone;
    // The same hand-off as that of the leg it stands for.
    const auto answer =
        json(dialect_of(mode).decode_body(call, ticket(), outcome, DecodePurpose::Answer));
    for (const char* field : {"kv_transfer_params", "bootstrap_room", "disaggregated_params"})
      EXPECT_EQ(body.value(field, nlohmann::json()), answer.value(field, nlohmann::json()));
  }
}

TEST(Dialect, CallsAnErrorInAPrefillAnswerAFailureOfTheEngine) {
  for (const auto mode : kAllModes) {
    for (
        const char* answer :
        {R"({"error":{"message":"boom","code":500}})",
         R"({"object":"error","message":"boom","type":"X","choices":[{"finish_reason":"length"}]})"}) {
      const auto outcome = dialect_of(mode).read_prefill_answer(answer);
      ASSERT_FALSE(outcome) << model::to_string(mode) << answer;
      EXPECT_EQ(outcome.error().code(), Errc::EngineFailed);
      EXPECT_EQ(outcome.error().message(), "boom");
    }
  }
}

TEST(Dialect, CallsAnAnswerThatMakesNoSenseAProtocolError) {
  for (const auto mode : kAllModes) {
    for (const char* answer :
         {"", "no JSON", "[]", "{}", R"({"choices":[]})", R"({"choices":{}})", R"({"choices":[1]})",
          R"({"choices":[{}]})", R"({"choices":[{"finish_reason":null}]})",
          R"({"choices":[{"finish_reason":3}]})", R"({"choices":[{"finish_reason":"length"}]}x)"}) {
      const auto outcome = dialect_of(mode).read_prefill_answer(answer);
      ASSERT_FALSE(outcome) << model::to_string(mode) << answer;
      EXPECT_EQ(outcome.error().code(), Errc::EngineProtocol) << answer;
    }
  }
}

TEST(Dialect, FailsAPrefillThatWasGivenUpButWherePullingNeedsNothingOfIt) {
  for (const auto mode : kAllModes) {
    for (const std::string reason : {"abort", "error"}) {
      const auto outcome = dialect_of(mode).read_prefill_answer(
          R"({"choices":[{"index":0,"finish_reason":")" + reason +
          R"("}],"kv_transfer_params":null,"usage":{"prompt_tokens":5}})");
      if (mode == model::HandoffMode::NixlPull) {
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->final_answer, std::nullopt);
        EXPECT_EQ(outcome->handoff, "");
        EXPECT_EQ(outcome->usage->prompt_tokens, 5);
      } else {
        ASSERT_FALSE(outcome) << model::to_string(mode);
        EXPECT_EQ(outcome.error().code(), Errc::EngineFailed);
      }
    }
  }
}

TEST(Dialect, KeepsWhatThePrefillUsed) {
  for (const auto mode : kAllModes) {
    for (const std::string reason : {"length", "stop"}) {
      const auto outcome = dialect_of(mode).read_prefill_answer(
          R"({"choices":[{"finish_reason":")" + reason +
          R"(","disaggregated_params":{"ctx_request_id":1}}],"kv_transfer_params":{},"usage":)"
          R"({"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":96}}})");
      ASSERT_TRUE(outcome) << model::to_string(mode);
      ASSERT_TRUE(outcome->usage) << model::to_string(mode) << reason;
      EXPECT_EQ(outcome->usage->prompt_tokens, 100);
      EXPECT_EQ(outcome->usage->cached_tokens, 96);
    }
  }
}

TEST(Dialect, HandsOverManyPromptsAndChoicesBecauseTheyAreFannedOutBefore) {
  const ClientRequest list(Api::Completions, R"({"prompt":["a","b"],"n":4})");
  for (const auto mode : kAllModes) EXPECT_TRUE(dialect_of(mode).can_hand_off(list.call));
}

TEST(Dialect, LeavesToOneWorkerWhatNeedsThePromptItself) {
  for (const char* body : {R"({"use_beam_search":true})", R"({"best_of":2})",
                           R"({"prompt_logprobs":0})", R"({"echo":true})"}) {
    const ClientRequest request(Api::Completions, body);
    for (const auto mode : kAllModes) {
      EXPECT_EQ(dialect_of(mode).can_hand_off(request.call), mode == model::HandoffMode::Bootstrap)
          << model::to_string(mode) << body;
    }
  }
  const ClientRequest plain(
      Api::Completions,
      R"({"use_beam_search":false,"best_of":1,"prompt_logprobs":null,"echo":false})");
  for (const auto mode : kAllModes) EXPECT_TRUE(dialect_of(mode).can_hand_off(plain.call));
}

TEST(Dialect, VllmSeesSeveralGreedyChoicesTogetherBecauseItRefusesThem) {
  ClientRequest greedy(Api::Completions, R"({"prompt":"a","n":2,"temperature":0})");
  for (const auto mode : kAllModes) {
    const bool vllm = mode == model::HandoffMode::NixlPull ||
                      mode == model::HandoffMode::NixlPush || mode == model::HandoffMode::Mooncake;
    EXPECT_EQ(dialect_of(mode).can_hand_off(greedy.call), !vllm) << model::to_string(mode);
  }
  greedy.call.choice = 1;
  for (const auto mode : kAllModes) EXPECT_TRUE(dialect_of(mode).can_hand_off(greedy.call));
}

TEST(PlainBody, IsTheClientsByteForByte) {
  const std::string text =
      "{ \"model\" : \"m\",\n \"seed\":12345678901234567890123, \"x\":1.10e+2 ,\"\\u0061\":[ ] }";
  const ClientRequest request(Api::Chat, text);
  for (const auto engine : {model::Engine::Vllm, model::Engine::Sglang, model::Engine::Trtllm})
    EXPECT_EQ(plain_body(request.call, engine).joined(), text);
}

TEST(PlainBody, CarriesNoHandoffFieldOfTheClient) {
  const ClientRequest request(Api::Chat, kSmuggled);
  EXPECT_EQ(json(plain_body(request.call, model::Engine::Vllm)),
            json(R"({"model":"m","messages":[]})"));
}

TEST(PlainBody, NamesTheModelAsTheWorkersDo) {
  const ClientRequest request(Api::Chat, R"({"model":"alias","messages":[]})", "the \"real\" one");
  EXPECT_EQ(json(plain_body(request.call, model::Engine::Vllm)),
            json(R"({"model":"the \"real\" one","messages":[]})"));
}

TEST(HandoffFieldIn, NamesTheFieldAClientShouldNotHaveSent) {
  const std::pair<const char*, std::optional<std::string_view>> cases[] = {
      {R"({"model":"m"})", std::nullopt},
      {R"({"kv_transfer_params":{}})", "kv_transfer_params"},
      {R"({"kv\u005ftransfer_params":{}})", "kv_transfer_params"},
      {R"({"bootstrap_room":0})", "bootstrap_room"},
      {R"({"routed_dp_rank":1})", "routed_dp_rank"},
      {R"({"disaggregated_params":{"a":1}})", "disaggregated_params"},
      {R"({"disaggregated_params":null})", std::nullopt},
      {R"({"bootstrap_room":1,"bootstrap_room":null})", "bootstrap_room"},
      {R"({"ec_transfer_params":{}})", "ec_transfer_params"},
      {R"({"vllm_xargs":{"a":1}})", std::nullopt},
      {R"({"vllm_xargs":"kv_transfer_params"})", std::nullopt},
      {R"({"vllm_xargs":{"a":1,"kv_transfer\u005fparams":"x"}})", "vllm_xargs.kv_transfer_params"},
      {R"({"vllm_xargs":{"ec_transfer_params":1},"vllm_xargs":{}})",
       "vllm_xargs.ec_transfer_params"},
      {R"({"nvext":{"a":1}})", std::nullopt},
      {R"({"messages":[{"kv_transfer_params":1}]})", std::nullopt},
  };
  for (const auto& [body, expected] : cases) {
    EXPECT_EQ(handoff_field_in(ClientRequest(Api::Chat, body).object), expected) << body;
  }
}

}  // namespace
}  // namespace baton::engine
