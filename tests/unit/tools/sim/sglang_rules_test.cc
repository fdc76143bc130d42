// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_body.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

std::string chat_rule(const json& fields, std::uint32_t context = 100) {
  json body{{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(fields);
  Options options;
  options.engine = model::Engine::Sglang;
  options.max_model_len = context;
  const auto checked = check_sglang_rules(options, Api::Chat, body);
  return checked ? "" : checked.error().message();
}

std::string sampling_rule(const json& body) {
  const auto checked = check_sglang_sampling(body);
  return checked ? "" : checked.error().message();
}

TEST(SglangRules, OfAChat) {
  EXPECT_EQ(chat_rule(json::object()), "");
  EXPECT_EQ(chat_rule({{"messages", json::array()}}), "Messages cannot be empty.");
  EXPECT_EQ(chat_rule({{"max_tokens", 101}}),
            "max_completion_tokens is too large: 101.This model supports at most 100 completion "
            "tokens.");
  EXPECT_EQ(chat_rule({{"tool_choice", "required"}}),
            "Tools cannot be empty if tool choice is set to required.");
  EXPECT_EQ(chat_rule({{"n", 0}}), "range() arg 3 must not be zero");
  EXPECT_NE(chat_rule({{"stream", true}, {"return_token_ids", true}}), "");
  EXPECT_EQ(chat_rule({{"return_token_ids", true}}), "");
}

TEST(SglangRules, OfSampling) {
  EXPECT_EQ(sampling_rule({{"temperature", 3.5}, {"top_k", -1}, {"max_tokens", 0}}), "");
  EXPECT_EQ(sampling_rule({{"temperature", -1}}),
            "temperature must be a non-negative finite number, got -1.0.");
  EXPECT_EQ(sampling_rule({{"top_k", 0}}), "top_k must be -1 (disable) or at least 1, got 0.");
  EXPECT_EQ(sampling_rule({{"top_k", 0}, {"temperature", 0}}), "") << "the likeliest anyway";
  EXPECT_EQ(sampling_rule({{"min_tokens", 9}, {"max_tokens", 4}}),
            "min_new_tokens must be in [0, max_new_tokens(4)], got 9.");
  EXPECT_EQ(sampling_rule({{"max_tokens", -1}}), "max_new_tokens must be at least 0, got -1.");
  EXPECT_EQ(sampling_rule({{"logit_bias", {{"x", 1}}}}),
            "invalid literal for int() with base 10: 'x'");
  EXPECT_NE(sampling_rule({{"logit_bias", {{"262144", 1}}}}), "");
  EXPECT_NE(sampling_rule({{"regex", "a"}, {"ebnf", "b"}}), "");
}

TEST(SglangRules, OfGenerateAreAnsweredInItsOwnShape) {
  EXPECT_EQ(generate_refusal(R"({"text":"a"})"), std::nullopt);
  EXPECT_EQ(json::parse(generate_refusal("{}").value())["error"]["message"],
            "Either text, input_ids or input_embeds should be provided.");
  const auto refused =
      generate_refusal(R"({"input_ids":[0],"sampling_params":{"logit_bias":{"-1":0}}})");
  EXPECT_EQ(json::parse(refused.value())["error"]["message"],
            "logit_bias must has keys in [0, 262143], got -1.");
}

}  // namespace
}  // namespace baton::sim
