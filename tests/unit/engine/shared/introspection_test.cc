// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/introspection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::engine {
namespace {

using model::Engine;
using model::Role;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Reader = Result<void> (*)(std::string_view, Facts&);

Facts read(Reader reader, std::string_view text, Facts facts = {}) {
  const auto done = reader(text, facts);
  EXPECT_TRUE(done) << done.error().message();
  return facts;
}

std::string problem(Reader reader, std::string_view text) {
  Facts facts;
  const auto done = reader(text, facts);
  EXPECT_FALSE(done) << text;
  if (done) return "";
  EXPECT_EQ(done.error().code(), Errc::EngineProtocol);
  return done.error().message();
}

// ---- model cards ----

TEST(ModelCards, TellModelsAdaptersAndTheEngine) {
  const Facts facts = read(read_model_cards, R"({"object":"list","data":[
    {"id":"llama","object":"model","created":1,"owned_by":"vllm","root":"/m","parent":null,
     "max_model_len":131072,"permission":[{"id":"x"}]},
    {"id":"poet","owned_by":"vllm","root":"/l","parent":"llama","max_model_len":null}]})");
  EXPECT_EQ(facts.engine, Engine::Vllm);
  EXPECT_THAT(facts.models, testing::ElementsAre(Facts::Card{"llama", "", 131072},
                                                 Facts::Card{"poet", "llama", std::nullopt}));
}

TEST(AdapterNames, AreWhatRequestsAskFor) {
  Facts facts;
  facts.models = {{"llama", "", 131072}, {"poet", "llama", {}}, {"clerk", "llama", {}}};
  facts.engine = Engine::Vllm;
  EXPECT_THAT(adapter_names(facts, "llama"), testing::ElementsAre("poet", "clerk"));
  facts.engine = Engine::Sglang;
  EXPECT_THAT(adapter_names(facts, "llama"), testing::ElementsAre("llama:poet", "llama:clerk"));
}

TEST(AdapterNames, AnAdapterHasNone) {
  Facts facts;
  facts.models = {{"llama", "", 131072}, {"poet", "llama", {}}, {"clerk", "llama", {}}};
  facts.engine = Engine::Vllm;
  EXPECT_THAT(adapter_names(facts, "clerk"), testing::IsEmpty());
}

TEST(FindCard, KnowsACardByItsIdAndByWhatRequestsCallIt) {
  Facts facts;
  facts.models = {{"llama", "", 131072}, {"poet", "llama", {}}, {"v2:clerk", "org:llama", {}}};
  const auto found = [&](std::string_view model) {
    const Facts::Card* card = find_card(facts, model);
    return card == nullptr ? std::string() : card->id;
  };
  for (const Engine engine : {Engine::Vllm, Engine::Sglang}) {
    facts.engine = engine;
    const bool sglang = engine == Engine::Sglang;
    EXPECT_EQ(found("llama"), "llama");
    EXPECT_EQ(found("poet"), "poet");
    EXPECT_EQ(found("llama:poet"), sglang ? "poet" : "");
    EXPECT_EQ(found("org:llama:v2:clerk"), sglang ? "v2:clerk" : "") << "colons of their own";
    EXPECT_EQ(found("other:poet"), "");
    EXPECT_EQ(found("llama:"), "");
    EXPECT_EQ(found(""), "");
    for (const Facts::Card& card : facts.models)
      EXPECT_EQ(find_card(facts, asked_for_as(facts, card)), &card);
  }
}

TEST(ModelCards, NameEachEngineByItsOwnWord) {
  const auto owned_by = [](std::string_view owner) {
    return read(read_model_cards,
                fmt::format(R"({{"data":[{{"id":"m","owned_by":"{}"}}]}})", owner))
        .engine;
  };
  EXPECT_EQ(owned_by("vllm"), Engine::Vllm);
  EXPECT_EQ(owned_by("sglang"), Engine::Sglang);
  EXPECT_EQ(owned_by("tensorrt_llm"), Engine::Trtllm);
  EXPECT_EQ(owned_by("somebody"), std::nullopt);
}

TEST(ModelCards, MayBeNone) { EXPECT_EQ(read(read_model_cards, R"({"data":[]})"), Facts()); }

TEST(ModelCards, RefuseWhatIsNoListOfModels) {
  const std::string long_name(1025, 'x');
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string("<html>"),
        std::string(R"({"data":{}})"), std::string(R"({"data":[1]})"),
        std::string(R"({"data":[{"object":"model"}]})"), std::string(R"({"data":[{"id":7}]})"),
        std::string(R"({"data":[{"id":""}]})"),
        fmt::format(R"({{"data":[{{"id":"{}"}}]}})", long_name),
        fmt::format(R"({{"data":[{{"id":"m","parent":"{}"}}]}})", long_name),
        fmt::format(R"({{"data":[{{"id":"m","owned_by":"{}"}}]}})", long_name)}) {
    EXPECT_THAT(problem(read_model_cards, text), StartsWith("GET /v1/models: ")) << text;
  }
}

TEST(ModelCards, AreBounded) {
  std::string text = R"({"data":[{"id":"m"})";
  for (int i = 1; i < 4096; ++i) text += R"(,{"id":"m"})";
  EXPECT_EQ(read(read_model_cards, text + "]}").models.size(), 4096U);
  EXPECT_THAT(problem(read_model_cards, text + R"(,{"id":"m"}]})"), HasSubstr("more than 4096"));
}

// ---- version ----

TEST(Version, IsTaken) {
  EXPECT_EQ(read(read_version, R"({"version":"0.28.0"})").version, "0.28.0");
  EXPECT_EQ(read(read_version, R"({"version":28})").version, "");
}

TEST(Version, NamesItsDocumentWhereItIsNone) {
  EXPECT_THAT(problem(read_version, "0.28.0"), StartsWith("GET /version: "));
  EXPECT_THAT(problem(read_version, fmt::format(R"({{"version":"{}"}})", std::string(1025, '1'))),
              StartsWith("GET /version: version has more than"));
}

// ---- SGLang ----

TEST(SglangServerInfo, TellsWhatARouterNeeds) {
  const Facts facts = read(read_sglang_server_info, R"({
    "model_path":"/m","served_model_name":"llama","api_key":"sk-secret","version":"0.5.18",
    "dp_size":4,"page_size":16,"disaggregation_mode":"prefill","disaggregation_bootstrap_port":8998,
    "max_total_num_tokens":400000,"max_running_requests":64,"internal_states":[{}],
    "kv_events":{"publisher":"zmq","endpoint_host":"10.0.0.7","endpoint_port_base":5557,
                 "topic":"kv","block_size":64,"dp_size":4}})");
  EXPECT_EQ(facts.engine, Engine::Sglang);
  EXPECT_EQ(facts.version, "0.5.18");
  EXPECT_EQ(facts.data_parallel_size, 4U);
  EXPECT_EQ(facts.block_size, 64U);  // the events' own, which the pages are only a part of
  EXPECT_EQ(facts.role, Role::Prefill);
  EXPECT_EQ(facts.bootstrap_port, 8998);
  EXPECT_EQ(facts.max_total_tokens, 400000);
  EXPECT_EQ(facts.max_running_requests, 64);
  EXPECT_THAT(facts.models, testing::ElementsAre(Facts::Card{"llama", "", std::nullopt}));
  EXPECT_EQ(facts.kv_events, (Facts::KvEvents{"zmq", {"10.0.0.7", 5557}, 0, "kv"}));
}

// Regression: 0.5.23 tells the ranks of --enable-dp-attention as attn_dp_size, beside a dp_size of 1.
TEST(SglangServerInfo, CountsRanksOfAttentionToo) {
  const auto ranks = [](std::string_view json) {
    return read(read_sglang_server_info, json).data_parallel_size;
  };
  EXPECT_EQ(ranks(R"({"dp_size":1,"attn_dp_size":8,"enable_dp_attention":true})"), 8U);
  EXPECT_EQ(ranks(R"({"dp_size":4,"attn_dp_size":1,"enable_dp_attention":false})"), 4U);
  EXPECT_EQ(ranks(R"({"dp_size":2,"attn_dp_size":4})"), 8U);
  EXPECT_EQ(ranks(R"({"dp_size":4,"enable_dp_attention":true})"), 4U) << "releases before";
  EXPECT_EQ(ranks(R"({"attn_dp_size":2})"), 2U);
  EXPECT_EQ(ranks(R"({"dp_size":4294967295,"attn_dp_size":4294967295})"), std::nullopt);
}

TEST(SglangServerInfo, SaysWhereEventsAreRepeated) {
  const auto replay_port = [](std::string_view port) {
    return read(read_sglang_server_info,
                fmt::format(R"({{"kv_events":{{"publisher":"zmq","endpoint_host":"*",)"
                            R"("endpoint_port_base":5557,"replay_endpoint_port_base":{}}}}})",
                            port))
        .kv_events->replay_port;
  };
  EXPECT_EQ(replay_port("5657"), 5657);
  for (const char* none : {"null", "0", "65536", R"("5657")"})
    EXPECT_EQ(replay_port(none), 0) << none;
}

TEST(SglangServerInfo, NamesRolesAsTheEngineDoes) {
  const auto role = [](std::string_view json) {
    return read(read_sglang_server_info, fmt::format(R"({{"disaggregation_mode":{}}})", json)).role;
  };
  EXPECT_EQ(role(R"("null")"), Role::Aggregated);
  EXPECT_EQ(role(R"("prefill")"), Role::Prefill);
  EXPECT_EQ(role(R"("decode")"), Role::Decode);
  EXPECT_EQ(role(R"("encode")"), std::nullopt);
  EXPECT_EQ(role("7"), std::nullopt);
}

TEST(SglangServerInfo, LeavesAWildcardHostToTheWorkersOwn) {
  for (const char* host : {"*", "0.0.0.0", "::", "[::]", ""}) {
    const Facts facts = read(
        read_sglang_server_info,
        fmt::format(
            R"({{"kv_events":{{"publisher":"zmq","endpoint_host":"{}","endpoint_port_base":5557}}}})",
            host));
    EXPECT_EQ(facts.kv_events, (Facts::KvEvents{"zmq", {"", 5557}, 0, ""})) << host;
  }
}

TEST(SglangServerInfo, HasNoEventsWhereNonePublishes) {
  for (const char* events :
       {"null", "[]", "{}", R"({"publisher":"null","endpoint_port_base":5557})",
        R"({"publisher":"zmq"})", R"({"publisher":"zmq","endpoint_port_base":0})",
        R"({"publisher":"zmq","endpoint_port_base":65536})", R"({"endpoint_port_base":5557})"}) {
    EXPECT_EQ(read(read_sglang_server_info, fmt::format(R"({{"kv_events":{}}})", events)).kv_events,
              std::nullopt)
        << events;
  }
}

TEST(SglangServerInfo, TakesNoNumberThatCannotBe) {
  EXPECT_EQ(read(read_sglang_server_info,
                 R"({"dp_size":0,"page_size":-1,"disaggregation_bootstrap_port":65536,)"
                 R"("max_total_num_tokens":"many","max_running_requests":null})"),
            Facts());
}

TEST(SglangServerInfo, LeavesCardsThatAreKnownAlone) {
  Facts cards;
  cards.models = {{.id = "llama", .parent = "", .max_model_len = 8}};
  EXPECT_EQ(read(read_sglang_server_info, R"({"served_model_name":"other"})", cards).models,
            cards.models);
}

// A broken document is told of, what stands in it is not.
TEST(SglangServerInfo, SaysNothingOfTheSecretsInIt) {
  for (const std::string& text :
       {std::string(R"({"api_key":"sk-secret",)"), std::string(R"(["sk-secret"])"),
        fmt::format(R"({{"version":"sk-secret{}"}})", std::string(1024, 'x')),
        fmt::format(R"({{"kv_events":{{"topic":"sk-secret{}"}}}})", std::string(1024, 'x'))}) {
    const std::string message = problem(read_sglang_server_info, text);
    EXPECT_THAT(message, StartsWith("GET /server_info"));
    EXPECT_THAT(message, Not(HasSubstr("secret")));
  }
}

// ---- TensorRT-LLM ----

TEST(TrtllmServerInfo, TellsHowBlocksAreHashed) {
  EXPECT_EQ(read(read_trtllm_server_info,
                 R"({"disaggregated_params":{"ctx_info_endpoint":null},"kv_cache_hash_algo":"v1"})")
                .kv_cache_hash_algo,
            "v1");
  EXPECT_EQ(read(read_trtllm_server_info, "{}"), Facts());
  EXPECT_THAT(problem(read_trtllm_server_info, "[]"), StartsWith("GET /server_info: "));
}

// ---- vLLM's metrics ----

TEST(VllmMetrics, TellBlocksAndRanks) {
  const Facts facts = read(read_vllm_metrics,
                           "# HELP vllm:cache_config_info Information of the LLMEngine\n"
                           "# TYPE vllm:cache_config_info gauge\n"
                           R"(vllm:cache_config_info{block_size="16",engine="0",x="a,}\"\\"} 1.0)"
                           "\n"
                           R"(vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",)"
                           R"(engine="1"} 1.0)"
                           "\n"
                           R"(vllm:num_requests_running{engine="0",model_name="m"} 0.0)"
                           "\n"
                           R"(vllm:num_requests_running{engine="2",model_name="m"} 0.0)"
                           "\n"
                           R"(vllm:num_requests_running_other{engine="9"} 0.0)"
                           "\r\npython_gc_objects_collected_total{generation=\"0\"} 7");
  EXPECT_EQ(facts.engine, Engine::Vllm);
  EXPECT_EQ(facts.block_size, 16U);
  EXPECT_EQ(facts.max_total_tokens, 16000);
  EXPECT_EQ(facts.data_parallel_size, 3U);
}

TEST(VllmMetrics, TellWhetherThereIsANixlConnector) {
  const std::string running = "vllm:num_requests_running{engine=\"0\"} 0\n";
  EXPECT_EQ(read(read_vllm_metrics, running).nixl, false);
  EXPECT_EQ(
      read(read_vllm_metrics, "vllm:nixl_num_failed_transfers_total{engine=\"0\"} 0\n" + running)
          .nixl,
      true);
  EXPECT_EQ(read(read_vllm_metrics, "up 1\n").nixl, std::nullopt) << "it may show none at all";
}

TEST(VllmMetrics, OfAnotherServerTellNothing) {
  EXPECT_EQ(read(read_vllm_metrics, ""), Facts());
  EXPECT_EQ(read(read_vllm_metrics, "\n\nup 1\nsglang:page_size{dp_rank=\"0\"} 64\n"), Facts());
  EXPECT_EQ(read(read_vllm_metrics, "# vllm:cache_config_info{block_size=\"16\"} 1\n"), Facts());
}

TEST(VllmMetrics, OfOldReleasesDoNotTellTheRanks) {
  const Facts facts = read(read_vllm_metrics,
                           "vllm:cache_config_info{num_gpu_blocks=\"None\",block_size=\"32\"} 1\n"
                           "vllm:num_requests_running{model_name=\"m\"} 0\n");
  EXPECT_EQ(facts.block_size, 32U);
  EXPECT_EQ(facts.max_total_tokens, std::nullopt);
  EXPECT_EQ(facts.data_parallel_size, std::nullopt);
}

TEST(VllmMetrics, TakeNoSizeThatCannotBe) {
  for (const char* size : {"0", "-1", "", "16x", "4294967296", "99999999999999999999"}) {
    EXPECT_EQ(read(read_vllm_metrics,
                   fmt::format("vllm:cache_config_info{{block_size=\"{}\"}} 1\n", size))
                  .block_size,
              std::nullopt)
        << size;
  }
  const Facts huge = read(read_vllm_metrics,
                          "vllm:cache_config_info{block_size=\"4294967295\","
                          "num_gpu_blocks=\"4294967295\"} 1\n");
  EXPECT_EQ(huge.max_total_tokens, std::nullopt);
}

TEST(VllmMetrics, RefuseBrokenLabels) {
  for (const char* labels : {"", "a", "a=", "a=1", "a=\"1", "a=\"1\\", "a=\"1\",b", "a=\"1\"x"}) {
    EXPECT_THAT(problem(read_vllm_metrics, fmt::format("vllm:cache_config_info{{{}\n", labels)),
                StartsWith("GET /metrics: "))
        << labels;
  }
}

TEST(VllmMetrics, AreBounded) {
  std::string text;
  for (int i = 0; i < 10000; ++i)
    text += fmt::format("vllm:num_requests_running{{engine=\"{}\"}} 0\n", i);
  EXPECT_THAT(problem(read_vllm_metrics, text), HasSubstr("too many"));
}

TEST(SglangRefusal, TellsTheSizeOfTheVocabulary) {
  const auto size = [](std::string_view text) {
    Facts facts;
    read_sglang_refusal(text, facts);
    return facts.vocabulary_size;
  };
  EXPECT_EQ(size(R"({"error":{"message":"logit_bias must has keys in [0, 151935], got -1."}})"),
            151936U);
  for (const char* text :
       {"", "keys in [0, ", "keys in [0, x]", "keys in [0, 12", "keys in [0, 0]", "keys in [0, 12)",
        "keys in [0, 2147483648]", "keys in [0, -5]", "keys in [0, 99999999999999999999]"})
    EXPECT_EQ(size(text), std::nullopt) << text;
}

TEST(SglangServerInfo, TellsWhetherChatsAreWrittenByCode) {
  const auto coded = [](const char* json) {
    return read(read_sglang_server_info, json).chats_in_code;
  };
  EXPECT_FALSE(coded(R"({"chat_template":null,"tool_call_parser":"hermes"})"));
  EXPECT_FALSE(coded(R"({"chat_template":"/models/mine.jinja"})"));
  EXPECT_TRUE(coded(R"({"chat_template":"vicuna_v1.1"})"));
  EXPECT_TRUE(coded(R"({"chat_template":null,"tool_call_parser":"deepseekv32"})"));
  EXPECT_TRUE(coded(R"({"chat_template":null,"model_path":"OpenGVLab/InternVL3-8B"})"));
  EXPECT_TRUE(coded(R"({"model_path":"deepseek-ai/deepseek-vl2-tiny"})"));
  EXPECT_FALSE(coded(R"({"chat_template":"mine.jinja","model_path":"OpenGVLab/InternVL3-8B"})"));
  EXPECT_FALSE(coded(R"({"chat_template":null,"model_path":"/models/Qwen2.5-7B-Instruct"})"));
}

}  // namespace
}  // namespace baton::engine
