// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/token_matcher.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace baton::tokenizer {
namespace {

TEST(TokenMatcher, TakesTheLongestOfThoseThatBeginFirst) {
  TokenMatcher matcher;
  matcher.add("<|a", 1);
  matcher.add("<|a|>", 2);
  matcher.add("a|>b", 3);
  const auto match = matcher.find("x<|a|>b", 0);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->id, 2U);
  EXPECT_EQ(match->begin, 1U);
  EXPECT_EQ(match->end, 6U);
  EXPECT_EQ(matcher.find("x<|a|>b", 2)->id, 3U);
}

TEST(TokenMatcher, FindsNothingInItsAbsence) {
  TokenMatcher matcher;
  EXPECT_TRUE(matcher.empty());
  EXPECT_FALSE(matcher.find("text", 0));
  matcher.add("<s>", 1);
  EXPECT_FALSE(matcher.find("", 0));
  EXPECT_FALSE(matcher.find("a long text with < and <s but not the token", 0));
}

TEST(TokenMatcher, FindsAPatternAtAnyPlace) {
  for (const std::string_view begins : {"<", "<[", "<[#@!%", "<[#@!%&*()+="}) {
    TokenMatcher matcher;
    for (const char begin : begins) matcher.add(std::string(1, begin) + "x", 1);
    for (std::size_t at = 0; at < 60; ++at) {
      std::string text(60, '.');
      text += begins.back();
      text.insert(at, std::string(1, begins.back()) + "x");
      const auto match = matcher.find(text, 0);
      ASSERT_TRUE(match);
      ASSERT_EQ(match->begin, at);
      ASSERT_FALSE(matcher.find(text, at + 1));
    }
  }
}

TEST(TokenMatcher, LetsTheFirstOfEqualPatternsCount) {
  TokenMatcher matcher;
  matcher.add("x", 1);
  matcher.add("x", 2);
  EXPECT_EQ(matcher.find("x", 0)->id, 1U);
}

TEST(TokenMatcher, AgreesWithTryingEveryPattern) {
  std::mt19937 random(3);
  const auto text_of = [&](std::size_t length) {
    std::string text(length, ' ');
    for (char& one : text) one = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> patterns;
    TokenMatcher matcher;
    for (TokenId id = 0; id < 6; ++id) {
      patterns.push_back(text_of(1 + random() % 5));
      matcher.add(patterns.back(), id);
    }
    const std::string text = text_of(30);
    for (std::size_t from = 0; from <= text.size(); ++from) {
      std::size_t begin = from;
      std::size_t length = 0;
      for (; begin < text.size() && length == 0; begin += length == 0 ? 1 : 0) {
        for (const std::string& pattern : patterns) {
          if (text.compare(begin, pattern.size(), pattern) == 0) {
            length = std::max(length, pattern.size());
          }
        }
      }
      const auto match = matcher.find(text, from);
      ASSERT_EQ(match.has_value(), length > 0);
      if (!match) continue;
      ASSERT_EQ(match->begin, begin);
      ASSERT_EQ(match->end, begin + length);
      ASSERT_EQ(patterns[match->id], text.substr(begin, length));
    }
  }
}

}  // namespace
}  // namespace baton::tokenizer
