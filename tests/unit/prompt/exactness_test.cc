// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/exactness.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

using testing::HasSubstr;

Exactness exactness_in(std::string_view text) {
  return chat_exactness(wire::JsonObject::parse(text).value());
}

// `message` is the last of a conversation, `members` are those of the request.
Exactness exactness_in(std::string_view message, std::string_view members) {
  return exactness_in(
      fmt::format(R"({{"messages":[{{"role":"user","content":"a"}},{}]{}}})", message, members));
}

constexpr std::string_view kPlainMessage = R"({"role":"user","content":"a"})";

TEST(Exactness, TextIsTheSameForAll) {
  EXPECT_EQ(exactness_in(kPlainMessage, "").inexact, "");
  EXPECT_EQ(exactness_in(kPlainMessage, "").engines_differ, "");
}

TEST(Exactness, NamesWhatIsNoText) {
  EXPECT_THAT(exactness_in(R"({"role":"user","content":[{"type":"text","text":"a"},
                     {"type":"image_url","image_url":{"url":"http://127.0.0.1/a.png"}}]})",
                           "")
                  .inexact,
              HasSubstr("messages[1]"));
}

TEST(Exactness, NamesWhatTheRequestAsksForBesides) {
  EXPECT_THAT(exactness_in(kPlainMessage, R"(,"input_ids":[1])").inexact, HasSubstr("token ids"));
  EXPECT_THAT(exactness_in(kPlainMessage, R"(,"truncate_prompt_tokens":1)").inexact,
              HasSubstr("truncate"));
  EXPECT_THAT(exactness_in(kPlainMessage, R"(,"chat_template":"x")").inexact,
              HasSubstr("chat template"));
  EXPECT_THAT(exactness_in(kPlainMessage, R"(,"tools":[])").inexact, HasSubstr("tools"));
}

TEST(Exactness, NamesWhatEachEngineShapesInItsOwnWay) {
  for (const std::string_view members :
       {R"(,"tools":[{"function":{"name":"f"}}])", R"(,"tool_choice":"none")",
        R"(,"reasoning_effort":"low")", R"(,"add_generation_prompt":false)",
        R"(,"reasoning":{"enabled":true})", R"(,"task":"t")", R"(,"documents":[])",
        R"(,"add_special_tokens":true)"}) {
    EXPECT_NE(exactness_in(kPlainMessage, members).engines_differ, "") << members;
    EXPECT_EQ(exactness_in(kPlainMessage, members).inexact, "") << members;
  }
  for (const std::string_view message :
       {R"({"role":"user","content":[{"type":"text","text":"a"}]})",
        R"({"role":"user","content":"a","name":"n"})", R"({"role":"developer","content":"a"})",
        R"({"role":"user","content":"a","phase":"p"})",
        R"({"role":"user","content":"a","task":"t"})",
        R"({"role":"system","content":"a","tools":[]})", R"({"role":"assistant","content":"a"})"}) {
    EXPECT_NE(exactness_in(message, "").engines_differ, "") << message;
    EXPECT_EQ(exactness_in(message, "").inexact, "") << message;
  }
}

// The engine may know better, and has the last word: but not on what its tokens are.
TEST(Exactness, OfCompletions) {
  const auto of = [](std::string_view text) {
    return completion_exactness(wire::JsonObject::parse(text).value());
  };
  EXPECT_EQ(of(R"({"prompt":"a"})").inexact, "");
  EXPECT_EQ(of(R"({"prompt":"a"})").engines_differ, "");
  EXPECT_THAT(of(R"({"prompt":"a","suffix":"b"})").inexact, HasSubstr("suffix"));
  EXPECT_THAT(of(R"({"prompt":"a","add_special_tokens":false})").engines_differ,
              HasSubstr("add_special_tokens"));
}

TEST(Exactness, WhatBatonCannotReadIsInexact) {
  for (const std::string_view body :
       {R"({"messages":7})", R"({"messages":[7]})", R"({"prompt":"a"})",
        R"({"messages":[],"tools":[{"type":"search"}]})"}) {
    EXPECT_NE(exactness_in(body).inexact, "") << body;
  }
}

}  // namespace
}  // namespace baton::prompt
