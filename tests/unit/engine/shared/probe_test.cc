// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/probe.h"

#include "unit/http_client/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::engine {
namespace {

using model::Engine;
using model::Role;
using test::by_path;
using test::FakeEngine;
using test::response;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string cards(const char* owner) {
  return response(200, std::string(R"({"data":[{"id":"llama","owned_by":")") + owner + R"("}]})");
}

struct ProbeTest : http_client::ExchangeFixture {
  Result<Facts> ask(const FakeEngine& engine, Engine configured = Engine::Vllm,
                    std::string_view authorization = {}) {
    return ask(engine.endpoint(), configured, authorization);
  }
  Result<Facts> ask(const model::Endpoint& endpoint, Engine configured = Engine::Vllm,
                    std::string_view authorization = {}) {
    model::WorkerSpec spec;
    spec.endpoint = endpoint;
    spec.engine = configured;
    Result<Facts> facts;
    run([&]() -> awaitable<void> {
      facts = co_await probe(pool, {{1}, spec.endpoint}, spec, timeouts, authorization);
    });
    return facts;
  }
  Facts facts_of(const FakeEngine& engine, Engine configured = Engine::Vllm,
                 std::string_view authorization = {}) {
    const auto facts = ask(engine, configured, authorization);
    EXPECT_TRUE(facts) << facts.error().message();
    return facts.value_or(Facts());
  }
  static std::vector<std::string> paths(const FakeEngine& engine) {
    std::vector<std::string> out;
    for (const auto& request : engine.requests())
      out.push_back(request.head.substr(0, request.head.find(" HTTP")));
    return out;
  }
};

TEST_F(ProbeTest, AsksVllmForItsDocuments) {
  const FakeEngine engine(by_path(
      {{"/v1/models", cards("vllm")},
       {"/version", response(200, R"({"version":"0.28.0"})")},
       {"/metrics", response(200, "vllm:cache_config_info{block_size=\"16\",engine=\"0\"} 1\n")}}));
  const Facts facts = facts_of(engine);
  EXPECT_EQ(facts.engine, Engine::Vllm);
  EXPECT_EQ(facts.version, "0.28.0");
  EXPECT_EQ(facts.block_size, 16U);
  EXPECT_EQ(facts.data_parallel_size, 1U);
  EXPECT_EQ(facts.unknown_because, "");
  EXPECT_THAT(paths(engine),
              ElementsAre("GET /v1/models", "GET /version", "GET /metrics", "POST /tokenize"));
  EXPECT_FALSE(facts.ids_only);
}

// vLLM 0.32.0 with --tokens-only, as it was seen to answer.
TEST_F(ProbeTest, KnowsAVllmWithoutItsTokenizer) {
  const FakeEngine engine(by_path(
      {{"/v1/models", cards("vllm")},
       {"/tokenize",
        response(400, R"({"error":{"message":"Tokenizer not available when )"
                      R"(`skip_tokenizer_init=True`","type":"BadRequestError","code":400}})")}}));
  const Facts facts = facts_of(engine);
  EXPECT_TRUE(facts.ids_only);
  EXPECT_THAT(contradictions("llama", {}, facts), ElementsAre(HasSubstr("--tokens-only")));
}

TEST_F(ProbeTest, TakesAnotherRefusalToTokenizeForNothing) {
  for (const int status : {400, 401, 404, 500}) {
    const FakeEngine engine(by_path(
        {{"/v1/models", cards("vllm")}, {"/tokenize", response(status, R"({"error":"no"})")}}));
    EXPECT_FALSE(facts_of(engine).ids_only) << status;
  }
}

TEST_F(ProbeTest, AsksSglangForItsDocuments) {
  const FakeEngine engine(
      by_path({{"/v1/models", cards("sglang")},
               {"/server_info", response(200, R"({"version":"0.5.18","dp_size":2})")},
               {"/generate", response(400, R"({"error":{"message":"logit_bias must has keys in )"
                                           R"([0, 151935], got -1."}})")}}));
  const Facts facts = facts_of(engine, Engine::Sglang);
  EXPECT_EQ(facts.vocabulary_size, 151936U);
  EXPECT_EQ(facts.engine, Engine::Sglang);
  EXPECT_EQ(facts.data_parallel_size, 2U);
  EXPECT_THAT(paths(engine), ElementsAre("GET /v1/models", "GET /server_info", "POST /generate"));
}

TEST_F(ProbeTest, DoesWithoutTheVocabulary) {
  for (const std::string& answer :
       {response(404, "{}"), response(401, "{}"), response(200, R"({"text":"keys in [0, 9]"})"),
        response(400, R"({"error":{"message":"no"}})")}) {
    const FakeEngine engine(by_path({{"/v1/models", cards("sglang")},
                                     {"/server_info", response(200, R"({"dp_size":2})")},
                                     {"/generate", answer}}));
    const Facts facts = facts_of(engine, Engine::Sglang);
    EXPECT_EQ(facts.vocabulary_size, std::nullopt) << answer;
    EXPECT_EQ(facts.data_parallel_size, 2U) << answer;
  }
}

TEST_F(ProbeTest, KnowsWhatOlderSglangCallsIt) {
  const FakeEngine engine(by_path(
      {{"/v1/models", cards("sglang")}, {"/get_server_info", response(200, R"({"dp_size":2})")}}));
  EXPECT_EQ(facts_of(engine, Engine::Sglang).data_parallel_size, 2U);
}

TEST_F(ProbeTest, AsksTensorRtForItsDocuments) {
  const FakeEngine engine(
      by_path({{"/v1/models", cards("tensorrt_llm")},
               {"/version", response(200, R"({"version":"1.3.0"})")},
               {"/server_info", response(200, R"({"kv_cache_hash_algo":"v1"})")}}));
  const Facts facts = facts_of(engine, Engine::Trtllm);
  EXPECT_EQ(facts.version, "1.3.0");
  EXPECT_EQ(facts.kv_cache_hash_algo, "v1");
  EXPECT_THAT(paths(engine), ElementsAre("GET /v1/models", "GET /version", "GET /server_info"));
}

TEST_F(ProbeTest, AsksByWhatTheEngineIsNotByWhatItIsSaidToBe) {
  const FakeEngine engine(
      by_path({{"/v1/models", cards("sglang")},
               {"/server_info", response(200, R"({"disaggregation_mode":"decode"})")}}));
  const Facts facts = facts_of(engine, Engine::Vllm);
  EXPECT_EQ(facts.engine, Engine::Sglang);
  EXPECT_EQ(facts.role, Role::Decode);
}

TEST_F(ProbeTest, TakesMissingDocumentsForSilence) {
  const FakeEngine engine(by_path({{"/v1/models", cards("vllm")}}));
  const Facts facts = facts_of(engine);
  EXPECT_EQ(facts.models.size(), 1U);
  EXPECT_EQ(facts.unknown_because, "");
}

TEST_F(ProbeTest, SaysThatAKeyIsAskedFor) {
  const FakeEngine engine(by_path({{"/v1/models", response(401, R"({"error":"Unauthorized"})")},
                                   {"/version", response(200, R"({"version":"1"})")}}));
  const Facts facts = facts_of(engine);
  EXPECT_EQ(facts.version, "1");
  EXPECT_THAT(facts.models, IsEmpty());
  EXPECT_THAT(facts.unknown_because, HasSubstr("GET /v1/models was answered with status 401"));
  EXPECT_THAT(facts.unknown_because, HasSubstr("asks for a key"));
  EXPECT_THAT(contradictions("llama", {}, facts), IsEmpty());
}

TEST_F(ProbeTest, SaysThatItsKeyIsRefused) {
  const FakeEngine engine(
      by_path({{"/v1/models", response(403, "")}, {"/server_info", response(403, "")}}));
  const Facts facts = facts_of(engine, Engine::Sglang, "Bearer secret");
  EXPECT_THAT(facts.unknown_because, HasSubstr("refuses the key"));
  EXPECT_THAT(facts.unknown_because, HasSubstr("; GET /server_info"));
  EXPECT_THAT(facts.unknown_because, Not(HasSubstr("secret")));
}

TEST_F(ProbeTest, SendsItsKey) {
  const FakeEngine engine(by_path({{"/v1/models", cards("vllm")}}));
  facts_of(engine, Engine::Vllm, "Bearer key");
  EXPECT_THAT(engine.requests().at(0).head, HasSubstr("\r\nAuthorization: Bearer key\r\n"));
  facts_of(engine);
  EXPECT_THAT(engine.requests().back().head, Not(HasSubstr("Authorization")));
}

TEST_F(ProbeTest, SaysWhichDocumentCouldNotBeHad) {
  const FakeEngine engine(by_path(
      {{"/v1/models", cards("sglang")}, {"/server_info", response(500, "trace with sk-secret")}}));
  const Facts facts = facts_of(engine, Engine::Sglang);
  EXPECT_EQ(facts.unknown_because, "GET /server_info was answered with status 500");
}

TEST_F(ProbeTest, FailsWithoutModelCards) {
  const std::pair<std::string, Errc> cases[] = {
      {response(503, ""), Errc::EngineOverloaded}, {response(404, "{}"), Errc::EngineFailed},
      {response(500, "{}"), Errc::EngineFailed},   {response(200, "<html>"), Errc::EngineProtocol},
      {"nonsense\r\n\r\n", Errc::EngineProtocol},
  };
  for (const auto& [answer, code] : cases) {
    const FakeEngine engine(test::always(answer));
    const auto facts = ask(engine);
    ASSERT_FALSE(facts) << answer;
    EXPECT_EQ(facts.error().code(), code) << answer << facts.error().message();
  }
}

TEST_F(ProbeTest, FailsOnADocumentThatIsNone) {
  const FakeEngine engine(
      by_path({{"/v1/models", cards("sglang")}, {"/server_info", response(200, "sk-secret")}}));
  const auto facts = ask(engine, Engine::Sglang);
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code(), Errc::EngineProtocol);
  EXPECT_THAT(facts.error().message(), HasSubstr("/server_info"));
  EXPECT_THAT(facts.error().message(), Not(HasSubstr("secret")));
}

TEST_F(ProbeTest, FailsWhereNobodyIs) {
  const auto nobody = ask(test::closed_endpoint());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), Errc::EngineUnreachable);
  timeouts.first_byte = std::chrono::milliseconds(50);
  const FakeEngine silent([](test::FakePeer& peer) { peer.wait_for_drop(); });
  const auto silence = ask(silent);
  ASSERT_FALSE(silence);
  EXPECT_EQ(silence.error().code(), Errc::EngineTimeout);
}

// ---- contradictions ----

model::WorkerSpec sglang_prefill() {
  model::WorkerSpec spec;
  spec.engine = Engine::Sglang;
  spec.role = Role::Prefill;
  spec.data_parallel_size = 2;
  spec.bootstrap_port = 8998;
  return spec;
}

Facts sglang_facts() {
  Facts facts;
  facts.engine = Engine::Sglang;
  facts.models = {{"llama", "", 8192}, {"poet", "llama", std::nullopt}};
  facts.role = Role::Prefill;
  facts.data_parallel_size = 2;
  facts.bootstrap_port = 8998;
  return facts;
}

std::string only_contradiction(const model::WorkerSpec& spec, const Facts& facts,
                               const std::string& model = "llama") {
  const auto found = contradictions(model, spec, facts);
  EXPECT_EQ(found.size(), 1U);
  return found.empty() ? "" : found.front();
}

TEST(Contradictions, AreNoneWhereBothAgree) {
  EXPECT_THAT(contradictions("llama", sglang_prefill(), sglang_facts()), IsEmpty());
}

TEST(Contradictions, AreNoneWhereTheEngineDoesNotSay) {
  EXPECT_THAT(contradictions("llama", sglang_prefill(), Facts()), IsEmpty());
}

TEST(Contradictions, NameTheWrongEngine) {
  auto spec = sglang_prefill();
  spec.engine = Engine::Vllm;
  EXPECT_EQ(only_contradiction(spec, sglang_facts()),
            "engine is vllm, but the server is sglang; correct the engine of this worker, or its "
            "address");
}

TEST(Contradictions, ListWhatIsServedInsteadOfTheModel) {
  const std::string text = only_contradiction(sglang_prefill(), sglang_facts(), "qwen");
  EXPECT_THAT(text, HasSubstr("the model is 'qwen', but the server serves 'llama', 'poet';"));
  EXPECT_THAT(text, HasSubstr("alias"));

  auto facts = sglang_facts();
  facts.models.assign(13, {"m", "", std::nullopt});
  EXPECT_THAT(only_contradiction(sglang_prefill(), facts, "qwen"), HasSubstr("'m' and 3 more;"));
}

TEST(Contradictions, TakeAnAdapterForAModel) {
  EXPECT_THAT(contradictions("poet", sglang_prefill(), sglang_facts()), IsEmpty());
  EXPECT_THAT(contradictions("llama:poet", sglang_prefill(), sglang_facts()), IsEmpty());
  EXPECT_THAT(only_contradiction(sglang_prefill(), sglang_facts(), "qwen:poet"),
              HasSubstr("qwen:poet"));
  EXPECT_THAT(only_contradiction(sglang_prefill(), sglang_facts(), "poet:llama"),
              HasSubstr("poet:llama"));

  auto spec = sglang_prefill();
  auto facts = sglang_facts();
  spec.engine = Engine::Vllm;
  facts.engine = Engine::Vllm;
  EXPECT_THAT(only_contradiction(spec, facts, "llama:poet"), HasSubstr("llama:poet"));
}

TEST(Contradictions, NameTheWrongRoleAndTheFlagToChange) {
  auto facts = sglang_facts();
  facts.role = Role::Decode;
  EXPECT_EQ(only_contradiction(sglang_prefill(), facts),
            "role is prefill, but the engine was started with --disaggregation-mode decode; "
            "correct the role of this worker, or start the engine with --disaggregation-mode "
            "prefill");
  auto spec = sglang_prefill();
  spec.role = Role::Aggregated;
  EXPECT_THAT(only_contradiction(spec, facts), HasSubstr("--disaggregation-mode null"));
}

TEST(Contradictions, NameAMissingConnector) {
  model::WorkerSpec spec;
  spec.engine = Engine::Vllm;
  Facts facts;
  facts.version = "0.32.0";
  facts.nixl = false;
  for (const Role role : {Role::Prefill, Role::Decode}) {
    spec.role = role;
    for (const auto mode : {model::HandoffMode::NixlPull, model::HandoffMode::NixlPush}) {
      spec.handoff = mode;
      const auto found = contradictions("llama", spec, facts);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_THAT(found[0], HasSubstr("has no NIXL connector"));
    }
    spec.handoff = model::HandoffMode::Mooncake;
    EXPECT_THAT(contradictions("llama", spec, facts), IsEmpty());
    spec.handoff.reset();
  }
  spec.role = Role::Prefill;
  for (const char* version : {"", "0.11.0"}) {
    facts.version = version;
    EXPECT_THAT(contradictions("llama", spec, facts), IsEmpty()) << "it would not show one";
  }
  facts.version = "0.32.0";
  facts.nixl = true;
  EXPECT_THAT(contradictions("llama", spec, facts), IsEmpty());
  facts.nixl.reset();
  EXPECT_THAT(contradictions("llama", spec, facts), IsEmpty());
  facts.nixl = false;
  spec.role = Role::Aggregated;
  EXPECT_THAT(contradictions("llama", spec, facts), IsEmpty());
}

TEST(Contradictions, NameTheRightNumberOfRanks) {
  auto spec = sglang_prefill();
  spec.data_parallel_size = 4;
  EXPECT_EQ(only_contradiction(spec, sglang_facts()),
            "data_parallel_size is 4, but the engine has 2 ranks at this address; set "
            "data_parallel_size to 2");
  auto facts = sglang_facts();
  facts.data_parallel_size = 1;
  EXPECT_THAT(only_contradiction(spec, facts), HasSubstr("has 1 rank at"));
  // An engine may be left to spread requests itself.
  spec.data_parallel_size = 1;
  EXPECT_THAT(contradictions("llama", spec, sglang_facts()), IsEmpty());
}

TEST(Contradictions, NameTheRightBootstrapPort) {
  auto spec = sglang_prefill();
  spec.bootstrap_port = 9000;
  EXPECT_EQ(only_contradiction(spec, sglang_facts()),
            "bootstrap_port is 9000, but the engine's is 8998; set bootstrap_port to 8998, or "
            "leave it out");
  spec.bootstrap_port.reset();
  EXPECT_THAT(contradictions("llama", spec, sglang_facts()), IsEmpty());
  // A decode worker opens no such port.
  spec.role = Role::Decode;
  spec.bootstrap_port = 9000;
  auto facts = sglang_facts();
  facts.role = Role::Decode;
  EXPECT_THAT(contradictions("llama", spec, facts), IsEmpty());
}

TEST(Contradictions, AreAllTold) {
  auto spec = sglang_prefill();
  spec.engine = Engine::Trtllm;
  spec.role = Role::Decode;
  spec.data_parallel_size = 8;
  EXPECT_EQ(contradictions("qwen", spec, sglang_facts()).size(), 4U);
}

}  // namespace
}  // namespace baton::engine
