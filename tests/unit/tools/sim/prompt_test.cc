// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/prompt.h"

#include "tools/sim/answer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

std::vector<TokenId> ids(std::initializer_list<std::string_view> pieces) {
  std::vector<TokenId> out;
  for (const auto piece : pieces) out.push_back(token_of(piece));
  return out;
}

TEST(Prompt, ChatMessagesAreFramedByRoleAndEnd) {
  const auto tokens = chat_prompt(json::parse(
      R"({"messages":[{"role":"system","content":"be kind"},{"role":"user","content":null}]})"));
  ASSERT_TRUE(tokens);
  EXPECT_EQ(*tokens, ids({"<|system|>", "be", " ", "kind", "<|end|>", "<|user|>", "<|end|>",
                          "<|assistant|>"}));
}

TEST(Prompt, TextPartsAreJoinedAndOthersIgnored) {
  const auto tokens = chat_prompt(
      json::parse(R"({"messages":[{"role":"user","content":[{"type":"text","text":"ab"},)"
                  R"({"type":"image_url","image_url":{}},{"type":"text","text":"cd"}]}]})"));
  ASSERT_TRUE(tokens);
  EXPECT_EQ(*tokens, ids({"<|user|>", "abcd", "<|end|>", "<|assistant|>"}));
}

TEST(Prompt, ToolsComeFirstAndToolCallsCount) {
  const auto tokens = chat_prompt(json::parse(
      R"({"tools":[{"type":"function","function":{"name":"f"}}],"messages":[)"
      R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]})"));
  ASSERT_TRUE(tokens);
  EXPECT_EQ(*tokens, ids({"<|tools|>", "f", "<|end|>", "<|assistant|>", "f", "{", "}", "<|end|>",
                          "<|assistant|>"}));
}

TEST(Prompt, RefusesMessagesThatAreNone) {
  for (const char* body :
       {"{}", R"({"messages":[]})", R"({"messages":"x"})", R"({"messages":[{"content":"x"}]})",
        R"({"messages":[7]})", R"({"messages":[{"role":"user","content":7}]})"}) {
    EXPECT_FALSE(chat_prompt(json::parse(body))) << body;
  }
}

TEST(Prompt, CompletionsTakeTextTokenIdsAndLists) {
  EXPECT_EQ(completion_prompts(json("a b"))->front(), ids({"a", " ", "b"}));
  EXPECT_EQ(completion_prompts(json::parse("[1,2,3]"))->front(), (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(completion_prompts(json({"a", "b"}))->size(), 2U);
  EXPECT_EQ(completion_prompts(json::parse("[[1],[2,3]]"))->at(1), (std::vector<TokenId>{2, 3}));
}

TEST(Prompt, CompletionsRefuseWhatIsNoPrompt) {
  for (const char* prompt : {"7", "\"\"", "[]", "[1,\"a\"]", "[1,-2]", "[1.5]", "{}", "[[]]"}) {
    EXPECT_FALSE(completion_prompts(json::parse(prompt))) << prompt;
  }
}

}  // namespace
}  // namespace baton::sim
