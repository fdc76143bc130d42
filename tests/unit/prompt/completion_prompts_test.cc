// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/completion_prompts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

Result<std::vector<CompletionPrompt>> prompts_of(std::string_view json) {
  const std::string body = fmt::format(R"({{"prompt":{}}})", json);
  return completion_prompts(wire::JsonObject::parse(body).value());
}

using CompletionPromptList = std::vector<CompletionPrompt>;

TEST(CompletionPrompts, ThatAreAllIdsAreKnownWithoutATokenizer) {
  const auto given = [](const std::string& text) {
    return given_token_ids(wire::JsonObject::parse(text).value());
  };
  EXPECT_EQ(given(R"({"prompt":[1,2]})"), (std::vector<tokenizer::TokenIds>{{1, 2}}));
  EXPECT_EQ(given(R"({"prompt":[[1,2],[3]]})"), (std::vector<tokenizer::TokenIds>{{1, 2}, {3}}));
  for (const std::string_view text :
       {R"({"prompt":"text"})", R"({"prompt":["text"]})", R"({"prompt":[[1],"text"]})",
        R"({"prompt":[]})", R"({"prompt":[[1],[]]})", R"({"prompt":[-1]})", R"({})",
        R"({"prompt":[1,2],"suffix":"s"})", R"({"prompt":[1],"truncate_prompt_tokens":1})"}) {
    EXPECT_TRUE(given(std::string(text)).empty()) << text;
  }
}

TEST(CompletionPrompts, AreInexactWhereTheyAreNotAll) {
  const auto inexact = [](const std::string& members) {
    return completion_inexact(wire::JsonObject::parse("{" + members + "}").value());
  };
  EXPECT_EQ(inexact(R"("prompt":"a","suffix":null)"), "");
  EXPECT_EQ(inexact(R"("prompt":"a","suffix":"s")"), "suffix is set");
  std::string many = "\"a\"";
  for (std::size_t i = 1; i < kMostPrompts; ++i) many += ",\"a\"";
  EXPECT_EQ(inexact(fmt::format(R"("prompt":[{}])", many)), "");
  EXPECT_NE(inexact(fmt::format(R"("prompt":[{},"a"])", many)), "");
}

TEST(CompletionPrompts, AreTextIdsOrAListOfEither) {
  EXPECT_EQ(prompts_of(R"("a\nb é")").value(), CompletionPromptList{std::string("a\nb é")});
  EXPECT_EQ(prompts_of("\"\"").value(), CompletionPromptList{std::string()});
  EXPECT_EQ(prompts_of(" [1, 2 ,3]").value(), CompletionPromptList({tokenizer::TokenIds{1, 2, 3}}));
  EXPECT_EQ(prompts_of(R"(["a","b"])").value(),
            CompletionPromptList({std::string("a"), std::string("b")}));
  EXPECT_EQ(prompts_of(R"([[1],[ ],[2,4294967295]])").value(),
            CompletionPromptList({tokenizer::TokenIds{1}, tokenizer::TokenIds{},
                                  tokenizer::TokenIds{2, 4294967295}}));
}

TEST(CompletionPrompts, AreNoneWhereThereIsNoPrompt) {
  EXPECT_TRUE(prompts_of("null").value().empty());
  EXPECT_TRUE(completion_prompts(wire::JsonObject::parse("{}").value()).value().empty());
}

TEST(CompletionPrompts, OfAnotherShapeAreRefusedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "prompt"},
      {"{}", "prompt"},
      {"true", "prompt"},
      {"[]", "prompt"},
      {"[1,-1]", "prompt[1]"},
      {"[1.5]", "prompt[0]"},
      {"[true]", "prompt[0]"},
      {"[1,\"a\"]", "prompt[1]"},
      {"[\"a\",1]", "prompt[1]"},
      {"[[1,null]]", "prompt[0][1]"},
      {"[4294967296]", "prompt[0]"},
      {"[1e3]", "prompt[0]"},
  };
  for (const auto& [json, place] : cases) {
    const auto prompts = prompts_of(json);
    ASSERT_FALSE(prompts) << json;
    EXPECT_EQ(prompts.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(prompts.error().param(), place) << json;
  }
}

TEST(CompletionPrompts, AreBounded) {
  std::string list = "[";
  for (std::size_t i = 0; i < kMostPrompts; ++i) list += i == 0 ? "\"\"" : ",\"\"";
  EXPECT_EQ(prompts_of(list + "]").value().size(), kMostPrompts);
  const auto too_many = [](const std::string& prompt) {
    const std::string body = "{\"prompt\":" + prompt + "}";
    return has_too_many_prompts(wire::JsonObject::parse(body).value());
  };
  EXPECT_FALSE(too_many(list + "]"));
  EXPECT_TRUE(too_many(list + ",\"\"]"));
  std::string ids = "[7";
  for (std::size_t i = 0; i < kMostPrompts; ++i) ids += ",7";
  EXPECT_FALSE(too_many(ids + "]")) << "many ids are one prompt";
}

}  // namespace
}  // namespace baton::prompt
