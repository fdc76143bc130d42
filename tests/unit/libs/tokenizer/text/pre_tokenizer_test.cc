// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/pre_tokenizer.h"

#include "libs/tokenizer/text/byte_alphabet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<std::unique_ptr<const PreTokenizer>> read_pre_tokenizer(std::string_view json) {
  simdjson::dom::parser parser;
  return PreTokenizer::from_json(parser.parse(json.data(), json.size()));
}

std::vector<std::string> cut(std::string_view json, std::string_view text,
                             Place place = Place::First) {
  const auto pre_tokenizer = read_pre_tokenizer(json);
  if (!pre_tokenizer) {
    return {"refused: " + pre_tokenizer.error().message()};
  }
  Pieces pieces;
  (*pre_tokenizer)->split(text, place, pieces);
  return {pieces.views.begin(), pieces.views.end()};
}

std::string pre_tokenizer_refusal(std::string_view json) {
  const auto pre_tokenizer = read_pre_tokenizer(json);
  return pre_tokenizer ? "" : pre_tokenizer.error().message();
}

// Expected pieces are answers of the Hugging Face tokenizers 0.23.

TEST(PreTokenizer, IsNoneWhereNothingCuts) {
  EXPECT_EQ(read_pre_tokenizer("null")->get(), nullptr);
  EXPECT_EQ(read_pre_tokenizer(R"({"type": "Sequence", "pretokenizers": []})")->get(), nullptr);
}

TEST(PreTokenizer, SplitsByRegex) {
  EXPECT_THAT(cut(R"({"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed",
                      "invert": false})",
                  " a\t b "),
              ElementsAre("a", "b"));
  EXPECT_THAT(cut(R"({"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"},
                      "behavior": "Isolated", "invert": false})",
                  "a1234b"),
              ElementsAre("a", "123", "4", "b"));
  EXPECT_THAT(cut(R"({"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Removed",
                      "invert": true})",
                  "ab1cd"),
              ElementsAre("ab", "cd"));
}

TEST(PreTokenizer, SplitsByString) {
  EXPECT_THAT(cut(R"({"type": "Split", "pattern": {"String": " "},
                      "behavior": "MergedWithPrevious", "invert": false})",
                  "a  b c"),
              ElementsAre("a ", " ", "b ", "c"));
  EXPECT_THAT(cut(R"({"type": "Split", "pattern": {"String": ".+"}, "behavior": "Isolated",
                      "invert": false})",
                  "a.+b"),
              ElementsAre("a", ".+", "b"));
  EXPECT_THAT(cut(R"({"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated",
                      "invert": false})",
                  "bé"),
              ElementsAre("b", "é"));
}

TEST(PreTokenizer, HandsOutPlainBytesForByteLevel) {
  constexpr std::string_view kJson =
      R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})";
  EXPECT_THAT(cut(kJson, "a é"), ElementsAre(" a", " é"));
  EXPECT_THAT(cut(kJson, " a"), ElementsAre(" a"));
  EXPECT_TRUE((*read_pre_tokenizer(kJson))->byte_level());
  constexpr std::string_view kWhole =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
          "use_regex": false})";
  EXPECT_THAT(cut(kWhole, "a é"), ElementsAre("a é"));
  EXPECT_TRUE((*read_pre_tokenizer(kWhole))->byte_level());
  EXPECT_FALSE((*read_pre_tokenizer(R"({"type": "Whitespace"})"))->byte_level());
}

// Falcon's: digits are looked for in ByteLevel's alphabet, where a byte of é may be one.
TEST(PreTokenizer, ShowsByteLevelsAlphabetToWhatComesBehind) {
  constexpr std::string_view kJson = R"({"type": "Sequence", "pretokenizers": [
      {"type": "Punctuation", "behavior": "Contiguous"},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
      {"type": "Digits", "individual_digits": false},
      {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated",
       "invert": false}]})";
  EXPECT_THAT(cut(kJson, "a²b 1234, é"),
              ElementsAre("a", "\xC2", "\xB2", "b", " ", "123", "4", ",", " é"));
  EXPECT_TRUE((*read_pre_tokenizer(kJson))->byte_level());
}

TEST(PreTokenizer, CutsWordsAndSigns) {
  EXPECT_THAT(cut(R"({"type": "Whitespace"})", "a_b, c\u200Dd ²x"),
              ElementsAre("a_b", ",", "c\u200Dd", "²", "x"));
  EXPECT_THAT(cut(R"({"type": "WhitespaceSplit"})", "a, b\u0085c"), ElementsAre("a,", "b", "c"));
  EXPECT_THAT(cut(R"({"type": "BertPreTokenizer"})", "a, b!!c"),
              ElementsAre("a", ",", "b", "!", "!", "c"));
  EXPECT_THAT(cut(R"({"type": "Punctuation"})", "a,$b"), ElementsAre("a", ",", "$", "b"));
  EXPECT_THAT(cut(R"({"type": "Punctuation", "behavior": "Contiguous"})", "a,$b"),
              ElementsAre("a", ",$", "b"));
  EXPECT_THAT(cut(R"({"type": "CharDelimiterSplit", "delimiter": "é"})", "aééb"),
              ElementsAre("a", "b"));
  EXPECT_THAT(cut(R"({"type": "FixedLength", "length": 2})", "aébcd"),
              ElementsAre("aé", "bc", "d"));
}

TEST(PreTokenizer, CutsDigits) {
  EXPECT_THAT(cut(R"({"type": "Digits", "individual_digits": true})", "a12½b"),
              ElementsAre("a", "1", "2", "½", "b"));
  EXPECT_THAT(cut(R"({"type": "Digits", "individual_digits": false})", "a12½b"),
              ElementsAre("a", "12½", "b"));
}

TEST(PreTokenizer, MarksSpacesWithMetaspace) {
  EXPECT_THAT(cut(R"({"type": "Metaspace", "replacement": "▁"})", "a  b"),
              ElementsAre("▁a", "▁", "▁b"));
  EXPECT_THAT(cut(R"({"type": "Metaspace", "replacement": "▁"})", " a"), ElementsAre("▁a"));
  EXPECT_THAT(cut(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})", "a b"),
              ElementsAre("a", "▁b"));
  EXPECT_THAT(cut(R"({"type": "Metaspace", "replacement": "▁", "split": false})", "a b"),
              ElementsAre("▁a▁b"));
  EXPECT_THAT(cut(R"({"type": "Metaspace", "replacement": "▁"})", ""), IsEmpty());
}

TEST(PreTokenizer, PrependsToWhatBeginsTheText) {
  constexpr std::string_view kJson =
      R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"})";
  EXPECT_THAT(cut(kJson, "a b"), ElementsAre("▁a", "▁b"));
  EXPECT_THAT(cut(kJson, "a b", Place::Later), ElementsAre("a", "▁b"));
  constexpr std::string_view kBehindSplit = R"({"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"},
      {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]})";
  EXPECT_THAT(cut(kBehindSplit, "a b"), ElementsAre("▁a", "b"));
  EXPECT_THAT(cut(kBehindSplit, " a b"), ElementsAre("a", "b"));
}

TEST(PreTokenizer, AppendsToPiecesThereAre) {
  const auto pre_tokenizer = read_pre_tokenizer(R"({"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"}, {"type": "Punctuation"}]})");
  ASSERT_TRUE(pre_tokenizer);
  Pieces pieces;
  (*pre_tokenizer)->split("a b", Place::First, pieces);
  (*pre_tokenizer)->split("c,", Place::Later, pieces);
  (*pre_tokenizer)->split("", Place::Later, pieces);
  EXPECT_THAT(pieces.views, ElementsAre("a", "b", "c", ","));
}

TEST(PreTokenizer, CutsAsTiktokenDoes) {
  const auto pre_tokenizer = PreTokenizer::from_pattern(R"(\p{L}++|\p{N}{1,3}+)");
  ASSERT_TRUE(pre_tokenizer);
  EXPECT_TRUE((*pre_tokenizer)->byte_level());
  Pieces pieces;
  (*pre_tokenizer)->split("ab1234  é", Place::First, pieces);
  EXPECT_THAT(pieces.views, ElementsAre("ab", "123", "4", "  ", "é"));
  EXPECT_FALSE(PreTokenizer::from_pattern("("));
}

TEST(PreTokenizer, RefusesByName) {
  EXPECT_THAT(pre_tokenizer_refusal(R"({"type": "UnicodeScripts"})"), HasSubstr("UnicodeScripts"));
  EXPECT_THAT(pre_tokenizer_refusal(R"({"type": "Split", "pattern": {"Regex": "(a)\\1"},
                          "behavior": "Isolated", "invert": false})"),
              HasSubstr("\\1"));
  EXPECT_THAT(pre_tokenizer_refusal(R"({"type": "Digits"})"), HasSubstr("individual_digits"));
  for (const char* json :
       {"1",
        "{}",
        R"({"type": 1})",
        R"({"type": "Sequence"})",
        R"({"type": "Sequence", "pretokenizers": [1]})",
        R"({"type": "Split", "pattern": "a", "behavior": "Isolated", "invert": false})",
        R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "isolated",
            "invert": false})",
        R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated"})",
        R"({"type": "Split", "behavior": "Isolated", "invert": false})",
        R"({"type": "ByteLevel", "add_prefix_space": "no", "trim_offsets": true})",
        R"({"type": "ByteLevel", "add_prefix_space": true})",
        R"({"type": "Metaspace"})",
        R"({"type": "Metaspace", "replacement": "ab"})",
        R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "last"})",
        R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})",
        R"({"type": "CharDelimiterSplit", "delimiter": ""})",
        R"({"type": "FixedLength", "length": 0})",
        R"({"type": "FixedLength", "length": -1})",
        R"({"type": "Sequence", "pretokenizers": [
            {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
            {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}]})",
        R"({"type": "Sequence", "pretokenizers": [
            {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
            {"type": "Metaspace", "replacement": "▁"}]})",
        R"({"type": "Sequence", "pretokenizers": [
            {"type": "Metaspace", "replacement": "▁"},
            {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})"}) {
    EXPECT_NE(pre_tokenizer_refusal(json), "") << json;
  }
  std::string deep;
  for (int i = 0; i < 200; ++i) {
    deep += R"({"type": "Sequence", "pretokenizers": [)";
  }
  for (int i = 0; i < 200; ++i) {
    deep += "]}";
  }
  EXPECT_THAT(pre_tokenizer_refusal(deep), HasSubstr("nested too deeply"));
}

TEST(PreTokenizer, RefusesMembersItDoesNotKnow) {
  EXPECT_EQ(
      pre_tokenizer_refusal(R"({"type": "Split", "pattern": {"String": "a"},
                                      "behavior": "Isolated", "invert": false, "max_splits": 1})"),
      "The pre-tokenizer Split of the tokenizer has `max_splits`, which Baton does not know.");
  for (const char* json :
       {R"({"type": "Whitespace", "odd": 1})",
        R"({"type": "Sequence", "pretokenizers": [], "odd": 1})",
        R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "odd": 1})"}) {
    EXPECT_THAT(pre_tokenizer_refusal(json), HasSubstr("`odd`")) << json;
  }
}

TEST(PreTokenizer, TakesMembersThatOlderFilesHave) {
  EXPECT_THAT(cut(R"({"type": "Metaspace", "replacement": "▁", "str_rep": "▁",
                      "add_prefix_space": true, "prepend_scheme": "always", "split": true})",
                  "a b"),
              ElementsAre("▁a", "▁b"));
}

}  // namespace
}  // namespace baton::tokenizer
