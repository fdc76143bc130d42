// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/post_processor.h"

#include "unit/libs/tokenizer/json_of.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::tokenizer {
namespace {

constexpr std::string_view kTemplate =
    R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
    R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[],)"
    R"("special_tokens":{"<s>":{"id":"<s>","ids":[1,7],"tokens":["<s>","x"]},)"
    R"("</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]}}})";

TEST(PostProcessor, PutsTheTemplatesTokensAroundTheText) {
  const auto made = PostProcessor::from_json(JsonOf(kTemplate));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->before, (TokenIds{1, 7}));
  EXPECT_EQ(made->after, (TokenIds{2}));
}

TEST(PostProcessor, KnowsTheOlderForms) {
  for (const std::string type : {"BertProcessing", "RobertaProcessing"}) {
    const auto made = PostProcessor::from_json(
        JsonOf(R"({"type":")" + type + R"(","sep":["[SEP]",102],"cls":["[CLS]",101]})"));
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ(made->before, (TokenIds{101}));
    EXPECT_EQ(made->after, (TokenIds{102}));
  }
}

TEST(PostProcessor, PutsLaterStepsOutside) {
  const auto made = PostProcessor::from_json(
      JsonOf(R"({"type":"Sequence","processors":[{"type":"ByteLevel"},)" + std::string(kTemplate) +
             R"(,{"type":"BertProcessing","sep":["b",9],"cls":["a",8]}]})"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->before, (TokenIds{8, 1, 7}));
  EXPECT_EQ(made->after, (TokenIds{2, 9}));
}

TEST(PostProcessor, AddsNothingWhereNothingIsAsked) {
  for (const std::string_view json : {"null", R"({"type":"ByteLevel","trim_offsets":false})"}) {
    const auto made = PostProcessor::from_json(JsonOf(json));
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->before.empty() && made->after.empty());
  }
}

TEST(PostProcessor, NamesWhatIsWrong) {
  const auto refusal = [](std::string_view json) {
    const auto made = PostProcessor::from_json(JsonOf(json));
    return made ? "" : made.error().message();
  };
  EXPECT_EQ(refusal(R"({"type":"Odd"})"), "the post_processor \"Odd\" is not known to Baton");
  EXPECT_EQ(refusal(R"({"type":"BertProcessing","sep":["a"],"cls":["b",1]})"),
            "post_processor: \"sep\" is not a token and its id");
  EXPECT_EQ(refusal(R"({"type":"TemplateProcessing","single":[],"special_tokens":{}})"),
            "post_processor: \"single\" has no place for the text");
  EXPECT_EQ(refusal(R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}]})"),
            "post_processor.single: the text is to come once, as \"A\"");
  EXPECT_EQ(refusal(R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],)"
                    R"("special_tokens":{}})"),
            "post_processor.special_tokens: \"x\" is missing");
  EXPECT_EQ(refusal(R"({"type":"BertProcessing","sep":["a",4294967296],"cls":["b",1]})"),
            "post_processor: the id 4294967296 is too large; Baton takes ids below 4194304");
  EXPECT_EQ(refusal(R"({"type":"ByteLevel","trim_offsets":true,"odd":1})"),
            "post_processor: \"odd\" of ByteLevel is not known to Baton");
  EXPECT_EQ(refusal(R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","odd":0}}]})"),
            "post_processor.single.Sequence: \"odd\" is not known to Baton");
  EXPECT_EQ(refusal(R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"},"odd":0}]})"),
            "post_processor.single: \"odd\" is not known to Baton");
  EXPECT_EQ(refusal(R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],)"
                    R"("special_tokens":{"x":{"id":"x","ids":[1],"tokens":["x"],"odd":1}}})"),
            "post_processor.special_tokens.x: \"odd\" is not known to Baton");
}

// Command R's files have them.
TEST(PostProcessor, ReadsPastWhatATemplateHasOfByteLevel) {
  const std::string json = R"({"add_prefix_space":true,"trim_offsets":false,"use_regex":true,)" +
                           std::string(kTemplate.substr(1));
  const auto made = PostProcessor::from_json(JsonOf(json));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->before, (TokenIds{1, 7}));
}

}  // namespace
}  // namespace baton::tokenizer
