// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer_loader.h"

#include "unit/libs/tokenizer/small_tokenizers.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::tokenizer {
namespace {

std::string refusal(const SmallFile& file, std::string_view config = "") {
  const auto made = Tokenizer::from_json(file.json(), config);
  return made ? "" : made.error().message();
}

SmallFile letters() { return {.model = std::string(kLetters)}; }

TEST(TokenizerLoader, AddsWhatTheConfigurationNames) {
  const auto tokenizer =
      make(letters(), R"({"added_tokens_decoder":{"8":{"content":"<a>","special":true}},)"
                      R"("bos_token":"<b>","additional_special_tokens":["<c>"],"eos_token":"ab"})");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->id("<a>"), 8U);
  EXPECT_EQ(tokenizer->id("<b>"), 9U);
  EXPECT_EQ(tokenizer->id("<c>"), 10U);
  EXPECT_EQ(tokenizer->vocabulary_size(), 11U);
  EXPECT_EQ(ids_of(*tokenizer, "c<b>abc"), (TokenIds{2, 9, 4, 2}))
      << "a special token of the model's own is found before the model sees the text";
  EXPECT_EQ(tokenizer->special_tokens(), (std::vector<std::pair<std::string, std::string>>{
                                             {"bos_token", "<b>"}, {"eos_token", "ab"}}));
}

TEST(TokenizerLoader, PutsBosAndEosWhereThatReleaseOfTransformersDoes) {
  SmallFile file = letters();
  file.post_processor = R"({"type":"BertProcessing","sep":["c",2],"cls":["b",1]})";
  const auto encoded = [&](std::string_view config, Transformers release) {
    const auto made = Tokenizer::from_json(
        file.json(), R"({"bos_token":"<s>","eos_token":"</s>",)" + std::string(config) + "}",
        {.transformers = release, .model_type = "mistral"});
    return ids_of(**made, "d", AddSpecial::Yes);
  };
  constexpr std::string_view kBoth =
      R"("tokenizer_class":"LlamaTokenizer","add_bos_token":true,"add_eos_token":true)";
  EXPECT_EQ(encoded(kBoth, Transformers::V5), (TokenIds{1, 3, 2}));
  EXPECT_EQ(encoded(kBoth, Transformers::V4), (TokenIds{8, 3, 9}));
  EXPECT_EQ(encoded(R"("tokenizer_class":"LlamaTokenizer")", Transformers::V4), (TokenIds{8, 3}))
      << "the class has a bos_token of its own accord";
  EXPECT_EQ(
      encoded(R"("tokenizer_class":"LlamaTokenizer","add_bos_token":false)", Transformers::V4),
      (TokenIds{3}));
  EXPECT_EQ(encoded(R"("tokenizer_class":"PreTrainedTokenizerFast","add_bos_token":true)",
                    Transformers::V4),
            (TokenIds{1, 3, 2}));
}

// Yi: the file has no prefix, the class that transformers 5 builds does.
TEST(TokenizerLoader, BuildsLlamasClassAnewAsTransformers5Does) {
  SmallFile file{.model = R"({"type":"BPE","vocab":{"a":0,"▁":1,"▁a":2},"merges":["▁ a"]})",
                 .normalizer = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})"};
  const auto loaded = [&](Transformers release) {
    return *Tokenizer::from_json(file.json(),
                                 R"({"tokenizer_class":"LlamaTokenizer","legacy":true})",
                                 {.transformers = release, .model_type = "llama"});
  };
  EXPECT_EQ(ids_of(*loaded(Transformers::V4), "a a"), (TokenIds{0, 2}));
  EXPECT_EQ(ids_of(*loaded(Transformers::V5), "a a"), (TokenIds{2, 2}));
  EXPECT_TRUE(loaded(Transformers::V5)->differs_by_release());
  EXPECT_FALSE((*Tokenizer::from_json(file.json(), ""))->differs_by_release());
}

TEST(TokenizerLoader, LetsTheConfigurationDecideOnThePrefix) {
  SmallFile file = byte_level_file();
  EXPECT_EQ(ids_of(*make(file), "hello"), (TokenIds{259}));
  EXPECT_EQ(ids_of(*make(file, R"({"add_prefix_space":true})"), "hello"), (TokenIds{' ', 259}))
      << "h e merges before the space and h";
}

TEST(TokenizerLoader, ReadsRankFiles) {
  // "a" 0, "b" 1, "ab" 2, " " 3
  constexpr std::string_view kRanks = "YQ== 0\nYg== 1\nYWI= 2\nIA== 3\n";
  const auto made = Tokenizer::from_tiktoken(
      kRanks, R"({"added_tokens_decoder":{"77":{"content":"<x>","special":true}},)"
              R"("bos_token":"<x>"})");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(ids_of(**made, "ab ab<x>"), (TokenIds{2, 3, 2, 77}));
  EXPECT_EQ((*made)->decode(TokenIds{2, 3, 77}, SkipSpecial::No), "ab <x>");
  const auto by_letter = Tokenizer::from_tiktoken(kRanks, R"({"pattern":"[a-z]"})");
  ASSERT_TRUE(by_letter);
  EXPECT_EQ(ids_of(**by_letter, "ab"), (TokenIds{0, 1}));
}

TEST(TokenizerLoader, NamesTheFileAndTheFeatureThatItDoesNotKnow) {
  SmallFile file = letters();
  file.model = R"({"type":"Odd"})";
  EXPECT_EQ(refusal(file), "tokenizer.json: the model \"Odd\" is not known to Baton");
  file = letters();
  file.decoder = R"({"type":"Odd"})";
  EXPECT_EQ(refusal(file), "tokenizer.json: the decoder \"Odd\" is not known to Baton");
  file = letters();
  file.post_processor = R"({"type":"Odd"})";
  EXPECT_EQ(refusal(file), "tokenizer.json: the post_processor \"Odd\" is not known to Baton");
  file = letters();
  file.pre_tokenizer = R"({"type":"Odd"})";
  EXPECT_TRUE(refusal(file).starts_with("tokenizer.json: "));
  EXPECT_NE(refusal(file).find("Odd"), std::string::npos);
  file = letters();
  file.normalizer = R"({"type":"Odd"})";
  EXPECT_NE(refusal(file).find("Odd"), std::string::npos);
  file = letters();
  file.added_tokens = R"([{"id":1}])";
  EXPECT_EQ(refusal(file), "tokenizer.json: added_tokens[0]: \"content\" is missing");
  EXPECT_EQ(refusal(letters(), "{"),
            "tokenizer_config.json: " + refusal(letters(), "{").substr(23));
}

TEST(TokenizerLoader, NamesMembersThatItDoesNotKnow) {
  std::string json = letters().json();
  json.insert(1, R"("future_section":{},)");
  const auto made = Tokenizer::from_json(std::move(json), "");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(),
            "tokenizer.json: the file: \"future_section\" is not known to Baton");
  SmallFile file = letters();
  file.added_tokens = R"([{"id":9,"content":"<x>","odd":true}])";
  EXPECT_EQ(refusal(file), "tokenizer.json: added_tokens[0]: \"odd\" is not known to Baton");
  file = byte_level_file();
  file.pre_tokenizer.insert(1, R"("odd":1,)");
  EXPECT_NE(refusal(file, R"({"add_prefix_space":true})").find("`odd`"), std::string::npos)
      << "also where the configuration has its word";
}

TEST(TokenizerLoader, RefusesAPlaceThatANormalizerMayHide) {
  SmallFile file = letters();
  file.pre_tokenizer =
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true})";
  EXPECT_EQ(refusal(file), "");
  file.normalizer = R"({"type":"Strip","strip_left":true,"strip_right":false})";
  EXPECT_NE(refusal(file).find("prepend_scheme \"first\""), std::string::npos);
}

TEST(TokenizerLoader, RefusesWhatIsNoTokenizer) {
  const auto refused = [](std::string json) {
    const auto made = Tokenizer::from_json(std::move(json), "");
    return made ? "" : made.error().message();
  };
  EXPECT_TRUE(refused("").starts_with("tokenizer.json: not valid JSON"));
  EXPECT_EQ(refused("[]"), "tokenizer.json: the file is not an object");
  EXPECT_EQ(refused("{}"), "tokenizer.json: the file: \"model\" is missing");
  EXPECT_EQ(refused(R"({"version":"2.0","model":{}})"),
            "tokenizer.json: the file: the version \"2.0\" is not known to Baton");
}

}  // namespace
}  // namespace baton::tokenizer
