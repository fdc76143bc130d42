// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/dialect_fields.h"

#include "engine/vllm/vllm_dialect.h"
#include "unit/engine/client_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using model::Engine;

nlohmann::json plain(const ClientCall& call, Engine engine = Engine::Vllm) {
  return json(plain_body(call, engine));
}

TEST(ABranch, AsksForOneChoiceWithASeedOfItsOwn) {
  const ClientRequest request(Api::Chat, R"({"n":4,"seed":100,"messages":[]})");
  ClientCall call = request.call;
  call.choice = 0;
  EXPECT_EQ(plain(call), json(R"({"n":1,"seed":100,"messages":[]})"));
  call.choice = 3;
  EXPECT_EQ(plain(call), json(R"({"n":1,"seed":103,"messages":[]})"));
}

TEST(ABranch, LeavesASeedThatIsNoNumberToTheEngine) {
  for (const char* body : {R"({"seed":null})", R"({"seed":"7"})", R"({"seed":1.5})",
                           R"({"seed":99999999999999999999})", "{}"}) {
    const ClientRequest request(Api::Chat, body);
    ClientCall call = request.call;
    call.choice = 3;
    EXPECT_EQ(plain_body(call, Engine::Vllm).joined(), body);
  }
}

TEST(ABranch, CountsPastTheLargestSeedFromTheSmallest) {
  const ClientRequest request(Api::Chat, R"({"seed":9223372036854775807})");
  ClientCall call = request.call;
  call.choice = 1;
  EXPECT_EQ(plain(call)["seed"], std::numeric_limits<std::int64_t>::min());
}

TEST(ABranch, HasItsOwnPrompt) {
  const ClientRequest request(Api::Completions, R"({"prompt":["a","b"],"model":"m"})");
  ClientCall call = request.call;
  call.prompt = R"("b")";
  for (const auto engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm})
    EXPECT_EQ(plain(call, engine), json(R"({"prompt":"b","model":"m"})"));
  HandoffTicket ticket;
  for (const auto mode : kAllModes)
    EXPECT_EQ(json(dialect_of(mode).prefill_body(call, ticket))["prompt"], "b");
}

constexpr const char* kWithSettings =
    R"({"kv_transfer_params":{"lmcache.tag.user":"u1","do_remote_prefill":true,)"
    R"("remote_host":"evil","lmcache.skip_save":true}})";

TEST(ConnectorSettings, OfTheClientGoWithEveryLegToVllmAndNothingElseOfItsObject) {
  const ClientRequest request(Api::Chat, kWithSettings);
  const auto settings = json(R"({"lmcache.tag.user":"u1","lmcache.skip_save":true})");
  EXPECT_EQ(plain(request.call), nlohmann::json({{"kv_transfer_params", settings}}));
  PrefillOutcome outcome;
  outcome.handoff = R"( { "remote_host":"p", "x":1 } )";
  for (const auto mode :
       {model::HandoffMode::NixlPull, model::HandoffMode::NixlPush, model::HandoffMode::Mooncake}) {
    const Dialect& dialect = dialect_of(mode);
    const auto prefill = json(dialect.prefill_body(request.call, {}))["kv_transfer_params"];
    const auto decode = json(dialect.decode_body(request.call, {}, outcome,
                                                 DecodePurpose::Answer))["kv_transfer_params"];
    for (const auto& params : {prefill, decode}) {
      EXPECT_EQ(params["lmcache.tag.user"], "u1");
      EXPECT_EQ(params["lmcache.skip_save"], true);
      EXPECT_NE(params.value("remote_host", nlohmann::json()), "evil");
    }
    EXPECT_EQ(prefill["do_remote_prefill"], false);
  }
  const auto pulled =
      json(NixlPullDialect().decode_body(request.call, {}, outcome, DecodePurpose::Answer));
  EXPECT_EQ(pulled["kv_transfer_params"]["remote_host"], "p");
  EXPECT_EQ(pulled["kv_transfer_params"]["x"], 1);
}

TEST(ConnectorSettings, GoBesideTokenIds) {
  const ClientRequest request(Api::Chat, kWithSettings);
  ClientCall call = request.call;
  call.token_ids = "[1,2]";
  const auto expected =
      json(R"({"lmcache.tag.user":"u1","lmcache.skip_save":true,"prompt_token_ids":[1,2]})");
  EXPECT_EQ(plain(call)["kv_transfer_params"], expected);
  const Progress progress{.prompt_token_ids = "[1]", .token_ids = "2", .produced = 1};
  ClientCall continued = request.call;
  continued.progress = &progress;
  EXPECT_EQ(plain(continued)["kv_transfer_params"], expected);
}

TEST(ConnectorSettings, AreVllmsAlone) {
  const ClientRequest request(Api::Chat, kWithSettings);
  for (const auto engine : {Engine::Sglang, Engine::Trtllm})
    EXPECT_EQ(plain(request.call, engine), json("{}"));
}

TEST(ConnectorSettings, AreNoHandoffField) {
  const auto field = [](const char* body) {
    return handoff_field_in(ClientRequest(Api::Chat, body).object);
  };
  EXPECT_EQ(field(R"({"kv_transfer_params":{"lmcache.skip_save":true}})"), std::nullopt);
  EXPECT_EQ(field(kWithSettings), "kv_transfer_params");
  EXPECT_EQ(field(R"({"kv_transfer_params":[]})"), "kv_transfer_params");
  EXPECT_EQ(field(R"({"kv_transfer_params":{"lmcache.x":1},"bootstrap_room":1})"),
            "bootstrap_room");
}

// vLLM takes them for the fields of the same names.
TEST(EngineArguments, OfTheRouterAreTakenOutOfTheClients) {
  const ClientRequest request(
      Api::Chat,
      R"({"vllm_xargs":{"kv_transfer_params":"x"},"vllm_xargs":{"kv\u005ftransfer_params":"x",)"
      R"("mine":1,"ec_transfer_params":["y"],"kv_cache_report_mode":"full"}})");
  EXPECT_EQ(plain(request.call), json(R"({"vllm_xargs":{"mine":1}})"));
  PrefillOutcome outcome;
  outcome.handoff = "{}";
  for (const auto mode :
       {model::HandoffMode::NixlPull, model::HandoffMode::NixlPush, model::HandoffMode::Mooncake}) {
    const Dialect& dialect = dialect_of(mode);
    EXPECT_EQ(json(dialect.prefill_body(request.call, {}))["vllm_xargs"], json(R"({"mine":1})"));
    EXPECT_EQ(
        json(dialect.decode_body(request.call, {}, outcome, DecodePurpose::Answer))["vllm_xargs"],
        json(R"({"mine":1})"));
  }
}

TEST(EngineArguments, ThatAreTooManyToLookThroughAreTakenOutWhole) {
  std::string body = R"({"vllm_xargs":{"kv_transfer_params":"x")";
  for (int i = 0; i < 5000; ++i) body += fmt::format(R"(,"a{}":1)", i);
  body += "}}";
  const ClientRequest request(Api::Chat, body);
  EXPECT_EQ(plain(request.call), json("{}"));
  EXPECT_EQ(handoff_field_in(request.object), "vllm_xargs");
}

TEST(EngineArguments, OfTheClientsOwnStayAsTheyAre) {
  for (const char* const body : {R"({"vllm_xargs":{"ngram_size":3}})", R"({"vllm_xargs":null})",
                                 R"({"vllm_xargs":"odd"})"}) {
    const ClientRequest request(Api::Chat, body);
    EXPECT_EQ(plain(request.call), json(body));
  }
}

TEST(TokenIds, AreAskedForWhereTheEngineStreamsThem) {
  const ClientRequest chat(Api::Chat, R"({"return_token_ids":false})");
  const ClientRequest text(Api::Completions, "{}");
  for (const auto engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    for (const ClientRequest* request : {&chat, &text}) {
      ClientCall call = request->call;
      EXPECT_NE(plain(call, engine).value("return_token_ids", false), true);
      call.with_token_ids = true;
      const bool asked = engine == Engine::Vllm || (engine == Engine::Sglang && request == &text);
      EXPECT_EQ(plain(call, engine).value("return_token_ids", false), asked);
      EXPECT_EQ(gives_token_ids(engine, call.api), asked);
    }
  }
}

TEST(TokenIds, AreNotAskedOfAPrefillBecauseItsAnswerMayBeTheClients) {
  const ClientRequest request(Api::Chat, "{}");
  ClientCall call = request.call;
  call.with_token_ids = true;
  for (const auto mode : kAllModes)
    EXPECT_FALSE(json(dialect_of(mode).prefill_body(call, {})).contains("return_token_ids"));
}

struct AContinuedAnswer : testing::Test {
  nlohmann::json continued(Api api, const std::string& body, Engine engine = Engine::Vllm) {
    const ClientRequest request(api, body);
    ClientCall call = request.call;
    call.progress = &progress;
    return plain(call, engine);
  }
  Progress progress{.prompt_token_ids = "[1,2, 3]", .token_ids = "7,8", .produced = 2};
};

TEST_F(AContinuedAnswer, HasTheTokensSoFarInItsPrompt) {
  for (const auto engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    EXPECT_EQ(continued(Api::Completions, R"({"prompt":"text","max_tokens":9})", engine),
              json(R"({"prompt":[1,2,3,7,8],"max_tokens":7})"));
  }
  EXPECT_EQ(continued(Api::Chat, R"({"messages":[1]})", Engine::Vllm),
            json(R"({"messages":[1],"kv_transfer_params":{"prompt_token_ids":[1,2,3,7,8]}})"));
  EXPECT_EQ(continued(Api::Chat, R"({"messages":[1]})", Engine::Sglang),
            json(R"({"messages":[1],"input_ids":[1,2,3,7,8]})"));
  EXPECT_EQ(continued(Api::Chat, R"({"messages":[1]})", Engine::Trtllm),
            json(R"({"messages":[1],"prompt_token_ids":[1,2,3,7,8]})"));
}

TEST_F(AContinuedAnswer, CanBeginAtNothing) {
  progress = {.prompt_token_ids = "[1]", .token_ids = "", .produced = 0};
  EXPECT_EQ(continued(Api::Completions, R"({"max_tokens":5})")["prompt"], json("[1]"));
  progress = {.prompt_token_ids = "[ ]", .token_ids = "5", .produced = 1};
  EXPECT_EQ(continued(Api::Completions, R"({"max_tokens":5})")["prompt"], json("[5]"));
}

TEST_F(AContinuedAnswer, MayProduceOnlyTheRest) {
  EXPECT_EQ(continued(Api::Chat, R"({"max_tokens":10,"max_completion_tokens":20,"min_tokens":5})"),
            json(R"({"max_tokens":8,"max_completion_tokens":18,"min_tokens":3,)"
                 R"("kv_transfer_params":{"prompt_token_ids":[1,2,3,7,8]}})"));
  const auto least = continued(Api::Chat, R"({"max_tokens":2,"min_tokens":1})");
  EXPECT_EQ(least["max_tokens"], 1);
  EXPECT_EQ(least["min_tokens"], 0);
  const auto absurd = continued(Api::Chat, R"({"max_tokens":-9223372036854775808})");
  EXPECT_EQ(absurd["max_tokens"], 1);
}

TEST_F(AContinuedAnswer, KnowsTheLimitACompletionHasUnasked) {
  EXPECT_EQ(continued(Api::Completions, "{}")["max_tokens"], 14);
  EXPECT_EQ(continued(Api::Completions, R"({"max_tokens":null})")["max_tokens"], 14);
  EXPECT_FALSE(continued(Api::Chat, "{}").contains("max_tokens"));
  progress.produced = 16;
  EXPECT_EQ(continued(Api::Completions, "{}")["max_tokens"], 1);
}

TEST_F(AContinuedAnswer, KeepsItsPromptBesideWhateverTheLegHandsOver) {
  const ClientRequest request(Api::Chat, R"({"messages":[]})");
  ClientCall call = request.call;
  call.progress = &progress;
  PrefillOutcome outcome;
  outcome.handoff = R"({"remote_port":5600,"big":18446744073709551616})";
  const auto ids = json("[1,2,3,7,8]");
  for (const auto mode :
       {model::HandoffMode::NixlPull, model::HandoffMode::NixlPush, model::HandoffMode::Mooncake}) {
    const Dialect& dialect = dialect_of(mode);
    const auto prefill = json(dialect.prefill_body(call, {}))["kv_transfer_params"];
    EXPECT_EQ(prefill["prompt_token_ids"], ids);
    EXPECT_EQ(prefill["do_remote_decode"], true);
    const auto decode =
        json(dialect.decode_body(call, {}, outcome, DecodePurpose::Answer))["kv_transfer_params"];
    EXPECT_EQ(decode["prompt_token_ids"], ids);
    EXPECT_GT(decode.size(), 1U);
  }
}

TEST(TokenLimit, IsTheClientsOrTheEnginesOwn) {
  const std::tuple<Api, const char*, std::optional<std::int64_t>> cases[] = {
      {Api::Completions, "{}", 16},
      {Api::Completions, R"({"max_tokens":null})", 16},
      {Api::Completions, R"({"max_tokens":5})", 5},
      {Api::Chat, "{}", std::nullopt},
      {Api::Chat, R"({"max_tokens":5})", 5},
      {Api::Chat, R"({"max_tokens":5,"max_completion_tokens":6})", 6},
  };
  for (const auto& [api, body, expected] : cases)
    EXPECT_EQ(token_limit(ClientRequest(api, body).call), expected) << body;
}

}  // namespace
}  // namespace baton::engine
