// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/scanner.h"

#include "libs/tokenizer/text/pattern.h"
#include "libs/tokenizer/text/split.h"
#include "libs/tokenizer/text/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

namespace baton::tokenizer {
namespace {

using testing::ElementsAre;

constexpr std::string_view kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2WithMarks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeek =
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

// Strings in which everything that a pattern tells apart meets everything else.
class RandomText {
 public:
  std::string next() {
    static constexpr auto kParts = std::to_array<std::string_view>(
        {"a",      "b",          "Z",          "word",       "Title",      "UPPER",  "'s",
         "'S",     "'ſ",         "'re",        "'LL",        "'v",         "'",      "0",
         "7",      "12",         " ",          "  ",         "\t",         "\r",     "\n",
         "\r\n",   "\v",         "!",          "/",          "+",          "$",      "_",
         ",",      "\x01",       "\x7F",       "é",          "É",          "ß",      "ǅ",
         "ʰ",      "ª",          "²",          "½",          "٣",          "\u0085", "\u00A0",
         "\u180E", "\u2028",     "\u200D",     "\u200B",     "\u3000",     "\uFEFF", "\u0301",
         "\u0323", "\u20DD",     "漢",         "か",         "カ",         "가",     "א",
         "😀",     "👩\u200D👧", "\U0001D400", "\U00010428", "\U00010400", "€",      "«",
         "\uE000"});
    std::string text;
    const std::size_t length = 1 + random_() % 24;
    const std::size_t variety = 2 + random_() % 8;
    std::vector<std::string_view> mine;
    for (std::size_t i = 0; i < variety; ++i) {
      mine.push_back(kParts[random_() % kParts.size()]);
    }
    for (std::size_t i = 0; i < length; ++i) {
      text += random_() % 4 == 0 ? kParts[random_() % kParts.size()] : mine[random_() % variety];
    }
    return text;
  }

 private:
  std::mt19937 random_{20240716};
};

TEST(Scanner, FindsWhatThePatternFinds) {
  for (const std::string_view source :
       {kGpt2Pattern, kCl100k, kQwen2, kQwen2WithMarks, kO200k, kTekken, kDeepSeek}) {
    const auto scanner = scanner_for(source);
    ASSERT_TRUE(scanner) << source;
    const auto pattern = Pattern::compile(source, Dialect::Oniguruma);
    ASSERT_TRUE(pattern) << source;
    RandomText texts;
    for (int i = 0; i < 20'000; ++i) {
      const std::string text = texts.next();
      std::vector<Match> expected;
      std::vector<Match> matches;
      (*pattern)->find_all(text, expected);
      scanner->find_all(text, matches);
      ASSERT_EQ(matches, expected) << text << '\n' << source;
      std::vector<std::string_view> expected_pieces;
      std::vector<std::string_view> pieces;
      split_at(text, expected, SplitBehavior::Isolated, false, expected_pieces);
      ASSERT_TRUE(scanner->isolate(text, pieces));
      ASSERT_EQ(pieces, expected_pieces) << text << '\n' << source;
    }
  }
}

// The same as a whole and in two parts, wherever a space follows a letter.
TEST(Scanner, CutsBetweenWords) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (const std::string_view source :
       {kGpt2Pattern, kCl100k, kQwen2, kQwen2WithMarks, kO200k, kTekken, kDeepSeek}) {
    const auto scanner = scanner_for(source);
    ASSERT_TRUE(scanner->cuts_between_words()) << source;
    RandomText texts;
    int cuts = 0;
    for (int i = 0; i < 10'000; ++i) {
      const std::string whole = texts.next() + (i % 2 == 0 ? "t" : "E") + " " + texts.next();
      std::vector<std::string_view> expected;
      scanner->isolate(whole, expected);
      for (std::size_t at = 1; at < whole.size(); ++at) {
        if (!is_letter(whole[at - 1]) || whole[at] != ' ') continue;
        std::vector<std::string_view> parts;
        scanner->isolate(std::string_view(whole).substr(0, at), parts);
        scanner->isolate(std::string_view(whole).substr(at), parts);
        ASSERT_EQ(parts, expected) << whole << '\n' << source;
        ++cuts;
      }
    }
    EXPECT_GE(cuts, 10'000);
  }
}

TEST(Scanner, IsThereForWhatModelsUse) {
  EXPECT_FALSE(scanner_for(R"(\p{L}+)"));
  EXPECT_FALSE(scanner_for(std::string(kCl100k) + "|x"));
  EXPECT_TRUE(scanner_for(kCl100k)->covers_all());
  EXPECT_FALSE(scanner_for(kDeepSeek)->covers_all());
  // Line ends may be written as they are.
  std::string plain(kQwen2);
  for (std::size_t at = plain.find(R"(\r\n)"); at != std::string::npos;
       at = plain.find(R"(\r\n)")) {
    plain.replace(at, 4, "\r\n");
  }
  EXPECT_TRUE(scanner_for(plain));
}

std::vector<std::string_view> cut_by_pattern(std::string_view pattern, std::string_view text) {
  std::vector<std::string_view> pieces;
  scanner_for(pattern)->isolate(text, pieces);
  return pieces;
}

TEST(Scanner, CutsWords) {
  EXPECT_THAT(cut_by_pattern(kGpt2Pattern, "Hello, I'm  42x!\n\nOK"),
              ElementsAre("Hello", ",", " I", "'m", " ", " 42", "x", "!", "\n", "\n", "OK"));
  EXPECT_THAT(cut_by_pattern(kCl100k, "I'LL pay $12345.\n\n  Now"),
              ElementsAre("I", "'LL", " pay", " $", "123", "45", ".\n\n", " ", " Now"));
  EXPECT_THAT(cut_by_pattern(kO200k, "camelCase HTTPServer's"),
              ElementsAre("camel", "Case", " HTTPServer's"));
  EXPECT_THAT(cut_by_pattern(kDeepSeek, "a 1-b\x01,c"),
              ElementsAre("a", " ", "1", "-b", "\x01", ",c"));
}

}  // namespace
}  // namespace baton::tokenizer
