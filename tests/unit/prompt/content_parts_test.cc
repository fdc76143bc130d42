// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/content_parts.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

Content reshaped_content(std::string_view json, ContentFormat format) {
  const jinja::Value content = from_json(json);
  return content_of(&content, {.format = format, .message = 2}).value();
}
std::string as_text(std::string_view json) {
  return shown(reshaped_content(json, ContentFormat::Text).value);
}
std::string as_parts(std::string_view json) {
  return shown(reshaped_content(json, ContentFormat::Parts).value);
}

TEST(Content, OfTextStaysTextOrBecomesOnePart) {
  EXPECT_EQ(as_text(R"("hi")"), R"("hi")");
  EXPECT_EQ(as_parts(R"("hi")"), R"([{"type":"text","text":"hi"}])");
  EXPECT_EQ(as_text(R"("")"), R"("")");
  EXPECT_EQ(as_parts(R"("")"), R"([{"type":"text","text":""}])");
}

TEST(Content, ThatIsNullOrAbsentIsEmpty) {
  EXPECT_EQ(as_text("null"), R"("")");
  EXPECT_EQ(as_parts("null"), "[]");
  EXPECT_EQ(shown(content_of(nullptr, {}).value().value), R"("")");
  EXPECT_EQ(shown(content_of(nullptr, {.format = ContentFormat::Parts}).value().value), "[]");
}

TEST(Content, OfPartsIsJoinedWithLineEndsForTemplatesThatWantText) {
  EXPECT_EQ(as_text(R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])"), "\"a\nb\"");
  EXPECT_EQ(as_text(R"(["a",{"type":"text","text":"b"}])"), "\"a\nb\"");
  EXPECT_EQ(as_text(R"([{"type":"text","text":""},{"type":"text","text":"b"}])"), R"("b")");
  EXPECT_EQ(as_text(R"(["a","","b",""])"), "\"a\nb\"");
  EXPECT_EQ(as_text("[]"), R"("")");
}

TEST(Content, KnowsEveryKindOfText) {
  constexpr std::string_view kParts =
      R"([{"type":"input_text","text":"a"},{"type":"output_text","text":"b"},
          {"type":"refusal","refusal":"c"},{"type":"thinking","thinking":"d"}])";
  EXPECT_EQ(as_text(kParts), "\"a\nb\nc\nd\"");
  EXPECT_EQ(as_parts(kParts), R"([{"type":"text","text":"a"},{"type":"text","text":"b"},)"
                              R"({"type":"text","text":"c"},{"type":"text","text":"d"}])");
}

TEST(Content, SkipsTextThatIsNull) {
  EXPECT_EQ(as_parts(R"([{"type":"text","text":null},{"type":"refusal"}])"), "[]");
  EXPECT_EQ(as_parts(R"([{"type":"input_text","text":null}])"), R"([{"type":"text","text":null}])");
  EXPECT_EQ(as_text(R"([{"type":"thinking"},{"type":"text","text":"a"}])"), R"("a")");
}

TEST(Content, PassesReferencesToToolsOn) {
  EXPECT_EQ(as_parts(R"([{"type":"tool_reference","name":"f","x":1}])"),
            R"([{"type":"tool_reference","name":"f"}])");
  EXPECT_EQ(as_text(R"([{"type":"tool_reference","name":"f"}])"), R"("f")");
}

TEST(Content, IsInexactWithMedia) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"image_url","image_url":{"url":"data:"}})", "messages[2] has an image"},
      {R"({"image_url":"http://x"})", "messages[2] has an image"},
      {R"({"type":"input_audio","input_audio":{}})", "messages[2] has audio"},
      {R"({"type":"video_url","video_url":{}})", "messages[2] has a video"},
      {R"({"type":"file","file":{}})", "messages[2] has a file"},
  };
  for (const auto& [part, reason] : cases) {
    const std::string json = std::string("[\"see\",") + part + ",\"?\"]";
    const Content text = reshaped_content(json, ContentFormat::Text);
    EXPECT_EQ(shown(text.value), "\"see\n?\"");
    EXPECT_EQ(text.inexact, reason);
  }
  const Content parts =
      reshaped_content(R"([{"type":"image_url","image_url":{}}])", ContentFormat::Parts);
  EXPECT_EQ(shown(parts.value), R"([{"type":"image"}])");
  EXPECT_EQ(parts.inexact, "messages[2] has an image");
}

TEST(Content, IsInexactWithPartsThatAreNotKnown) {
  const Content content = reshaped_content(R"(["a",{"type":"hologram"}])", ContentFormat::Text);
  EXPECT_EQ(shown(content.value), R"("a")");
  EXPECT_NE(content.inexact.find("messages[2].content[1]"), std::string::npos);
  EXPECT_NE(content.inexact.find("hologram"), std::string::npos);
}

TEST(Content, OfAnotherShapeIsRefusedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "messages[2].content"},
      {"{}", "messages[2].content"},
      {R"(["a",1])", "messages[2].content[1]"},
      {R"([{"text":"a"}])", "messages[2].content[0].type"},
      {R"([{"type":5}])", "messages[2].content[0].type"},
      {R"([{"type":"text","text":5}])", "messages[2].content[0].text"},
      {R"(["a",{"type":"thinking","thinking":[]}])", "messages[2].content[1].thinking"},
  };
  for (const auto& [json, place] : cases) {
    const jinja::Value value = from_json(json);
    const auto content = content_of(&value, {.message = 2});
    ASSERT_FALSE(content) << json;
    EXPECT_EQ(content.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(content.error().param(), place);
    EXPECT_TRUE(content.error().message().starts_with(place)) << content.error().message();
  }
}

TEST(Content, OfPartsKeepsMembersThatTheEngineDoesNotKnow) {
  constexpr std::string_view kPart =
      R"([{"type":"text","text":"a","cache_control":{"x":1},"name":"n"}])";
  EXPECT_EQ(as_parts(kPart), R"([{"type":"text","text":"a","cache_control":{"x":1}}])");
  const jinja::Value content = from_json(kPart);
  const auto older = content_of(
      &content, {.format = ContentFormat::Parts, .rules = {.keeps_part_members = false}});
  EXPECT_EQ(shown(older.value().value), R"([{"type":"text","text":"a"}])");
}

TEST(Content, OfTheSystemLosesItsAttributionLine) {
  const auto shaped = [](std::string_view json, ContentFormat format) {
    const jinja::Value content = from_json(json);
    return shown(content_of(&content, {.format = format, .of_system = true}).value().value);
  };
  constexpr std::string_view kParts =
      R"([{"type":"text","text":"x-anthropic-billing-header: a"},
          {"type":"text","text":"x-anthropic-billing-header: a\nb"},"c"])";
  EXPECT_EQ(shaped(kParts, ContentFormat::Text), "\"b\nc\"");
  EXPECT_EQ(shaped(kParts, ContentFormat::Parts),
            R"([{"type":"text","text":"b"},{"type":"text","text":"c"}])");
  EXPECT_EQ(shaped(R"("x-anthropic-billing-header: a")", ContentFormat::Parts), "[]");
}

}  // namespace
}  // namespace baton::prompt
