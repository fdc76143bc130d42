// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/usage_merge.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::engine {
namespace {

Usage reported(std::optional<std::int64_t> cached) {
  return {.prompt_tokens = 100,
          .completion_tokens = 1,
          .cached_tokens = cached,
          .prompt_details =
              cached ? R"({"cached_tokens": )" + std::to_string(*cached) + "}" : std::string()};
}

std::optional<std::string> rewrite_usage(std::string_view json, const Usage& prefill) {
  return engine::rewrite_usage(json, prefill, AnswerForm::Whole);
}

TEST(RewriteUsage, PutsThePrefillsCachedTokensInPlaceOfTheDecodes) {
  EXPECT_EQ(rewrite_usage(R"({"id":1.50, "usage" : {"prompt_tokens":100,"prompt_tokens_details":{)"
                          R"("cached_tokens": 99 ,"audio_tokens":0},"total_tokens":110} ,"x":[ ]})",
                          reported(64)),
            R"({"id":1.50, "usage" : {"prompt_tokens":100,"prompt_tokens_details":{)"
            R"("cached_tokens": 64 ,"audio_tokens":0},"total_tokens":110} ,"x":[ ]})");
}

TEST(RewriteUsage, LeavesAUsageLongerThanAnyEngineWrites) {
  const auto chunk = [](std::size_t padding) {
    return R"({"usage":{"prompt_tokens_details":{"cached_tokens":99,"x":")" +
           std::string(padding, 'x') + R"("}}})";
  };
  EXPECT_TRUE(rewrite_usage(chunk(100), reported(64)));
  EXPECT_FALSE(rewrite_usage(chunk(kLongestUsage), reported(64)));
}

TEST(RewriteUsage, ReplacesValuesWhereTheyStandInAnyOrder) {
  Usage prefill = reported(16);
  prefill.prompt_details = R"({"created_cache_tokens":32,"cached_tokens":16,"gone":null})";
  EXPECT_EQ(rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":99, "a":1,)"
                          R"("created_cache_tokens":0}}})",
                          prefill),
            R"({"usage":{"prompt_tokens_details":{"cached_tokens":16, "a":1,)"
            R"("created_cache_tokens":32}}})");
  prefill.prompt_details = R"({"cached_tokens":99,"created_cache_tokens":0})";
  EXPECT_EQ(rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":99,)"
                          R"("created_cache_tokens":0}}})",
                          prefill),
            std::nullopt)
      << "nothing to change";
}

TEST(RewriteUsage, TakesTheLastOfAKeyThatIsTwiceThere) {
  Usage prefill = reported(2);
  prefill.prompt_details = R"({"cached_tokens":1,"cached_tokens":2})";
  const auto text =
      rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":9}}})", prefill);
  ASSERT_TRUE(text);
  EXPECT_EQ(json(*text), json(R"({"usage":{"prompt_tokens_details":{"cached_tokens":2}}})"));
}

TEST(RewriteUsage, TakesAllDetailsOfThePromptFromTheLegThatComputedIt) {
  Usage prefill = reported(16);
  prefill.prompt_details =
      R"({"cached_tokens":16,"created_cache_tokens":128,"multimodal_tokens":{"image":9},"new":1})";
  const auto text = rewrite_usage(
      R"({"usage":{"completion_tokens":7,"completion_tokens_details":{"reasoning_tokens":5},)"
      R"("prompt_tokens_details":{"cached_tokens":144,"created_cache_tokens":0,"old":2}}})",
      prefill);
  ASSERT_TRUE(text);
  EXPECT_EQ(
      json(*text),
      json(R"({"usage":{"completion_tokens":7,"completion_tokens_details":{)"
           R"("reasoning_tokens":5},"prompt_tokens_details":{"cached_tokens":16,)"
           R"("created_cache_tokens":128,"old":2,"multimodal_tokens":{"image":9},"new":1}}})"));
}

// vLLM 0.32: the prefill's answer is whole and has nulls, which the decode worker's stream leaves out.
TEST(RewriteUsage, AddsNoMemberThatIsNull) {
  Usage prefill = reported(16);
  prefill.prompt_details = R"({"cached_tokens":16,"created_cache_tokens":null})";
  EXPECT_EQ(rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":99}}})", prefill),
            R"({"usage":{"prompt_tokens_details":{"cached_tokens":16}}})");
  EXPECT_EQ(
      rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":99,)"
                    R"("created_cache_tokens":7}}})",
                    prefill),
      R"({"usage":{"prompt_tokens_details":{"cached_tokens":16,"created_cache_tokens":null}}})");
}

TEST(RewriteUsage, AddsThemWhereTheDecodeSaidNothing) {
  for (const char* details :
       {"", R"(,"prompt_tokens_details":null)", R"(,"prompt_tokens_details":{})"}) {
    const auto text = rewrite_usage(
        std::string(R"({"usage":{"prompt_tokens":5)") + details + "},\"z\":1}", reported(3));
    ASSERT_TRUE(text) << details;
    EXPECT_EQ(
        json(*text),
        json(R"({"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":3}},"z":1})"));
    EXPECT_TRUE(text->ends_with(R"(,"z":1})"));
  }
}

TEST(RewriteUsage, TakesAFalseClaimOutWhereThePrefillSaidNothing) {
  EXPECT_EQ(rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":9,"a":1}}})",
                          reported({})),
            R"({"usage":{"prompt_tokens_details":{"a":1}}})");
}

// Regression: vLLM 0.12 says nothing of a prompt of which nothing was cached.
TEST(RewriteUsage, LeavesNoEmptyDetails) {
  const char* text = R"({"usage":{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":9}}})";
  EXPECT_EQ(engine::rewrite_usage(text, reported({}), AnswerForm::Whole),
            R"({"usage":{"prompt_tokens":7,"prompt_tokens_details":null}})");
  EXPECT_EQ(engine::rewrite_usage(text, reported({}), AnswerForm::Streamed),
            R"({"usage":{"prompt_tokens":7}})");
}

TEST(RewriteUsage, TakesEveryFalseClaimOfItsCacheOut) {
  Usage prefill = reported(16);
  EXPECT_EQ(rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":9,)"
                          R"("created_cache_tokens":0,"audio_tokens":4}}})",
                          prefill),
            R"({"usage":{"prompt_tokens_details":{"cached_tokens":16,"audio_tokens":4}}})");
}

TEST(RewriteUsage, HasNothingToDoWithoutUsage) {
  for (const char* text : {"{}", R"({"usage":null})", R"({"usage":[1]})", R"({"choices":[]})",
                           "[DONE]", "", "{\"usage\":{", R"({"a":{"usage":{}}})"})
    EXPECT_EQ(rewrite_usage(text, reported(3)), std::nullopt) << text;
  EXPECT_EQ(rewrite_usage(R"({"usage":{"prompt_tokens":1}})", reported({})), std::nullopt);
}

TEST(InputLogprobs, AreFoundWhereTheEngineMayPutThem) {
  for (const char* text : {R"({"choices":[{"input_token_logprobs":[[-0.10,5]]}]})",
                           R"({"choices":[{"meta_info":{"input_token_logprobs":[[-0.10,5]]}}]})",
                           R"({"choices":[],"meta_info":{"input_token_logprobs":[[-0.10,5]]}})"})
    EXPECT_EQ(input_logprobs_of(*wire::JsonObject::parse(text)), "[[-0.10,5]]") << text;
  for (const char* text :
       {"{}", R"({"choices":[1]})", R"({"choices":[{"input_token_logprobs":null}]})",
        R"({"choices":[{"input_token_logprobs":[]}]})"})
    EXPECT_EQ(input_logprobs_of(*wire::JsonObject::parse(text)), "") << text;
}

TEST(InputLogprobs, GoWhereTheDecodeHasItsOwn) {
  EXPECT_EQ(merge_input_logprobs(
                R"({"a":1, "choices":[{"meta_info":{"input_token_logprobs":[]},"b":2}]})", "[1]"),
            R"({"a":1, "choices":[{"meta_info":{"input_token_logprobs":[1]},"b":2}]})");
  EXPECT_EQ(merge_input_logprobs(R"({"choices":[{"b":2} , {"c":3}],"z":0})", "[1]"),
            R"({"choices":[{"b":2,"input_token_logprobs":[1]} , {"c":3}],"z":0})");
  for (const char* text : {"{}", "", "[DONE]", R"({"choices":[]})", R"({"choices":[7]})"})
    EXPECT_EQ(merge_input_logprobs(text, "[1]"), std::nullopt) << text;
  EXPECT_EQ(merge_input_logprobs(R"({"choices":[{}]})", ""), std::nullopt);
}

// Regression: SGLang's completions have the prompt's share in choices[0].logprobs.
TEST(InputLogprobs, AreTheBeginningOfACompletionsOwn) {
  const std::string prefill =
      R"({"choices":[{"logprobs":{"text_offset":[-1, -1,-1],"token_logprobs":[null,-1.50,-2.0],)"
      R"("tokens":["a","b,","c"],"top_logprobs":[null,{"b,":-1.50},{"c":-2.0}]}}],)"
      R"("usage":{"prompt_tokens":2,"completion_tokens":1}})";
  const std::string prompt = input_logprobs_of(*wire::JsonObject::parse(prefill));
  EXPECT_EQ(prompt, R"({"text_offset":[-1, -1],"token_logprobs":[null,-1.50],"tokens":["a","b,"],)"
                    R"("top_logprobs":[null,{"b,":-1.50}]})");
  const std::string decode =
      R"({"choices":[{"logprobs":{"text_offset":[-1,-1],"token_logprobs":[-2.0,-3],)"
      R"("tokens":["c","d"],"top_logprobs":[{"c":-2.0},{"d":-3}]}}],)"
      R"("usage":{"prompt_tokens":2,"completion_tokens":2}})";
  const std::string merged =
      R"({"choices":[{"logprobs":{"text_offset":[-1, -1,-1,-1],"token_logprobs":[null,-1.50,-2.0,-3],)"
      R"("tokens":["a","b,","c","d"],"top_logprobs":[null,{"b,":-1.50},{"c":-2.0},{"d":-3}]}}],)"
      R"("usage":{"prompt_tokens":2,"completion_tokens":2}})";
  EXPECT_EQ(merge_input_logprobs(decode, prompt), merged);
  EXPECT_EQ(merge_input_logprobs(merged, prompt), std::nullopt) << "they are there already";
  EXPECT_EQ(
      merge_input_logprobs(
          R"({"choices":[{"logprobs":{"tokens":[],"top_logprobs":null}}],"usage":null})", prompt),
      R"({"choices":[{"logprobs":{"tokens":["a","b,"],"top_logprobs":null}}],"usage":null})");
  for (const char* text : {R"({"choices":[{"logprobs":null}]})", R"({"choices":[{}]})",
                           R"({"choices":[{"logprobs":{"content":[]}}]})"})
    EXPECT_EQ(merge_input_logprobs(text, prompt), std::nullopt) << text;
}

TEST(InputLogprobs, AreNoneWhereOnlyTheAnswersAreTold) {
  for (
      const char* text :
      {R"({"choices":[{"logprobs":{"tokens":["c"],"token_logprobs":[-1]}}],"usage":{"prompt_tokens":2,"completion_tokens":1}})",
       R"({"choices":[{"logprobs":{"tokens":["c"]}}]})",
       R"({"choices":[{"logprobs":{"content":[1,2,3]}}]})"})
    EXPECT_EQ(input_logprobs_of(*wire::JsonObject::parse(text)), "") << text;
}

TEST(InputLogprobs, AreWantedWithAnEcho) {
  EXPECT_TRUE(wants_input_logprobs(*wire::JsonObject::parse(R"({"echo":true,"logprobs":1})")));
  for (const char* body : {R"({"echo":true})", R"({"echo":true,"logprobs":0})",
                           R"({"echo":false,"logprobs":1})", R"({"logprobs":1})"})
    EXPECT_FALSE(wants_input_logprobs(*wire::JsonObject::parse(body))) << body;
}

}  // namespace
}  // namespace baton::engine
