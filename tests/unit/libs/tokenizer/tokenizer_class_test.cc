// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer_class.h"

#include "unit/libs/tokenizer/json_of.h"
#include "unit/libs/tokenizer/small_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::tokenizer {
namespace {

using testing::HasSubstr;

// Empty: the file's own is used.
std::string rebuilt(const SmallFile& file, std::string_view config,
                    std::string_view model_type = "llama") {
  return rebuilt_pre_tokenizer(TokenizerConfig::from_json(config).value(), model_type,
                               JsonOf(file.json()))
      .value_or("");
}

SmallFile sentence_pieces() {
  return {.model = std::string(kLetters),
          .normalizer = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})"};
}

TEST(TokenizerClass, OfLlamaIsBuiltAnew) {
  EXPECT_THAT(rebuilt(sentence_pieces(), R"({"tokenizer_class":"LlamaTokenizerFast"})"),
              HasSubstr(R"("prepend_scheme":"first")"));
  EXPECT_THAT(rebuilt(sentence_pieces(), R"({"tokenizer_class":"LlamaTokenizer","legacy":true})"),
              HasSubstr(R"("prepend_scheme":"always")"));
  EXPECT_THAT(rebuilt(sentence_pieces(),
                      R"({"tokenizer_class":"LlamaTokenizer","add_prefix_space":false})"),
              HasSubstr(R"("prepend_scheme":"never")"));
}

TEST(TokenizerClass, IsSetAsideForOtherModelsFilesAndCode) {
  constexpr std::string_view kLlama = R"({"tokenizer_class":"LlamaTokenizerFast"})";
  EXPECT_EQ(rebuilt(sentence_pieces(), R"({"tokenizer_class":"PreTrainedTokenizerFast"})"), "");
  EXPECT_EQ(rebuilt(sentence_pieces(), "{}"), "");
  EXPECT_EQ(rebuilt(sentence_pieces(), kLlama, "mistral"), "");
  EXPECT_EQ(
      rebuilt(sentence_pieces(),
              R"({"tokenizer_class":"LlamaTokenizer","auto_map":{"AutoTokenizer":["a",null]}})"),
      "");
  SmallFile bytes = sentence_pieces();
  bytes.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"}]})";
  EXPECT_EQ(rebuilt(bytes, kLlama), "");
}

TEST(TokenizerClass, OfGpt2IsBuiltAnewWhereTheFileSaysMore) {
  constexpr std::string_view kGpt2 = R"({"tokenizer_class":"GPT2Tokenizer"})";
  SmallFile file = sentence_pieces();
  file.normalizer = "null";
  file.pre_tokenizer =
      R"({"type":"Sequence","pretokenizers":[{"type":"Digits"},{"type":"ByteLevel"}]})";
  EXPECT_THAT(rebuilt(file, kGpt2), HasSubstr(R"("type":"ByteLevel","add_prefix_space":false)"));
  file.pre_tokenizer = R"({"type":"ByteLevel"})";
  EXPECT_EQ(rebuilt(file, kGpt2), "");
}

TEST(TokenizerClass, SetsSpecialTokensInTransformers4) {
  const auto sets = [](std::string_view config) {
    return sets_special_tokens(TokenizerConfig::from_json(config).value());
  };
  EXPECT_TRUE(sets(R"({"tokenizer_class":"LlamaTokenizerFast"})"));
  EXPECT_TRUE(sets(R"({"tokenizer_class":"GemmaTokenizer"})"));
  EXPECT_FALSE(sets(R"({"tokenizer_class":"PreTrainedTokenizerFast"})"));
  EXPECT_FALSE(sets("{}"));
}

}  // namespace
}  // namespace baton::tokenizer
