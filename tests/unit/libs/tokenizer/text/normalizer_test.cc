// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::tokenizer {
namespace {

using testing::HasSubstr;

Result<std::unique_ptr<const Normalizer>> read_normalizer(std::string_view json) {
  simdjson::dom::parser parser;
  return Normalizer::from_json(parser.parse(json.data(), json.size()));
}

std::string normalized(std::string_view json, std::string_view text) {
  const auto normalizer = read_normalizer(json);
  if (!normalizer) {
    return "refused: " + normalizer.error().message();
  }
  std::string buffer;
  return std::string((*normalizer)->apply(text, buffer));
}

std::string normalizer_refusal(std::string_view json) {
  const auto normalizer = read_normalizer(json);
  return normalizer ? "" : normalizer.error().message();
}

// Expected texts are answers of the Hugging Face tokenizers 0.23.

TEST(Normalizer, IsNoneWhereNothingIsToBeDone) {
  EXPECT_EQ(read_normalizer("null")->get(), nullptr);
  EXPECT_EQ(read_normalizer(R"({"type": "Sequence", "normalizers": []})")->get(), nullptr);
}

TEST(Normalizer, LeavesTextAloneThatStaysAsItIs) {
  for (const char* json :
       {R"({"type": "NFC"})", R"({"type": "NFKD"})", R"({"type": "Lowercase"})",
        R"({"type": "StripAccents"})", R"({"type": "Nmt"})", R"({"type": "ByteLevel"})",
        R"({"type": "Strip", "strip_left": true, "strip_right": true})",
        R"({"type": "Prepend", "prepend": ""})",
        R"({"type": "Replace", "pattern": {"String": " "}, "content": "_"})",
        R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]})"}) {
    const auto normalizer = read_normalizer(json);
    ASSERT_TRUE(normalizer) << json;
    const std::string_view text = "plain";
    std::string buffer = "kept";
    EXPECT_EQ((*normalizer)->apply(text, buffer).data(), text.data()) << json;
    EXPECT_EQ(buffer, "kept") << json;
  }
}

TEST(Normalizer, LowersLettersOneByOne) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "ΑΣ Σ İ ẞ Éa"), "ασ σ i\u0307 ß éa");
}

TEST(Normalizer, StripsSpace) {
  constexpr std::string_view kBoth =
      R"({"type": "Strip", "strip_left": true, "strip_right": true})";
  EXPECT_EQ(normalized(kBoth, "\u3000 é a\u0085\n"), "é a");
  EXPECT_EQ(normalized(kBoth, " \t"), "");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a "),
            " a");
}

TEST(Normalizer, StripsAccents) {
  EXPECT_EQ(normalized(R"({"type": "StripAccents"})", "e\u0301éa\u20DD"), "eéa");
}

TEST(Normalizer, Replaces) {
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})", " a b"),
      "▁a▁b");
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "$1"})", "a \tb"),
      "a$1b");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"Regex": "x*"}, "content": "-"})", "axb"),
            "-a-b-");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"String": ""}, "content": "-"})", "ab"),
            "-a-b-");
}

TEST(Normalizer, PrependsToWhatIsNotEmpty) {
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", "a"), "▁a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", ""), "");
}

TEST(Normalizer, WritesByteLevelsAlphabet) {
  EXPECT_EQ(normalized(R"({"type": "ByteLevel"})", "é a"), "Ã©Ġa");
}

TEST(Normalizer, CleansForNmt) {
  EXPECT_EQ(normalized(R"({"type": "Nmt"})",
                       "a\u200Bb\x01\x7F"
                       "c\u2581\tö\u00A0"),
            "a bc  ö\u00A0");
}

TEST(Normalizer, DoesWhatBertDoes) {
  const auto bert = [](bool clean, bool chinese, std::string_view accents, bool lower) {
    return std::string(R"({"type": "BertNormalizer", "clean_text": )") +
           (clean ? "true" : "false") + R"(, "handle_chinese_chars": )" +
           (chinese ? "true" : "false") + R"(, "strip_accents": )" + std::string(accents) +
           R"(, "lowercase": )" + (lower ? "true" : "false") + "}";
  };
  EXPECT_EQ(normalized(bert(true, true, "null", true), "Éa漢"), "ea 漢 ");
  EXPECT_EQ(normalized(bert(true, true, "null", false), "Éa漢"), "Éa 漢 ");
  EXPECT_EQ(normalized(bert(false, false, "true", false), "Éa漢"), "Ea漢");
  EXPECT_EQ(normalized(bert(true, false, "false", false), "a\t\x01\uFFFD\u00A0\u200Bb\u0085"),
            "a  b");
}

TEST(Normalizer, DoesOneAfterTheOther) {
  constexpr std::string_view kJson = R"({"type": "Sequence", "normalizers": [
      {"type": "NFD"}, {"type": "Sequence", "normalizers": [{"type": "StripAccents"}]},
      {"type": "Lowercase"}, {"type": "Strip", "strip_left": true, "strip_right": true},
      {"type": "Prepend", "prepend": "> "}]})";
  EXPECT_EQ(normalized(kJson, " ÉA "), "> ea");
  EXPECT_EQ(normalized(kJson, "a"), "> a");
  EXPECT_EQ(normalized(kJson, " \u0301 "), "");
  // The last step leaves a part of what the one before it made.
  EXPECT_EQ(
      normalized(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"},
                      {"type": "Strip", "strip_left": true, "strip_right": true}]})",
                 " E\u0301 "),
      "é");
}

TEST(Normalizer, RefusesByName) {
  EXPECT_THAT(normalizer_refusal(R"({"type": "Transliterate"})"), HasSubstr("Transliterate"));
  EXPECT_THAT(normalizer_refusal(R"({"type": "Strip", "strip_left": true})"),
              HasSubstr("strip_right"));
  for (const char* json :
       {"[]", "{}", R"({"type": "Sequence"})", R"({"type": "Sequence", "normalizers": {}})",
        R"({"type": "Prepend"})", R"({"type": "BertNormalizer"})",
        R"({"type": "Replace", "pattern": " ", "content": "a"})",
        R"({"type": "Replace", "pattern": {"Regex": "("}, "content": "a"})",
        R"({"type": "Replace", "pattern": {"Regex": "a"}})"}) {
    EXPECT_NE(normalizer_refusal(json), "") << json;
  }
}

TEST(Normalizer, RefusesMembersItDoesNotKnow) {
  EXPECT_EQ(normalizer_refusal(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "b",
                                   "flags": "once"})"),
            "The normalizer Replace of the tokenizer has `flags`, which Baton does not know.");
  for (const char* json : {R"({"type": "NFC", "odd": null})", R"({"type": "NFC", "": 1})",
                           R"({"type": "Sequence", "normalizers": [], "odd": 1})",
                           R"({"type": "Sequence", "normalizers": [{"type": "Nmt", "odd": 1}]})"}) {
    EXPECT_NE(normalizer_refusal(json), "") << json;
  }
  EXPECT_EQ(normalizer_refusal(R"({"type": "Replace", "pattern": {"String": "a", "odd": 1},
                                   "content": "b"})"),
            "A pattern of the tokenizer has `odd` beside its `String`, which Baton does not know.");
}

}  // namespace
}  // namespace baton::tokenizer
