// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/chat_request.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

Result<ChatRequest> read(std::string_view members, const Rules& rules = {}) {
  static std::deque<std::string> bodies;  // requests point to them
  const std::string& body = bodies.emplace_back(std::string(R"({"model":"m","messages":[0])") +
                                                std::string(members) + "}");
  return chat_request(wire::JsonObject::parse(body).value(), rules);
}
std::string kwargs_of(std::string_view members) {
  return shown(jinja::Value(read(members).value().kwargs));
}

TEST(ChatRequest, HasTheEnginesDefaults) {
  const ChatRequest request = read("").value();
  EXPECT_TRUE(request.tools.is_none());
  EXPECT_TRUE(request.documents.is_none());
  EXPECT_TRUE(request.kwargs.empty());
  EXPECT_TRUE(request.add_generation_prompt);
  EXPECT_FALSE(request.continue_final_message);
  EXPECT_EQ(request.add_special, tokenizer::AddSpecial::No);
  EXPECT_FALSE(request.brings_template);
  EXPECT_EQ(request.inexact, "");
}

TEST(ChatRequest, ReadsItsFlags) {
  const ChatRequest request =
      read(
          R"(,"continue_final_message":true,"add_generation_prompt":false,"add_special_tokens":true)")
          .value();
  EXPECT_TRUE(request.continue_final_message);
  EXPECT_FALSE(request.add_generation_prompt);
  EXPECT_EQ(request.add_special, tokenizer::AddSpecial::Yes);
}

TEST(ChatRequest, ContinuesWithoutAGenerationPromptUnlessItIsAskedForBoth) {
  EXPECT_FALSE(read(R"(,"continue_final_message":true)").value().add_generation_prompt);
  const auto both = read(R"(,"continue_final_message":true,"add_generation_prompt":true)");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code(), Errc::InvalidRequest);
}

TEST(ChatRequest, PassesVariablesOnExceptThoseThatAreUnset) {
  EXPECT_EQ(
      kwargs_of(R"(,"chat_template_kwargs":{"enable_thinking":false,"a":null,"b":"auto","c":[1]})"),
      R"({"enable_thinking":false,"c":[1]})");
  EXPECT_EQ(kwargs_of(R"(,"chat_template_kwargs":null)"), "{}");
}

TEST(ChatRequest, KeepsArgumentsOfTheRendererFromTheTemplate) {
  EXPECT_EQ(kwargs_of(R"(,"chat_template_kwargs":{"add_generation_prompt":false,"tokenize":true,
                          "continue_final_message":true,"max_length":5,"x":1})"),
            R"({"x":1})");
  EXPECT_TRUE(read(R"(,"chat_template_kwargs":{"add_generation_prompt":false})")
                  .value()
                  .add_generation_prompt);
}

TEST(ChatRequest, LetsReasoningEffortSwitchThinking) {
  EXPECT_EQ(kwargs_of(R"(,"reasoning_effort":"low")"),
            R"({"reasoning_effort":"low","enable_thinking":true})");
  EXPECT_EQ(kwargs_of(R"(,"reasoning_effort":"none")"),
            R"({"reasoning_effort":"none","enable_thinking":false})");
  EXPECT_EQ(kwargs_of(R"(,"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":false,
                          "reasoning_effort":"low"})"),
            R"({"enable_thinking":false,"reasoning_effort":"high"})");
  EXPECT_EQ(kwargs_of(R"(,"reasoning_effort":null)"), "{}");
}

TEST(ChatRequest, TakesDocumentsFromEitherPlace) {
  EXPECT_EQ(shown(read(R"(,"documents":[{"title":"t"}])").value().documents), R"([{"title":"t"}])");
  EXPECT_EQ(shown(read(R"(,"chat_template_kwargs":{"documents":[{"a":"b"}]})").value().documents),
            R"([{"a":"b"}])");
  EXPECT_EQ(shown(read(R"(,"documents":[],"chat_template_kwargs":{"documents":[{"a":"b"}]})")
                      .value()
                      .documents),
            "[]");
}

TEST(ChatRequest, ShapesItsToolsWhateverTheToolChoice) {
  EXPECT_EQ(
      shown(read(R"(,"tools":[{"function":{"name":"f"}}],"tool_choice":"none")").value().tools),
      R"([{"type":"function","function":{"name":"f","description":null,"parameters":null}}])");
  EXPECT_TRUE(read(R"(,"tools":null)").value().tools.is_none());
}

TEST(ChatRequest, IsInexactWhereEnginesDisagreeOrDoMore) {
  EXPECT_NE(read(R"(,"tools":[])").value().inexact, "");
  EXPECT_TRUE(read(R"(,"tools":[])").value().tools.is_none());
  EXPECT_EQ(read(R"(,"truncate_prompt_tokens":10)").value().inexact,
            "truncate_prompt_tokens is set");
  EXPECT_EQ(read(R"(,"truncate_prompt_tokens":null)").value().inexact, "");
  EXPECT_TRUE(read(R"(,"chat_template":"{{ 1 }}")").value().brings_template);
  EXPECT_NE(read(R"(,"chat_template":"{{ 1 }}")").value().inexact, "");
  EXPECT_TRUE(read(R"(,"chat_template_kwargs":{"chat_template":"x"})").value().brings_template);
}

TEST(ChatRequest, IsInexactWithTokenIdsOfItsOwn) {
  for (const char* const members : {R"(,"input_ids":[1])", R"(,"prompt_token_ids":[1])",
                                    R"(,"kv_transfer_params":{"prompt_token_ids":[1]})"}) {
    EXPECT_EQ(read(members).value().inexact, "the request brings its own token ids") << members;
  }
  EXPECT_EQ(read(R"(,"input_ids":null,"kv_transfer_params":{"x":1})").value().inexact, "");
}

TEST(ChatRequest, RefusesWrongShapesByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(,"tools":{})", "tools"},
      {R"(,"documents":["a"])", "documents"},
      {R"(,"documents":{})", "documents"},
      {R"(,"chat_template_kwargs":[])", "chat_template_kwargs"},
      {R"(,"chat_template_kwargs":{"messages":[]})", "chat_template_kwargs.messages"},
      {R"(,"chat_template_kwargs":{"documents":1})", "chat_template_kwargs.documents"},
      {R"(,"add_generation_prompt":"yes")", "add_generation_prompt"},
      {R"(,"add_special_tokens":1)", "add_special_tokens"},
      {R"(,"messages":null)", "messages"},
  };
  for (const auto& [members, place] : cases) {
    const auto request = read(members);
    ASSERT_FALSE(request) << members;
    EXPECT_EQ(request.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(request.error().param(), place) << members;
  }
}

TEST(TemplateVariables, AreTheModelsOwnUnlessTheRequestChangesThem) {
  jinja::Dict base;
  base.set(std::string_view("bos_token"), jinja::Value("<s>"));
  base.set(std::string_view("eos_token"), jinja::Value("</s>"));
  const ChatRequest request = read(R"(,"chat_template_kwargs":{"eos_token":"!","x":1})").value();
  EXPECT_EQ(shown(jinja::Value(template_variables(base, request, {}))),
            R"({"bos_token":"<s>","eos_token":"!","x":1,"messages":[],"tools":null,)"
            R"("documents":null,"add_generation_prompt":true})");
}

TEST(ChatRequest, WithoutMessagesIsRefused) {
  const auto request = chat_request(wire::JsonObject::parse(R"({"messages":[]})").value(), {});
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().param(), "messages");
}

TEST(ChatRequest, ShowsUnsetVariablesOnlyWhereTheEngineDoes) {
  constexpr std::string_view kUnset =
      R"(,"chat_template_kwargs":{"a":null,"b":"auto","tools":null})";
  EXPECT_TRUE(read(kUnset).value().kwargs.empty());
  const ChatRequest kept = read(kUnset, {.keeps_unset_variables = true}).value();
  EXPECT_EQ(shown(jinja::Value(kept.kwargs)), R"({"a":null,"b":"auto"})");
}

}  // namespace
}  // namespace baton::prompt
