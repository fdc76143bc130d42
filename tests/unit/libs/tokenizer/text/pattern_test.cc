// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/pattern.h"

#include "libs/tokenizer/text/too_hard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace baton::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> found(std::string_view pattern, std::string_view text,
                               Dialect dialect = Dialect::Oniguruma) {
  const auto compiled = Pattern::compile(pattern, dialect);
  if (!compiled) {
    return {"refused: " + compiled.error().message()};
  }
  std::vector<Match> matches;
  (*compiled)->find_all(text, matches);
  std::vector<std::string> pieces;
  for (const Match& match : matches) {
    pieces.emplace_back(text.substr(match.begin, match.end - match.begin));
  }
  return pieces;
}

std::string pattern_refusal(std::string_view pattern, Dialect dialect = Dialect::Oniguruma) {
  const auto compiled = Pattern::compile(pattern, dialect);
  return compiled ? "" : compiled.error().message();
}

TEST(Pattern, FindsCharactersOfClasses) {
  EXPECT_THAT(found(R"(\p{L}+)", "añ1漢字 x"), ElementsAre("añ", "漢字", "x"));
  EXPECT_THAT(found(R"([^\s\p{L}\p{N}]+)", "a, b!?1"), ElementsAre(",", "!?"));
  EXPECT_THAT(found(R"([\p{L}&&[^\p{Han}]]+)", "a漢b"), ElementsAre("a", "b"));
  EXPECT_THAT(found(R"([a-c[x-z]-]+)", "ax-dz"), ElementsAre("ax-", "z"));
  EXPECT_THAT(found(R"([[:alpha:]_]+|[[:^space:]])", "a_ 1"), ElementsAre("a_", "1"));
  EXPECT_THAT(found(R"([\]\-\\]+)", "a]-\\b"), ElementsAre("]-\\"));
  EXPECT_THAT(found(R"(\P{L}|\p{^L})", "a1b"), ElementsAre("1"));
  EXPECT_THAT(found(R"(\h+)", "1fg"), ElementsAre("1f"));
  EXPECT_THAT(found(R"(\x41|\x{1F600}|\u00e9)", "AB😀é"), ElementsAre("A", "😀", "é"));
}

// Unicode 16 has U+105C0, and U+16D40 has been a letter since.
TEST(Pattern, GoesByUnicode16) {
  EXPECT_THAT(found(R"(\p{Lo}+)", "\U000105C0"), ElementsAre("\U000105C0"));
  EXPECT_THAT(found(R"(\s)", "\u0085\u180E\u2028\uFEFF"), ElementsAre("\u0085", "\u2028"));
  EXPECT_THAT(found(R"(\p{N})", "٣½Ⅷ²"), ElementsAre("٣", "½", "Ⅷ", "²"));
}

TEST(Pattern, TakesAlternativesInOrder) {
  EXPECT_THAT(found("a|ab", "abab"), ElementsAre("a", "a"));
  EXPECT_THAT(found("(a|ab)(c|bcd)", "abcd"), ElementsAre("abcd"));
  EXPECT_THAT(found("(?>a+)b|a", "aab"), ElementsAre("aab"));
  EXPECT_THAT(found("a(?#of no account)b", "ab"), ElementsAre("ab"));
  EXPECT_THAT(found("(?<name>a)b", "ab"), ElementsAre("ab"));
}

TEST(Pattern, LooksAround) {
  EXPECT_THAT(found(R"(\s+(?!\S)|\s+)", "a   b  "), ElementsAre("  ", " ", "  "));
  EXPECT_THAT(found("(?<=a)b", "abcb"), ElementsAre("b"));
  EXPECT_THAT(found("(?<!é)b", "ébab"), ElementsAre("b"));
  EXPECT_THAT(found(R"(\ba)", "a ba a"), ElementsAre("a", "a"));
}

// Answers of the Hugging Face tokenizers 0.23.
TEST(Pattern, RepeatsAsOnigurumaDoes) {
  EXPECT_THAT(found(R"(\p{N}{1,3}+)", "1234567"), ElementsAre("1234567"));
  EXPECT_THAT(found("a{2}?", "aaa"), ElementsAre("aa", ""));
  EXPECT_THAT(found("a{2,3}?", "aaaa"), ElementsAre("aa", "aa"));
  EXPECT_THAT(found("a{,2}b", "aaab"), ElementsAre("aab"));
  EXPECT_THAT(found("a?+a|b", "aab"), ElementsAre("aa", "b"));
  EXPECT_THAT(found("a{|{b", "a{b"), ElementsAre("a{"));
  EXPECT_THAT(found("^.", "a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(found(".$", "a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(found(R"(\w+|\W)", "a²"), ElementsAre("a²"));
  EXPECT_THAT(found(R"([\w]+)", "a²"), ElementsAre("a"));
}

TEST(Pattern, RepeatsAsTiktokenDoes) {
  EXPECT_THAT(found(R"(\p{N}{1,3}+)", "1234567", Dialect::FancyRegex),
              ElementsAre("123", "456", "7"));
  EXPECT_THAT(found(R"(\s+$)", " \na ", Dialect::FancyRegex), ElementsAre(" "));
  EXPECT_THAT(found("(?i)a|b", "AB", Dialect::FancyRegex), ElementsAre("A", "B"));
}

TEST(Pattern, IgnoresCaseWhereAsked) {
  EXPECT_THAT(found("(?i:'s|'ll)", "'S'ſ'lL's"), ElementsAre("'S", "'ſ", "'lL", "'s"));
  EXPECT_THAT(found("(?i:k)", "kK\u212A"), ElementsAre("k", "K", "\u212A"));
  EXPECT_THAT(found("a(?i)b|c", "aBaCC"), ElementsAre("aB", "aC"));
  EXPECT_THAT(found("(?i:a(?-i:b))", "ABAb"), ElementsAre("Ab"));
  EXPECT_THAT(found("(?i:[^a-c])", "aBx"), ElementsAre("x"));
  EXPECT_THAT(found(R"((?i:\p{Lu})+)", "aAB"), ElementsAre("AB"));
  EXPECT_THAT(found(R"((?i:[ǅ])+)", "ǆǅǄ"), ElementsAre("ǆǅǄ"));
}

TEST(Pattern, FindsEmptyMatchesOnce) {
  EXPECT_THAT(found("", "ab"), ElementsAre("", "", ""));
  EXPECT_THAT(found("x*", "axb"), ElementsAre("", "x", ""));
  EXPECT_THAT(found("x*", ""), ElementsAre(""));
  EXPECT_THAT(found("é?", "aé"), ElementsAre("", "é"));
}

TEST(Pattern, NamesWhatItRefuses) {
  for (const char* pattern :
       {R"((a)\1)", R"(\R)",     R"(\X)",       R"(\K)",  R"(\p{Nonsense})", R"(\pL)",
        "(?x:a)",   "(?~a)",     "(?(1)a)",     "*a",     "a**?+(",          "[a",
        "[]a]",     R"([\w-z])", R"([a-\d])",   "[z-a]",  "[[:nonsense:]]",  "a{3,1}",
        "a{70000}", ")",         "(a",          R"(\)",   R"(\x{110000})",   R"(\x{D800})",
        R"(\xff)",  "(?i:ss)",   "(?i:f(?:i))", "(?i:ß)", "(?i:[ß])",        "^*",
        "(?=a)*",   "(?<=a+)b"}) {
    EXPECT_THAT(pattern_refusal(pattern), HasSubstr("regular expression")) << pattern;
  }
  EXPECT_THAT(pattern_refusal(R"(a\p{Nonsense})"), HasSubstr(R"(\p{Nonsense})"));
  EXPECT_NE(pattern_refusal(std::string(200, '(') + std::string(200, ')')), "");
  EXPECT_NE(pattern_refusal(std::string(200, '[')), "");
}

TEST(Pattern, GivesUpAloud) {
  const std::string text = "b" + std::string(60, 'a');
  EXPECT_THROW(found("b|(?:a+)+c", text), TooHard);
}

TEST(Pattern, MatchesLongRepeatsOfGroups) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) {
    text += "ab";
  }
  EXPECT_THAT(found("(?:a|b|ab)+c?", text), ElementsAre(text));
}

TEST(Pattern, RunsOnManyThreads) {
  const auto compiled = Pattern::compile(R"(\p{L}+|\s+)", Dialect::Oniguruma);
  ASSERT_TRUE(compiled);
  std::vector<std::vector<Match>> matches(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : matches) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          mine.clear();
          (*compiled)->find_all("ab cd é", mine);
        }
      });
    }
  }
  for (const auto& mine : matches) {
    EXPECT_EQ(mine, (std::vector<Match>{{0, 2}, {2, 3}, {3, 5}, {5, 6}, {6, 8}}));
  }
}

}  // namespace
}  // namespace baton::tokenizer
