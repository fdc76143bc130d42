// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/usage_merge.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

Usage reported(std::optional<std::int64_t> cached) {
  return {.prompt_tokens = 100, .completion_tokens = 1, .cached_tokens = cached};
}

TEST(RewriteUsage, PutsThePrefillsCachedTokensInPlaceOfTheDecodes) {
  EXPECT_EQ(rewrite_usage(R"({"id":1.50, "usage" : {"prompt_tokens":100,"prompt_tokens_details":{)"
                          R"("cached_tokens": 99 ,"audio_tokens":0},"total_tokens":110} ,"x":[ ]})",
                          reported(64)),
            R"({"id":1.50, "usage" : {"prompt_tokens":100,"prompt_tokens_details":{)"
            R"("cached_tokens": 64 ,"audio_tokens":0},"total_tokens":110} ,"x":[ ]})");
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
  EXPECT_EQ(
      rewrite_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":9}}})", reported({})),
      R"({"usage":{"prompt_tokens_details":{}}})");
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

}  // namespace
}  // namespace baton::engine
