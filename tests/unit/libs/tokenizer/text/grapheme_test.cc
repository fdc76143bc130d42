// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/grapheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::tokenizer {
namespace {

using testing::ElementsAre;

std::vector<std::string_view> graphemes(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = grapheme_end(text, at);
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

// The rules of UAX #29, one after the other.
TEST(Grapheme, EndsAtControlCharacters) {
  EXPECT_THAT(graphemes("a\r\n\n\u0301b"), ElementsAre("a", "\r\n", "\n", "\u0301", "b"));
}

TEST(Grapheme, IsAHangulSyllable) {
  EXPECT_THAT(graphemes("\u1100\u1161\u11A8\u1100가\u11A8각\u11A8\u1161"),
              ElementsAre("\u1100\u1161\u11A8", "\u1100가\u11A8", "각\u11A8", "\u1161"));
}

TEST(Grapheme, TakesMarksAndPrefixes) {
  EXPECT_THAT(graphemes("a\u0301\u0308b\u0903"), ElementsAre("a\u0301\u0308", "b\u0903"));
  EXPECT_THAT(graphemes("\u0600ab"), ElementsAre("\u0600a", "b"));
}

TEST(Grapheme, IsAConjunct) {
  EXPECT_THAT(graphemes("\u0915\u094D\u0937\u0915"), ElementsAre("\u0915\u094D\u0937", "\u0915"));
  EXPECT_THAT(graphemes("\u0915\u200D\u094D\u0937"), ElementsAre("\u0915\u200D\u094D\u0937"));
  EXPECT_THAT(graphemes("\u0915\u094D\u200C\u0937"), ElementsAre("\u0915\u094D\u200C", "\u0937"));
  EXPECT_THAT(graphemes("\u0915\u0308\u0937"), ElementsAre("\u0915\u0308", "\u0937"));
}

TEST(Grapheme, IsAnEmojiSequence) {
  EXPECT_THAT(graphemes("👩\u200D👧👩"), ElementsAre("👩\u200D👧", "👩"));
  EXPECT_THAT(graphemes("❤\uFE0F\u200D🔥"), ElementsAre("❤\uFE0F\u200D🔥"));
  EXPECT_THAT(graphemes("👩\u200D\u200D👧a\u200D👧"),
              ElementsAre("👩\u200D\u200D", "👧", "a\u200D", "👧"));
}

TEST(Grapheme, IsAPairOfRegionalIndicators) {
  EXPECT_THAT(graphemes("🇩🇪🇫🇷🇮"), ElementsAre("🇩🇪", "🇫🇷", "🇮"));
}

}  // namespace
}  // namespace baton::tokenizer
