// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/vllm_prompt.h"

#include "tools/sim/answer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

std::string refusal(const Result<void>& result) { return result ? "" : result.error().message(); }

TEST(VllmPrompt, MediaAreForMultimodalModels) {
  const json part{{"type", "image_url"}, {"image_url", {{"url", "data:"}}}};
  const json body{{"messages", {{{"role", "user"}, {"content", json::array({part})}}}}};
  Options options;
  EXPECT_EQ(refusal(check_vllm_input(options, body, Api::Chat)), "demo is not a multimodal model");
  options.multimodal = true;
  EXPECT_TRUE(check_vllm_input(options, body, Api::Chat));
}

TEST(VllmPrompt, NothingCannotBeAnswered) {
  const Options options;
  EXPECT_FALSE(check_vllm_input(options, {{"messages", json::array()}}, Api::Chat));
  EXPECT_FALSE(check_vllm_input(options, {{"prompt", json::array()}}, Api::Completions));
  EXPECT_FALSE(check_vllm_input(options, {{"prompt", {""}}}, Api::Completions));
  EXPECT_TRUE(check_vllm_input(options, {{"prompt", {"a", "b"}}}, Api::Completions));
}

// The room that a prompt leaves may be less than what is asked for; it must leave some.
TEST(VllmPrompt, APromptMustLeaveRoom) {
  Options options;
  options.max_model_len = 4;
  GenerationRequest request;
  request.api = Api::Completions;
  request.max_tokens = 4;
  request.prompts = {{1, 2, 3}};
  EXPECT_TRUE(check_vllm_lengths(options, {{"prompt", {1, 2, 3}}}, request));
  request.prompts = {{1, 2, 3, 4, 5}};
  const auto refused = check_vllm_lengths(options, {{"prompt", {1, 2, 3, 4, 5}}}, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param(), "input_tokens");
  request.prompts = {{kVocabularySize}};
  EXPECT_EQ(refusal(check_vllm_lengths(options, {{"prompt", {kVocabularySize}}}, request)),
            "Token id 262144 is out of vocabulary");
}

TEST(VllmPrompt, TextsAreThoseOfThePromptOrTheIds) {
  const WordTokens words;
  GenerationRequest request;
  request.api = Api::Completions;
  request.echo = true;
  request.prompts = {{1, 2, 3}, {7, 60000}};
  add_vllm_texts({{"prompt", {"a b", "c"}}}, words, request);
  EXPECT_EQ(request.pieces[0], (std::vector<std::string>{"a", " ", "b"}));
  request.pieces.clear();
  add_vllm_texts({{"prompt", {{1, 2, 3}, {7, 60000}}}}, words, request);
  EXPECT_EQ(request.pieces[1], (std::vector<std::string>{"<7>", " kan"}));
}

}  // namespace
}  // namespace baton::sim
