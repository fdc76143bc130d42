// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/messages.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

std::string reshaped(std::string_view json, ContentFormat format = ContentFormat::Text) {
  return shown(conversation_of(from_json(json), format).value().messages);
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
  const jinja::List same = conversation_of(messages, ContentFormat::Text).value().messages;
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
                                            ContentFormat::Text);
  EXPECT_EQ(conversation.value().inexact, "messages[1] has an image");
  EXPECT_EQ(conversation_of(from_json("[]"), ContentFormat::Text).value().inexact, "");
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
    const auto conversation = conversation_of(from_json(json), ContentFormat::Text);
    ASSERT_FALSE(conversation) << json;
    EXPECT_EQ(conversation.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(conversation.error().param(), place);
  }
}

}  // namespace
}  // namespace baton::prompt
