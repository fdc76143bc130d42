// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::tokenizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string_view> cut(std::string_view text, std::vector<Match> matches,
                                  SplitBehavior behavior, bool invert = false) {
  std::vector<std::string_view> pieces;
  split_at(text, matches, behavior, invert, pieces);
  return pieces;
}

// The example of the Hugging Face tokenizers' own documentation.
TEST(Split, DoesWithMatchesWhatTheBehaviorSays) {
  const std::string_view text = "the-final--countdown";
  const std::vector<Match> dashes{{3, 4}, {9, 10}, {10, 11}};
  EXPECT_THAT(cut(text, dashes, SplitBehavior::Removed), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(cut(text, dashes, SplitBehavior::Isolated),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(cut(text, dashes, SplitBehavior::MergedWithPrevious),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(cut(text, dashes, SplitBehavior::MergedWithNext),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(cut(text, dashes, SplitBehavior::Contiguous),
              ElementsAre("the", "-", "final", "--", "countdown"));
}

TEST(Split, CountsWhatLiesBetweenWhereInverted) {
  const std::vector<Match> matches{{1, 2}, {3, 4}};
  EXPECT_THAT(cut("a-b-c", matches, SplitBehavior::Removed, true), ElementsAre("-", "-"));
  EXPECT_THAT(cut("a-b-c", matches, SplitBehavior::MergedWithPrevious, true),
              ElementsAre("a", "-b", "-c"));
}

TEST(Split, TakesMatchesAtTheEnds) {
  const std::vector<Match> matches{{0, 1}, {2, 3}};
  EXPECT_THAT(cut("-a-", matches, SplitBehavior::MergedWithPrevious), ElementsAre("-", "a-"));
  EXPECT_THAT(cut("-a-", matches, SplitBehavior::MergedWithNext), ElementsAre("-a", "-"));
  EXPECT_THAT(cut("-a-", matches, SplitBehavior::Removed), ElementsAre("a"));
  EXPECT_THAT(cut("-", {{{0, 1}}}, SplitBehavior::Removed), IsEmpty());
}

TEST(Split, LeavesOutEmptyPieces) {
  const std::vector<Match> empty{{0, 0}, {1, 1}, {2, 2}};
  EXPECT_THAT(cut("ab", empty, SplitBehavior::Isolated), ElementsAre("a", "b"));
  EXPECT_THAT(cut("ab", empty, SplitBehavior::Contiguous), ElementsAre("a", "b"));
  EXPECT_THAT(cut("ab", empty, SplitBehavior::Removed, true), IsEmpty());
  EXPECT_THAT(cut("ab", {}, SplitBehavior::Isolated), ElementsAre("ab"));
}

TEST(Split, KnowsTheNamesOfBehaviors) {
  EXPECT_EQ(split_behavior("MergedWithNext"), SplitBehavior::MergedWithNext);
  EXPECT_EQ(split_behavior("Contiguous"), SplitBehavior::Contiguous);
  EXPECT_FALSE(split_behavior("isolated"));
}

}  // namespace
}  // namespace baton::tokenizer
