// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/vllm_body.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

json chat(const json& fields = json::object()) {
  json body{{"model", "demo"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(fields);
  return json::parse(body.dump());
}

json completion(const json& fields = json::object()) {
  json body{{"model", "demo"}, {"prompt", "hi"}};
  body.update(fields);
  return json::parse(body.dump());
}

// What is wrong with it, as PARAM: MESSAGE; empty where nothing is.
std::string told(const Error& error) {
  return error.param().value_or("-") + ": " + error.message();
}
std::string wrong(Api api, const json& body) {
  const auto typed = validate_vllm_body(api, body);
  if (!typed) return told(typed.error());
  const auto sampling = check_vllm_sampling(Options(), api, *typed ? **typed : body);
  return sampling ? "" : told(sampling.error());
}

TEST(VllmBody, TakesWhatItsModelTakes) {
  for (const json& fields : std::vector<json>{json::object(),
                                              {{"temperature", "0.5"}, {"max_tokens", "2"}},
                                              {{"stream", 1}},
                                              {{"n", nullptr}},
                                              {{"n", 2}},
                                              {{"logprobs", true}, {"top_logprobs", 20}},
                                              {{"stop", {"a", "b"}}},
                                              {{"response_format", {{"type", "text"}}}},
                                              {{"max_tokens", 131072}}}) {
    EXPECT_EQ(wrong(Api::Chat, chat(fields)), "") << fields;
  }
  const auto typed = validate_vllm_body(Api::Chat, chat({{"max_tokens", "2"}}));
  ASSERT_TRUE(typed && *typed);
  EXPECT_EQ((**typed)["max_tokens"], 2);
  EXPECT_EQ(wrong(Api::Completions, completion({{"echo", true}, {"max_tokens", 0}})), "");
}

TEST(VllmBody, RefusesSamplingOutOfRange) {
  EXPECT_EQ(wrong(Api::Chat, chat({{"temperature", -1}})),
            "temperature: temperature must be non-negative, got -1.0. (parameter=temperature, "
            "value=-1.0)");
  EXPECT_EQ(wrong(Api::Chat, chat({{"n", 2}, {"temperature", 0}})),
            "-: n must be 1 when using greedy sampling, got 2.");
  EXPECT_EQ(wrong(Api::Chat, chat({{"logprobs", true}, {"top_logprobs", 21}})),
            "logprobs: Requested sample logprobs of 21, which is greater than max allowed: 20 "
            "(parameter=logprobs, value=21)");
  EXPECT_EQ(wrong(Api::Completions, completion({{"suffix", "x"}})),
            "suffix: suffix is only supported for models with FIM completion rendering");
  for (const json& fields : std::vector<json>{{{"top_p", 0}},
                                              {{"top_k", -2}},
                                              {{"min_p", 2}},
                                              {{"presence_penalty", 3}},
                                              {{"repetition_penalty", 0}},
                                              {{"max_tokens", 0}},
                                              {{"max_tokens", 131073}},
                                              {{"min_tokens", 9}, {"max_tokens", 4}},
                                              {{"stop", ""}},
                                              {{"logit_bias", {{"262144", 1}}}},
                                              {{"stream_interval", 0}}}) {
    EXPECT_NE(wrong(Api::Chat, chat(fields)), "") << fields;
  }
}

TEST(VllmBody, RefusesFieldsThatContradictEachOther) {
  EXPECT_EQ(wrong(Api::Chat, chat({{"tool_choice", "auto"}})),
            "tool_choice: When using `tool_choice`, `tools` must be set. (parameter=tool_choice)");
  EXPECT_EQ(wrong(Api::Chat, chat({{"top_logprobs", 2}})),
            "top_logprobs: when using `top_logprobs`, `logprobs` must be set to true. "
            "(parameter=top_logprobs)");
  const json bad{{"type", "json_schema"},
                 {"json_schema", {{"name", "x"}, {"schema", {{"type", "nonsense"}}}}}};
  EXPECT_EQ(wrong(Api::Chat, chat({{"response_format", bad}})),
            "-: Grammar error: Invalid type: nonsense");
  EXPECT_EQ(wrong(Api::Completions, completion({{"prompt", ""}})),
            "prompt: Either prompt or prompt_embeds must be provided and non-empty. "
            "(parameter=prompt)");
}

TEST(VllmBody, PointsAtFieldsOfAWrongType) {
  const auto param = [](const json& body) {
    const auto typed = validate_vllm_body(Api::Chat, body);
    return typed ? "right" : typed.error().param().value_or("-");
  };
  json none = chat();
  none.erase("messages");
  EXPECT_EQ(param(none), "body.messages");
  EXPECT_EQ(param(chat({{"messages", {{{"content", "x"}}}}})),
            "body.messages.0.ChatCompletionDeveloperMessageParam.role");
  EXPECT_EQ(param(chat({{"temperature", "hot"}, {"n", "two"}})), "body.n");
  EXPECT_EQ(param(chat({{"stop", 5}})), "body.stop");
  EXPECT_EQ(param(chat({{"kv_transfer_params", "x"}})), "body.kv_transfer_params");
  EXPECT_EQ(param(chat({{"tools", {{{"type", "function"}}}}, {"tool_choice", "none"}})),
            "body.tools.0.function");
}

TEST(VllmBody, ToolsNeedAParser) {
  const json body = chat({{"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}});
  Options options;
  EXPECT_FALSE(check_vllm_tool_parser(options, body));
  options.tool_call_parser = "hermes";
  EXPECT_FALSE(check_vllm_tool_parser(options, body));
  options.auto_tool_choice = true;
  EXPECT_TRUE(check_vllm_tool_parser(options, body));
  json forced = body;
  forced["tool_choice"] = "required";
  EXPECT_TRUE(check_vllm_tool_parser(options, forced));
  options.tool_call_parser.clear();
  EXPECT_FALSE(check_vllm_tool_parser(options, forced));
  forced["tool_choice"] = "none";
  EXPECT_TRUE(check_vllm_tool_parser(options, forced));
}

}  // namespace
}  // namespace baton::sim
