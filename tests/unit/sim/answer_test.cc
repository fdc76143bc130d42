// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::sim {
namespace {

// A second reading of the documented text function, kept apart from the one under test: 128-bit
// arithmetic reduced by hand, tables as one string, no shared constants.
namespace reference {

using Wide = unsigned __int128;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((Wide{a} * Wide{b}) % (Wide{1} << 64U));
}

std::uint64_t mix(std::uint64_t z) {
  z = times(z ^ (z >> 30), 0xBF58476D1CE4E5B9U);
  z = times(z ^ (z >> 27), 0x94D049BB133111EBU);
  return z ^ (z >> 31);
}

std::uint64_t hash(const std::vector<TokenId>& tokens) {
  std::uint64_t h = 14695981039346656037U;
  for (TokenId token : tokens) {
    for (int i = 0; i < 4; ++i) {
      h = times(h ^ (token % 256), 1099511628211U);
      token /= 256;
    }
  }
  return h;
}

std::string word(std::uint64_t h, std::uint64_t i) {
  static const std::vector<std::string> kA{"ka", "lo", "mi", "ru", "te", "so",  "na", "vi",
                                           "pe", "du", "ra", "li", "mo", "shi", "be", "fo"};
  static const std::vector<std::string> kB{"n",  "ra", "to", "mi", "lu", "se", "ki", "va",
                                           "do", "ne", "ri", "sa", "tu", "me", "lo", "ha"};
  const std::uint64_t x = mix(h + times(i + 1, 0x9E3779B97F4A7C15U));
  return kA[x % 16] + kB[x / 16 % 16];
}

}  // namespace reference

std::vector<TokenId> tokens_of(std::string_view text) {
  std::vector<TokenId> tokens;
  append_tokens(text, tokens);
  return tokens;
}

std::string text_of(const AnswerPlan& plan) {
  std::string text;
  AnswerCursor cursor(plan);
  while (!cursor.done()) text += cursor.next().text;
  return text;
}

constexpr std::uint64_t kHash = 0x0123456789ABCDEFU;

TEST(Answer, TokenIdsAreTheFnvOfThePiece) {
  // FNV-1a-32 of "" is the offset basis 2166136261; of "a" it is 0xE40C292C (published vectors).
  EXPECT_EQ(token_of(""), 2166136261U % 50000 + 10);
  EXPECT_EQ(token_of("a"), 0xE40C292CU % 50000 + 10);
  EXPECT_EQ(token_of("foobar"), 0xBF9CF968U % 50000 + 10);
}

TEST(Answer, TextIsCutIntoRunsOfWordBytesAndSingleOthers) {
  EXPECT_EQ(tokens_of("ab_9, c"),
            (std::vector<TokenId>{token_of("ab_9"), token_of(","), token_of(" "), token_of("c")}));
  EXPECT_EQ(tokens_of("h\xC3\xA9!!"),
            (std::vector<TokenId>{token_of("h\xC3\xA9"), token_of("!"), token_of("!")}));
  EXPECT_TRUE(tokens_of("").empty());
}

TEST(Answer, HashAndWordsFollowTheDocumentedFunction) {
  const std::vector<TokenId> tokens{1, 256, 49999, 7};
  EXPECT_EQ(hash_prompt(tokens), reference::hash(tokens));
  for (std::uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(output_word(kHash, i), reference::word(kHash, i)) << i;
  }
}

TEST(Answer, NaturalLengthStaysInItsBoundsAndFollowsTheHash) {
  for (std::uint64_t h = 0; h < 500; ++h) {
    const std::uint32_t length = natural_length(h, 16, 64);
    EXPECT_EQ(length, 16 + reference::mix(h ^ 0xA5A5A5A5A5A5A5A5U) % 49);
  }
  EXPECT_EQ(natural_length(kHash, 5, 5), 5U);
}

TEST(Answer, EndsByItselfWithStop) {
  const AnswerPlan plan = plan_answer(kHash, {.cap = 1000});
  EXPECT_EQ(plan.tokens, natural_length(kHash, 16, 64));
  EXPECT_EQ(plan.finish, Finish::Stop);
}

TEST(Answer, LengthWinsWhenTheCapIsReachedTogetherWithTheEnd) {
  const std::uint32_t natural = natural_length(kHash, 16, 64);
  EXPECT_EQ(plan_answer(kHash, {.cap = natural}).finish, Finish::Length);
  EXPECT_EQ(plan_answer(kHash, {.cap = natural + 1}).finish, Finish::Stop);
  EXPECT_EQ(plan_answer(kHash, {.cap = natural - 1}).tokens, natural - 1);
}

TEST(Answer, IgnoreEosRemovesTheEndAndMinTokensRaisesIt) {
  const AnswerPlan ignoring = plan_answer(kHash, {.cap = 500, .ignore_eos = true});
  EXPECT_EQ(ignoring.tokens, 500U);
  EXPECT_EQ(ignoring.finish, Finish::Length);
  const AnswerPlan raised = plan_answer(kHash, {.cap = 500, .min_tokens = 100});
  EXPECT_EQ(raised.tokens, 100U);
  EXPECT_EQ(raised.finish, Finish::Stop);
}

TEST(Answer, TextJoinsWordsWithSpaces) {
  const AnswerPlan plan = plan_answer(kHash, {.cap = 3});
  EXPECT_EQ(text_of(plan), reference::word(kHash, 0) + " " + reference::word(kHash, 1) + " " +
                               reference::word(kHash, 2));
}

TEST(Answer, TextEndsBeforeTheFirstStopString) {
  const std::string whole = text_of(plan_answer(kHash, {.cap = 10}));
  // Across two tokens, so that no single piece contains it.
  const std::size_t space = whole.find(' ', whole.find(' ') + 1);
  const std::string stop = whole.substr(space - 1, 3);
  const AnswerPlan plan = plan_answer(kHash, {.cap = 10, .stop = {"never seen", stop}});
  EXPECT_EQ(plan.finish, Finish::Stop);
  EXPECT_EQ(plan.matched_stop, stop);
  EXPECT_EQ(text_of(plan), whole.substr(0, whole.find(stop)));
  EXPECT_LT(plan.tokens, 10U);
}

TEST(Answer, StopStringInTheFirstTokenLeavesNoText) {
  const AnswerPlan plan = plan_answer(kHash, {.cap = 1, .stop = {output_word(kHash, 0)}});
  EXPECT_EQ(text_of(plan), "");
  EXPECT_EQ(plan.finish, Finish::Stop);
}

TEST(Answer, ToolCallsHaveEightWordsUnlessCutShort) {
  EXPECT_EQ(plan_answer(kHash, {.cap = 100, .tool_call = true}).tokens, 8U);
  EXPECT_EQ(plan_answer(kHash, {.cap = 100, .tool_call = true}).finish, Finish::ToolCalls);
  EXPECT_EQ(plan_answer(kHash, {.cap = 1, .tool_call = true}).finish, Finish::Length);
}

}  // namespace
}  // namespace baton::sim
