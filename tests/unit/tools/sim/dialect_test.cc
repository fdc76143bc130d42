// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/dialect.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using model::Engine;
using model::Role;
using nlohmann::json;

Options worker(Engine engine, Role role = Role::Aggregated) {
  Options options;
  options.engine = engine;
  options.role = role;
  return options;
}

const WordTokens kWords;
const PromptText kText{kWords, {}};

// As it comes over the wire: the JSON library types numbers differently when it builds them.
json received(const json& body) { return json::parse(body.dump()); }

json chat(json fields = json::object()) {
  json body{{"model", "demo"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(fields);
  return body;
}

Result<GenerationRequest> read(const Options& options, const json& body, Api api = Api::Chat) {
  GenerationRequest request;
  if (const auto result = read_request(options, api, received(body), request, {}, kText); !result) {
    return fail(result.error());
  }
  return request;
}

int status(const Options& options, const json& body, Api api = Api::Chat) {
  const auto request = read(options, body, api);
  return request ? 200 : request.error().http_status();
}

json pull_params() {
  return {{"do_remote_prefill", true}, {"do_remote_decode", false}, {"remote_block_ids", {{3, 1}}},
          {"remote_engine_id", "e"},   {"remote_request_id", "r"},  {"remote_host", "h"},
          {"remote_port", 5600}};
}

TEST(Dialect, UnknownFieldsAreRefusedByTensorRtLlmOnly) {
  const json body = chat({{"kv_transfer_params", nullptr}});
  EXPECT_EQ(status(worker(Engine::Vllm), body), 200);
  EXPECT_EQ(status(worker(Engine::Sglang), body), 200);
  EXPECT_EQ(status(worker(Engine::Trtllm), body), 400);
  EXPECT_EQ(status(worker(Engine::Trtllm), chat({{"top_k", 1}, {"cache_salt", "s"}})), 200);
}

TEST(Dialect, UnknownModelIsNotFoundButBySglang) {
  for (const Engine engine : {Engine::Vllm, Engine::Trtllm})
    EXPECT_EQ(status(worker(engine), chat({{"model", "other"}})), 404);
  EXPECT_EQ(status(worker(Engine::Sglang), chat({{"model", "other"}})), 200);
  EXPECT_EQ(status(worker(Engine::Sglang), chat({{"model", "other:adapter"}})), 400);
}

TEST(Dialect, StreamOptionsWithoutStreamAreRefusedButBySglang) {
  const json body = chat({{"stream_options", {{"include_usage", true}}}});
  EXPECT_EQ(status(worker(Engine::Vllm), body), 400);
  EXPECT_EQ(status(worker(Engine::Sglang), body), 200);
  EXPECT_EQ(status(worker(Engine::Trtllm), body), 400);
}

TEST(Dialect, TensorRtLlmIncludesUsageOnceStreamOptionsAreGiven) {
  const json body = chat({{"stream", true}, {"stream_options", json::object()}});
  EXPECT_TRUE(read(worker(Engine::Trtllm), body)->include_usage);
  EXPECT_FALSE(read(worker(Engine::Vllm), body)->include_usage);
}

TEST(Dialect, WrongTypesAndImpossibleValuesAreRefused) {
  for (const json& fields : std::vector<json>{{{"stream", "perhaps"}},
                                              {{"max_tokens", 0}},
                                              {{"max_tokens", "many"}},
                                              {{"n", 0}},
                                              {{"n", 20000}},
                                              {{"stop", 7}},
                                              {{"stop", ""}},
                                              {{"model", 7}},
                                              {{"max_tokens", 4}, {"min_tokens", 5}},
                                              {{"max_tokens", 131073}}}) {
    EXPECT_EQ(status(worker(Engine::Vllm), chat(fields)), 400) << fields;
  }
  EXPECT_EQ(status(worker(Engine::Vllm), json::array()), 400);
}

TEST(Dialect, CompletionsAskForSixteenTokensByDefault) {
  const json body{{"model", "demo"}, {"prompt", "hi"}};
  EXPECT_EQ(read(worker(Engine::Vllm), body, Api::Completions)->max_tokens, 16U);
  EXPECT_FALSE(read(worker(Engine::Vllm), chat())->max_tokens);
}

TEST(Dialect, ToolsMakeAToolCallOnlyAfterAUserMessageAndUnlessForbidden) {
  const json tools = json::array({{{"type", "function"}, {"function", {{"name", "first"}}}},
                                  {{"type", "function"}, {"function", {{"name", "second"}}}}});
  Options vllm = worker(Engine::Vllm);
  vllm.tool_call_parser = "hermes";
  vllm.auto_tool_choice = true;
  EXPECT_EQ(read(vllm, chat({{"tools", tools}}))->tool_name, "first");
  const json named{{"type", "function"}, {"function", {{"name", "second"}}}};
  EXPECT_EQ(read(vllm, chat({{"tools", tools}, {"tool_choice", named}}))->tool_name, "second");
  EXPECT_FALSE(read(vllm, chat({{"tools", tools}, {"tool_choice", "none"}}))->limits.tool_call);
  json answered = chat({{"tools", tools}});
  answered["messages"].push_back({{"role", "tool"}, {"content", "42"}});
  EXPECT_FALSE(read(vllm, answered)->limits.tool_call);
}

TEST(Dialect, VllmReadsPullParametersWhole) {
  const auto request =
      read(worker(Engine::Vllm, Role::Decode), chat({{"kv_transfer_params", pull_params()}}));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->phase, Phase::Decode);
  ASSERT_EQ(request->sources.size(), 1U);
  EXPECT_EQ(request->sources[0].host, "h");
  EXPECT_EQ(request->sources[0].port, 5600);
  EXPECT_EQ(request->sources[0].engine_id, "e");
  EXPECT_EQ(request->sources[0].key, "r");
  EXPECT_EQ(request->sources[0].blocks, (std::vector<std::uint32_t>{3, 1}));
}

TEST(Dialect, VllmIgnoresParametersWithoutRemoteRequestId) {
  json params = pull_params();
  params.erase("remote_request_id");
  const auto request =
      read(worker(Engine::Vllm, Role::Decode), chat({{"kv_transfer_params", params}}));
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->recompute);
  EXPECT_TRUE(request->sources.empty());
}

TEST(Dialect, ARefusedDecodeRequestStillNamesItsSource) {
  GenerationRequest request;
  const json body = chat({{"model", "other"}, {"kv_transfer_params", pull_params()}});
  EXPECT_FALSE(read_request(worker(Engine::Vllm, Role::Decode), Api::Chat, received(body), request,
                            {}, kText));
  EXPECT_EQ(request.sources.size(), 1U);
}

TEST(Dialect, SglangWorkersOfAPairNeedARoom) {
  const json paired{{"bootstrap_host", "h"}, {"bootstrap_port", 8998}, {"bootstrap_room", 12}};
  for (const Role role : {Role::Prefill, Role::Decode}) {
    // The scheduler's word, which a stream hears after its 200.
    EXPECT_TRUE(read(worker(Engine::Sglang, role), chat())->late_refusal.starts_with("Invalid"));
    EXPECT_EQ(status(worker(Engine::Sglang, role), chat({{"bootstrap_room", -1}})), 400);
    EXPECT_EQ(status(worker(Engine::Sglang, role), chat(paired)), 200);
  }
  EXPECT_EQ(status(worker(Engine::Sglang), chat()), 200);
}

TEST(Dialect, SglangTakesTheLargestRoomAndNoLargerOne) {
  json fields{{"bootstrap_room", 9223372036854775807}};
  EXPECT_EQ(status(worker(Engine::Sglang, Role::Prefill), chat(fields)), 200);
  fields["bootstrap_room"] = 9223372036854775808U;
  EXPECT_EQ(status(worker(Engine::Sglang, Role::Prefill), chat(fields)), 400);
}

TEST(Dialect, SglangsRankFollowsTheRoom) {
  Options prefill = worker(Engine::Sglang, Role::Prefill);
  prefill.dp_size = 4;
  EXPECT_EQ(status(prefill, chat({{"bootstrap_room", 6}, {"routed_dp_rank", 2}})), 200);
  EXPECT_EQ(status(prefill, chat({{"bootstrap_room", 6}, {"routed_dp_rank", 1}})), 400);
  EXPECT_EQ(status(prefill, chat({{"bootstrap_room", 6}, {"routed_dp_rank", 4}})), 400);
}

TEST(Dialect, SglangExpandsAScalarRoomOverPromptsAndTheirChoices) {
  json body{{"model", "demo"}, {"prompt", {"a", "b"}},  {"bootstrap_room", 5},
            {"n", 2},          {"bootstrap_host", "h"}, {"bootstrap_port", 8998}};
  Options prefill = worker(Engine::Sglang, Role::Prefill);
  prefill.dp_size = 2;
  const auto left = read(prefill, body, Api::Completions);
  const auto right = read(worker(Engine::Sglang, Role::Decode), body, Api::Completions);
  ASSERT_TRUE(left && right);
  ASSERT_EQ(left->meetings.size(), 4U);
  ASSERT_EQ(right->sources.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(left->meetings[i].key, right->sources[i].key);
    EXPECT_EQ(left->meetings[i].rank, (5 + i) % 2);
  }
  body["bootstrap_room"] = {5, 6};
  EXPECT_EQ(status(prefill, body, Api::Completions), 400);
  body["bootstrap_room"] = {5, 6, 9, 7};
  EXPECT_EQ(status(prefill, body, Api::Completions), 200);
}

TEST(Dialect, SglangTakesTheRankOfTheHeaderBeforeThoseOfTheBody) {
  Options options = worker(Engine::Sglang);
  options.dp_size = 4;
  const auto rank = [&options](const json& fields, std::string_view header) {
    GenerationRequest request;
    EXPECT_TRUE(
        read_request(options, Api::Chat, received(chat(fields)), request, {.rank = header}, kText));
    return request.rank;
  };
  const json both{{"routed_dp_rank", 1}, {"data_parallel_rank", 2}};
  EXPECT_EQ(rank(both, "3"), 3U);
  EXPECT_EQ(rank(both, ""), 1U);
  EXPECT_EQ(rank({{"data_parallel_rank", 2}}, ""), 2U);
  EXPECT_EQ(rank(json::object(), ""), std::nullopt);
  EXPECT_EQ(status(options, chat({{"routed_dp_rank", -1}})), 400);
  EXPECT_EQ(status(options, chat({{"data_parallel_rank", "x"}})), 400);
}

TEST(Dialect, SamplingFieldsOfAWrongTypeAreRefused) {
  for (const json& fields : std::vector<json>{{{"temperature", "hot"}},
                                              {{"top_p", json::object()}},
                                              {{"presence_penalty", json::array()}},
                                              {{"frequency_penalty", "x"}},
                                              {{"seed", 1.5}}}) {
    EXPECT_EQ(status(worker(Engine::Vllm), chat(fields)), 400) << fields;
    EXPECT_EQ(status(worker(Engine::Trtllm), chat(fields)), 400) << fields;
    EXPECT_EQ(status(worker(Engine::Sglang), chat(fields)), 400) << fields;
  }
  const json right{{"temperature", 0},
                   {"top_p", 0.9},
                   {"presence_penalty", nullptr},
                   {"frequency_penalty", -1},
                   {"seed", -7}};
  EXPECT_EQ(status(worker(Engine::Vllm), chat(right)), 200);
  EXPECT_EQ(status(worker(Engine::Trtllm), chat(right)), 200);
}

TEST(Dialect, SglangRefusesSamplingThatCannotBe) {
  const Options options = worker(Engine::Sglang);
  for (const json& fields : std::vector<json>{{{"temperature", -3}},
                                              {{"top_p", 0}},
                                              {{"top_p", 1.5}},
                                              {{"min_p", -0.1}},
                                              {{"presence_penalty", 3}},
                                              {{"repetition_penalty", 0}}}) {
    EXPECT_EQ(status(options, chat(fields)), 400) << fields;
  }
  EXPECT_EQ(status(options, chat({{"temperature", 0}, {"top_p", 1}, {"min_p", 0}})), 200);
}

TEST(Dialect, SglangSaysWhatIsWrongInItsOwnWords) {
  const auto message = [](const Options& options, Api api, const json& body) {
    GenerationRequest request;
    request.id = "rid";
    const std::string raw = body.dump();
    const auto read = read_request(options, api, body, request, {}, {kWords, raw});
    return read ? std::string() : read.error().message();
  };
  Options options = worker(Engine::Sglang);
  options.max_model_len = 20;
  EXPECT_EQ(message(options, Api::Completions, {{"prompt", ""}}), "Prompt cannot be empty");
  EXPECT_EQ(message(options, Api::Chat, {{"messages", json::array()}}),
            "Messages cannot be empty.");
  json negative = chat(json::object());
  negative["max_tokens"] = -1;
  EXPECT_EQ(message(options, Api::Chat, negative), "max_new_tokens must be at least 0, got -1.");
  EXPECT_EQ(message(options, Api::Completions, {{"prompt", std::vector<unsigned>(30, 1)}}),
            "The input (30 tokens) is longer than the model's context length (20 tokens).");
  EXPECT_EQ(message(options, Api::Completions, {{"prompt", "a"}, {"temperature", -3}}),
            "temperature must be a non-negative finite number, got -3.0.");
}

// The schema allows null: the worker's own configuration has a port then.
TEST(Dialect, SglangNeedsNoBootstrapPort) {
  const Options options = worker(Engine::Sglang, Role::Decode);
  const json meeting{{"bootstrap_room", 1}, {"bootstrap_host", "h"}};
  EXPECT_EQ(status(options, chat(meeting)), 200);
  json with_null = meeting;
  with_null["bootstrap_port"] = nullptr;
  EXPECT_EQ(status(options, chat(with_null)), 200);
  with_null["bootstrap_port"] = 0;
  EXPECT_EQ(status(options, chat(with_null)), 400);
}

TEST(Dialect, VllmAndSglangInsistOnTheContentType) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang}) {
    for (const char* type : {"application/json", "Application/JSON; charset=utf-8"})
      EXPECT_TRUE(check_content_type(engine, type)) << type;
    for (const char* type : {"", "text/plain", "application/json ; charset=utf-8"}) {
      const auto refused = check_content_type(engine, type);
      ASSERT_FALSE(refused) << type;
      EXPECT_EQ(refused.error().http_status(), 400);
      EXPECT_NE(error_body(engine, refused.error()).find(R"("type":"Bad Request")"),
                std::string::npos);
    }
  }
  EXPECT_TRUE(check_content_type(Engine::Trtllm, "text/plain"));
}

TEST(Dialect, TensorRtLlmChecksDisaggRequestIdsAndTypes) {
  const Options context = worker(Engine::Trtllm, Role::Prefill);
  const auto with = [](json params) { return chat({{"disaggregated_params", params}}); };
  const std::int64_t least = std::int64_t{1} << 40;
  EXPECT_EQ(status(context, with({{"request_type", "context_only"}, {"disagg_request_id", least}})),
            200);
  EXPECT_EQ(
      status(context, with({{"request_type", "context_only"}, {"disagg_request_id", least - 1}})),
      400);
  EXPECT_EQ(status(context, with({{"request_type", "other"}})), 400);
  EXPECT_EQ(status(worker(Engine::Trtllm), with({{"request_type", "context_only"}})), 400);
}

TEST(Dialect, TensorRtLlmGenerationNeedsThePromptAsTokenIds) {
  const HandoffSource source{
      .host = "h", .port = 1234, .engine_id = "e", .key = "ctx-7", .blocks = {1, 2}};
  const json params{{"request_type", "generation_only"},
                    {"first_gen_tokens", {11}},
                    {"ctx_request_id", 7},
                    {"encoded_opaque_state", encode_opaque_state(source)}};
  const Options decode = worker(Engine::Trtllm, Role::Decode);
  EXPECT_EQ(status(decode, chat({{"disaggregated_params", params}})), 400);
  const auto request =
      read(decode, chat({{"disaggregated_params", params}, {"prompt_token_ids", {1, 2, 3}}}));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->first_token, 11U);
  EXPECT_EQ(request->prompts[0], (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(request->sources[0].key, "ctx-7");
  json swapped = params;
  swapped["ctx_request_id"] = 8;
  EXPECT_EQ(status(decode, chat({{"disaggregated_params", swapped}, {"prompt_token_ids", {1}}})),
            400);
}

TEST(Dialect, SeedsAreNumbersOfAnySign) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    EXPECT_EQ(read(worker(engine), chat())->seed, std::nullopt);
    EXPECT_EQ(read(worker(engine), chat({{"seed", 7}}))->seed, 7U);
    EXPECT_EQ(read(worker(engine), chat({{"seed", -1}}))->seed, ~std::uint64_t{0});
  }
}

TEST(Dialect, TokenIdsOfAChatStandForMessagesThatMustBeThere) {
  const std::vector<std::pair<Engine, json>> ids{
      {Engine::Vllm, {{"kv_transfer_params", {{"prompt_token_ids", {60001, 7}}}}}},
      {Engine::Sglang, {{"input_ids", {60001, 7}}}},
      {Engine::Trtllm, {{"prompt_token_ids", {60001, 7}}}}};
  for (const auto& [engine, fields] : ids) {
    const auto request = read(worker(engine), chat(fields));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->prompts, (std::vector<std::vector<TokenId>>{{60001, 7}}));
    json body = chat(fields);
    // Never rendered; vLLM and SGLang look at its fields all the same.
    body["messages"] = {{{"content", "without a role"}}};
    EXPECT_EQ(status(worker(engine), body), engine == Engine::Trtllm ? 200 : 400);
    body["messages"] = json::array();
    EXPECT_EQ(status(worker(engine), body), 400);
    body.erase("messages");
    EXPECT_EQ(status(worker(engine), body), 400);
  }
}

Options with_mode(model::HandoffMode mode, Role role) {
  Options options = worker(model::engine_of(mode), role);
  options.handoff = mode;
  return options;
}

TEST(Dialect, PushLegsMeetUnderTheRequestsId) {
  const Options decode = with_mode(model::HandoffMode::NixlPush, Role::Decode);
  const auto key = [&](const char* told) -> std::string {
    json params = pull_params();
    params.update({{"remote_request_id", told}, {"tp_size", 2}});
    params.erase("remote_block_ids");
    GenerationRequest request;
    const json body = received(chat({{"kv_transfer_params", params}}));
    if (!read_request(decode, Api::Chat, body, request, {.request_id = "r-1"}, kText))
      return "refused";
    EXPECT_EQ(request.sources[0].sizes, (ParallelSizes{2, 1}));
    EXPECT_TRUE(request.sources[0].wait_for_prefill);
    return request.sources[0].key;
  };
  GenerationRequest prefill;
  const json body = received(chat({{"kv_transfer_params", {{"do_remote_decode", true}}}}));
  ASSERT_TRUE(read_request(with_mode(model::HandoffMode::NixlPush, Role::Prefill), Api::Chat, body,
                           prefill, {.request_id = "r-1"}, kText));
  EXPECT_EQ(key("r-1"), prefill.meetings.at(0).key);
  EXPECT_EQ(key("chatcmpl-r-1"), prefill.meetings[0].key);
  EXPECT_EQ(key("chatcmpl-r-1-0-0000abcd"), prefill.meetings[0].key);
  EXPECT_EQ(key("r-2"), "refused");
  EXPECT_EQ(key("chatcmpl-r-12"), "refused");
}

TEST(Dialect, TogetherModesIgnoreIncompleteParametersAsVllmDoes) {
  for (const auto mode : {model::HandoffMode::NixlPush, model::HandoffMode::Mooncake}) {
    const json params{{"do_remote_prefill", true}, {"remote_engine_id", "e"}};
    const auto request =
        read(with_mode(mode, Role::Decode), chat({{"kv_transfer_params", params}}));
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->recompute);
    EXPECT_EQ(request->phase, Phase::Aggregated);
  }
}

TEST(Dialect, MooncakeLegsCarryOneSequenceUnderATransferId) {
  const Options prefill = with_mode(model::HandoffMode::Mooncake, Role::Prefill);
  const auto leg = [](json fields) {
    json params{{"do_remote_decode", true}};
    params.update(fields);
    return chat({{"kv_transfer_params", params}});
  };
  EXPECT_EQ(status(prefill, leg(json::object())), 400);
  EXPECT_EQ(read(prefill, leg({{"transfer_id", "t"}}))->meetings.at(0).key, "t");
  json twice = leg({{"transfer_id", "t"}});
  twice["n"] = 2;
  EXPECT_EQ(status(prefill, twice), 400);

  const Options decode = with_mode(model::HandoffMode::Mooncake, Role::Decode);
  json params{{"do_remote_prefill", true},
              {"remote_engine_id", "e"},
              {"transfer_id", "t"},
              {"remote_bootstrap_addr", "http://h:8998"}};
  const auto request = read(decode, chat({{"kv_transfer_params", params}}));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->sources.at(0).host, "h");
  EXPECT_EQ(request->sources[0].key, "t");
  params["remote_bootstrap_addr"] = "h:8998";
  EXPECT_EQ(status(decode, chat({{"kv_transfer_params", params}})), 400);
}

TEST(Dialect, ATensorRtLlmServerKnowsOneScheduleStyle) {
  const std::int64_t id = std::int64_t{1} << 41;
  const auto context = [&](json fields) {
    json params{{"request_type", "context_only"}};
    params.update(fields);
    return chat({{"disaggregated_params", params}});
  };
  const Options first = worker(Engine::Trtllm, Role::Prefill);
  EXPECT_EQ(status(first, context({{"schedule_style", 0}})), 200);
  EXPECT_EQ(status(first, context({{"schedule_style", 1}, {"disagg_request_id", id}})), 400);
  const Options beside = with_mode(model::HandoffMode::GenerationFirst, Role::Prefill);
  EXPECT_EQ(status(beside, context({{"disagg_request_id", id}})), 400);
  EXPECT_EQ(status(beside, context({{"schedule_style", 1}})), 400);
  EXPECT_EQ(status(beside, context({{"schedule_style", 1}, {"disagg_request_id", id}})), 200);

  const Options decode = with_mode(model::HandoffMode::GenerationFirst, Role::Decode);
  json params{{"request_type", "generation_only"},
              {"schedule_style", 1},
              {"disagg_request_id", id},
              {"ctx_request_id", id},
              {"ctx_info_endpoint", "tcp://h:9"}};
  EXPECT_EQ(status(decode, chat({{"disaggregated_params", params}})), 200);
  for (const json& wrong : std::vector<json>{{{"ctx_request_id", id + 1}},
                                             {{"ctx_info_endpoint", {"tcp://h:9"}}},
                                             {{"ctx_info_endpoint", nullptr}},
                                             {{"schedule_style", 0}}}) {
    json changed = params;
    changed.update(wrong);
    EXPECT_EQ(status(decode, chat({{"disaggregated_params", changed}})), 400) << wrong;
  }
}

TEST(Dialect, PhaseComesFromTheHandOffFields) {
  EXPECT_EQ(phase_of(Engine::Vllm, Role::Prefill,
                     chat({{"kv_transfer_params", {{"do_remote_decode", true}}}})),
            Phase::Prefill);
  EXPECT_EQ(phase_of(Engine::Vllm, Role::Decode, chat({{"kv_transfer_params", pull_params()}})),
            Phase::Decode);
  EXPECT_EQ(phase_of(Engine::Sglang, Role::Decode, chat({{"bootstrap_room", 1}})), Phase::Decode);
  EXPECT_EQ(phase_of(Engine::Trtllm, Role::Prefill, chat()), Phase::Aggregated);
}

TEST(Dialect, ErrorsHaveEachEnginesShape) {
  const Error error(Errc::InvalidRequest, "no");
  const json inner{
      {"message", "no"}, {"type", "BadRequestError"}, {"param", nullptr}, {"code", 400}};
  json top = inner;
  top["object"] = "error";
  EXPECT_EQ(json::parse(error_body(Engine::Vllm, error)), (json{{"error", inner}}));
  EXPECT_EQ(json::parse(error_body(Engine::Sglang, error)), top);
  EXPECT_EQ(json::parse(error_body(Engine::Trtllm, error)), top);
  top["type"] = "BAD_REQUEST";
  EXPECT_EQ(json::parse(error_body(Engine::Sglang, error, true)), (json{{"error", top}}));
}

}  // namespace
}  // namespace baton::sim
