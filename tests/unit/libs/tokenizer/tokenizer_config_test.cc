// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer_config.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::tokenizer {
namespace {

TokenizerConfig read(std::string_view json) {
  auto config = TokenizerConfig::from_json(json);
  if (!config) {
    ADD_FAILURE() << config.error().message();
    return {};
  }
  return std::move(*config);
}

TEST(TokenizerConfig, IsEmptyWhereThereIsNone) {
  const TokenizerConfig config = read("");
  EXPECT_TRUE(config.added.empty() && config.named.empty() && config.more_special.empty());
  EXPECT_EQ(config.add_bos, std::nullopt);
}

TEST(TokenizerConfig, ReadsNamedTokensAsTextAndAsObjects) {
  const TokenizerConfig config = read(
      R"({"eos_token":{"__type":"AddedToken","content":"</s>","lstrip":true,"normalized":true},)"
      R"("bos_token":"<s>","pad_token":null,"extra_special_tokens":{"image_token":"<img>"}})");
  ASSERT_EQ(config.named.size(), 3U);
  EXPECT_EQ(config.named[0].first, "bos_token");
  EXPECT_EQ(config.named[0].second,
            (AddedToken{.content = "<s>", .normalized = false, .special = true}));
  EXPECT_EQ(config.named[1].second,
            (AddedToken{.content = "</s>", .lstrip = true, .normalized = true, .special = true}));
  EXPECT_EQ(config.named[2].first, "image_token");
  EXPECT_EQ(config.find_named("pad_token"), nullptr);
  EXPECT_TRUE(config.special("<img>"));
}

TEST(TokenizerConfig, ReadsAddedTokensByTheirIds) {
  const TokenizerConfig config =
      read(R"({"added_tokens_decoder":{"12":{"content":"b","special":true},)"
           R"("3":{"content":"a","special":false}},"additional_special_tokens":["x"]})");
  ASSERT_EQ(config.added.size(), 2U);
  EXPECT_EQ(config.added[0].first, 3U);
  EXPECT_TRUE(config.added[0].second.normalized) << "what is not special is, if nothing is said";
  EXPECT_EQ(config.added[1].second.content, "b");
  EXPECT_FALSE(config.added[1].second.normalized);
  ASSERT_EQ(config.more_special.size(), 1U);
  EXPECT_EQ(config.more_special[0].content, "x");
}

TEST(TokenizerConfig, ReadsSettings) {
  const TokenizerConfig config = read(
      R"({"add_bos_token":true,"add_eos_token":false,"add_prefix_space":null,"pat_str":"\\s+"})");
  EXPECT_EQ(config.add_bos, true);
  EXPECT_EQ(config.add_eos, false);
  EXPECT_EQ(config.add_prefix_space, std::nullopt);
  EXPECT_EQ(config.pattern, "\\s+");
}

TEST(TokenizerConfig, IsNotUpsetByTheNumbersOfPython) {
  const TokenizerConfig config =
      read(R"({"model_max_length":1000000000000000019884624838656,)"
           R"("bos_token":"\"1000000000000000019884624838656","x":-123456789012345678901.5e3})");
  ASSERT_EQ(config.named.size(), 1U);
  EXPECT_EQ(config.named[0].second.content, "\"1000000000000000019884624838656");
}

TEST(TokenizerConfig, NamesWhatIsWrong) {
  const auto refusal = [](std::string_view json) {
    const auto config = TokenizerConfig::from_json(json);
    return config ? "" : config.error().message();
  };
  EXPECT_TRUE(refusal("{").starts_with("not valid JSON"));
  EXPECT_EQ(refusal("[]"), "the file is not an object");
  EXPECT_EQ(refusal(R"({"add_bos_token":1})"), "the file: \"add_bos_token\" is not true or false");
  EXPECT_EQ(refusal(R"({"split_special_tokens":true})"),
            "the file: \"split_special_tokens\": true is not known to Baton");
  EXPECT_EQ(refusal(R"({"fix_mistral_regex":true})"),
            "the file: \"fix_mistral_regex\": true is not known to Baton");
  EXPECT_EQ(refusal(R"({"added_tokens_decoder":{"x":{}}})"),
            "the file.added_tokens_decoder: \"x\" is not an id below 4194304");
  EXPECT_EQ(refusal(R"({"added_tokens_decoder":{"1":{}}})"),
            "added_tokens_decoder.1: \"content\" is missing");
  EXPECT_EQ(refusal(R"({"bos_token":1})"), "bos_token is not an object");
  EXPECT_EQ(refusal(R"({"bos_token":{"content":"<s>","odd":1}})"),
            "bos_token: \"odd\" is not known to Baton");
  EXPECT_EQ(refusal(R"({"bos_token":{"__type":"AddedToken","content":"<s>"}})"), "");
}

}  // namespace
}  // namespace baton::tokenizer
