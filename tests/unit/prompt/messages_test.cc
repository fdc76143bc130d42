// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/messages.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

std::string reshaped(std::string_view json, ContentFormat format = ContentFormat::Text,
                     const Rules& rules = {}) {
  return shown(conversation_of(from_json(json), format, rules).value().messages);
}

TEST(Messages, KeepRoleAndContentAndDropWhatEnginesDrop) {
  EXPECT_EQ(reshaped(R"([{"content":"s","role":"system","weight":1},
                         {"role":"user","content":"u","name":"ann","tool_call_id":"x"},
                         {"role":"alien","content":null,"name":5}])"),
            R"([{"role":"system","content":"s"},{"role":"user","content":"u","name":"ann"},)"
            R"({"role":"alien","content":""}])");
}

TEST(Messages, OfNothingButRoleAndTextAreNotRebuilt) {
  const jinja::Value messages =
      from_json(R"([{"role":"user","content":"u"},{"role":"tool","content":"t"},
                    {"content":"c","role":"user"},{"role":"developer","content":"d"},
                    {"role":"user","content":null}])");
  const jinja::List same = conversation_of(messages, ContentFormat::Text, {}).value().messages;
  EXPECT_EQ(same[0].object(), messages.as_list()[0].object());
  EXPECT_EQ(same[1].object(), messages.as_list()[1].object());
  EXPECT_EQ(shown(same),
            R"([{"role":"user","content":"u"},{"role":"tool","content":"t"},)"
            R"({"role":"user","content":"c"},{"role":"developer","content":"d","tools":null},)"
            R"({"role":"user","content":""}])");
}

TEST(Messages, OfAssistantsKeepToolCallsAndReasoning) {
  EXPECT_EQ(
      reshaped(R"([{"role":"assistant","content":null,"refusal":null,"reasoning_content":"why",
                    "tool_calls":[{"id":"c","type":"function",
                                   "function":{"name":"f","arguments":"{\"x\":1}"}}]}])"),
      R"([{"role":"assistant","content":"",)"
      R"("tool_calls":[{"id":"c","function":{"arguments":{"x":1},"name":"f"},"type":"function"}],)"
      R"("reasoning":"why","reasoning_content":"why"}])");
}

TEST(Messages, GiveReasoningUnderBothOfItsNames) {
  EXPECT_EQ(reshaped(R"([{"role":"assistant","content":"a","reasoning":"new",
                          "reasoning_content":"old"}])"),
            R"([{"role":"assistant","content":"a","reasoning":"new","reasoning_content":"new"}])");
  EXPECT_EQ(reshaped(R"([{"role":"assistant","content":"a","reasoning":null,
                          "reasoning_content":null}])"),
            R"([{"role":"assistant","content":"a"}])");
  EXPECT_EQ(reshaped(R"([{"role":"user","content":"a","reasoning":"r"}])"),
            R"([{"role":"user","content":"a"}])");
}

TEST(Messages, WithoutToolCallsHaveNoSuchMember) {
  EXPECT_EQ(reshaped(R"([{"role":"assistant","content":"a","tool_calls":[]},
                         {"role":"assistant","content":"b","tool_calls":null}])"),
            R"([{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}])");
}

TEST(Messages, OfARoleAndATextAreShapedAsTheTemplateWants) {
  constexpr std::string_view kSaid =
      R"([{"role":"user","content":"a"},{"content":"b","role":"assistant"}])";
  EXPECT_EQ(reshaped(kSaid, ContentFormat::Text),
            R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])");
  EXPECT_EQ(reshaped(kSaid, ContentFormat::Parts),
            R"([{"role":"user","content":[{"type":"text","text":"a"}]},)"
            R"({"role":"assistant","content":[{"type":"text","text":"b"}]}])");
}

TEST(Messages, OfToolsAreTextInEveryFormat) {
  constexpr std::string_view kResult =
      R"([{"role":"tool","tool_call_id":"c","name":"f",
           "content":[{"type":"text","text":""},{"type":"text","text":"b"}]}])";
  EXPECT_EQ(reshaped(kResult, ContentFormat::Text),
            R"([{"role":"tool","content":"b","tool_call_id":"c","name":"f"}])");
  EXPECT_EQ(reshaped(kResult, ContentFormat::Parts),
            "[{\"role\":\"tool\",\"content\":\"\nb\",\"tool_call_id\":\"c\",\"name\":\"f\"}]");
  EXPECT_EQ(reshaped(R"([{"role":"tool","content":"x"},{"role":"tool"}])", ContentFormat::Parts),
            R"([{"role":"tool","content":"x"},{"role":"tool","content":""}])");
}

TEST(Messages, OfToolsKeepPartsThatAreNotText) {
  EXPECT_EQ(reshaped(R"([{"role":"tool","content":["a",{"type":"tool_reference","name":"f"}]}])",
                     ContentFormat::Parts),
            R"([{"role":"tool","content":[{"type":"text","text":"a"},)"
            R"({"type":"tool_reference","name":"f"}]}])");
}

TEST(Messages, OfDevelopersCarryTheirTools) {
  EXPECT_EQ(reshaped(R"([{"role":"developer","content":"d","tools":[{"x":1}]},
                         {"role":"developer","content":"d"}])"),
            R"([{"role":"developer","content":"d","tools":[{"x":1}]},)"
            R"({"role":"developer","content":"d","tools":null}])");
}

TEST(Messages, KeepAModelsTask) {
  EXPECT_EQ(reshaped(R"([{"role":"user","content":"u","task":"query"}])"),
            R"([{"role":"user","content":"u","task":"query"}])");
}

TEST(Messages, SayTheFirstReasonWhyTheyAreInexact) {
  const auto conversation = conversation_of(from_json(R"([{"role":"user","content":"a"},
                    {"role":"user","content":[{"type":"image_url","image_url":{}}]},
                    {"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])"),
                                            ContentFormat::Text, {});
  EXPECT_EQ(conversation.value().inexact, "messages[1] has an image");
  EXPECT_EQ(conversation_of(from_json("[]"), ContentFormat::Text, {}).value().inexact, "");
}

TEST(Messages, OfAnotherShapeAreRefusedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "messages"},
      {R"("hi")", "messages"},
      {R"([{"role":"user","content":"a"},"b"])", "messages[1]"},
      {R"([{"content":"a"}])", "messages[0].role"},
      {R"([{"role":5,"content":"a"}])", "messages[0].role"},
      {R"([{"role":"user","content":5}])", "messages[0].content"},
      {R"([{"role":"assistant","tool_calls":[{}]}])", "messages[0].tool_calls[0].function"},
  };
  for (const auto& [json, place] : cases) {
    const auto conversation = conversation_of(from_json(json), ContentFormat::Text, {});
    ASSERT_FALSE(conversation) << json;
    EXPECT_EQ(conversation.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(conversation.error().param(), place);
  }
}

TEST(Messages, LoseTheAttributionLineOfTheSystemsOnly) {
  constexpr std::string_view kSaid =
      R"([{"role":"system","content":"x-anthropic-billing-header: a;\nb"},
          {"role":"user","content":"x-anthropic-billing-header"}])";
  EXPECT_EQ(reshaped(kSaid), R"([{"role":"system","content":"b"},)"
                             R"({"role":"user","content":"x-anthropic-billing-header"}])");
  EXPECT_NE(reshaped(kSaid, ContentFormat::Text, {.drops_billing_header = false}).find(": a;"),
            std::string::npos);
}

TEST(Messages, StayTextForTemplatesThatWantPartsWhereTheEngineLeavesThemSo) {
  EXPECT_EQ(reshaped(R"([{"role":"user","content":"a"},{"role":"user","content":null}])",
                     ContentFormat::Parts, {.texts_in_parts = false}),
            R"([{"role":"user","content":"a"},{"role":"user","content":""}])");
}

std::string as_system(std::string_view json, ContentFormat format = ContentFormat::Text) {
  auto conversation = conversation_of(from_json(json), format, {}).value();
  developers_to_system(conversation.messages);
  return shown(conversation.messages);
}

TEST(Developers, BecomeTheSystem) {
  EXPECT_EQ(as_system(R"([{"role":"developer","content":"a","tools":[1],"name":"n"},
                          {"role":"user","content":"u"}])"),
            R"([{"role":"system","content":"a","name":"n"},{"role":"user","content":"u"}])");
  EXPECT_EQ(as_system(R"([{"role":"developer","content":"a"}])", ContentFormat::Parts),
            R"([{"role":"system","content":[{"type":"text","text":"a"}]}])");
}

TEST(Developers, AreMergedWithTheSystemBeforeAllOthers) {
  EXPECT_EQ(as_system(R"([{"role":"system","content":"a"},{"role":"user","content":"u"},
                          {"role":"developer","content":[{"type":"text","text":"b"},
                                                         {"type":"text","text":"c"}]},
                          {"role":"developer","content":""},{"role":"user","content":"v"}])",
                      ContentFormat::Parts),
            "[{\"role\":\"system\",\"content\":\"a\n\nb\nc\"},"
            R"({"role":"user","content":[{"type":"text","text":"u"}]},)"
            R"({"role":"user","content":[{"type":"text","text":"v"}]}])");
}

TEST(Developers, LeaveOtherConversationsAlone) {
  constexpr std::string_view kSaid =
      R"([{"role":"user","content":"u"},{"role":"system","content":"s"}])";
  EXPECT_EQ(as_system(kSaid), reshaped(kSaid));
}

TEST(Developers, AreKnownToATemplateThatNamesThemInQuotes) {
  EXPECT_TRUE(names_developers("{% if m.role == 'developer' %}"));
  EXPECT_TRUE(names_developers(R"({% if m.role == "developer" %})"));
  EXPECT_FALSE(names_developers("{# for developers #}"));
}

}  // namespace
}  // namespace baton::prompt
