// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/answer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
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

TokenId id(std::uint64_t h, std::uint64_t i) {
  return static_cast<TokenId>(60000 + mix(h + times(i + 1, 0x9E3779B97F4A7C15U)) % 256);
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
  const AnswerPlan plan = plan_answer({kHash}, {.cap = 1000});
  EXPECT_EQ(plan.tokens, natural_length(kHash, 16, 64));
  EXPECT_EQ(plan.finish, Finish::Stop);
}

TEST(Answer, LengthWinsWhenTheCapIsReachedTogetherWithTheEnd) {
  const std::uint32_t natural = natural_length(kHash, 16, 64);
  EXPECT_EQ(plan_answer({kHash}, {.cap = natural}).finish, Finish::Length);
  EXPECT_EQ(plan_answer({kHash}, {.cap = natural + 1}).finish, Finish::Stop);
  EXPECT_EQ(plan_answer({kHash}, {.cap = natural - 1}).tokens, natural - 1);
}

TEST(Answer, IgnoreEosRemovesTheEndAndMinTokensRaisesIt) {
  const AnswerPlan ignoring = plan_answer({kHash}, {.cap = 500, .ignore_eos = true});
  EXPECT_EQ(ignoring.tokens, 500U);
  EXPECT_EQ(ignoring.finish, Finish::Length);
  const AnswerPlan raised = plan_answer({kHash}, {.cap = 500, .min_tokens = 100});
  EXPECT_EQ(raised.tokens, 100U);
  EXPECT_EQ(raised.finish, Finish::Stop);
}

TEST(Answer, TextJoinsWordsWithSpaces) {
  const AnswerPlan plan = plan_answer({kHash}, {.cap = 3});
  EXPECT_EQ(text_of(plan), reference::word(kHash, 0) + " " + reference::word(kHash, 1) + " " +
                               reference::word(kHash, 2));
}

TEST(Answer, TextEndsBeforeTheFirstStopString) {
  const std::string whole = text_of(plan_answer({kHash}, {.cap = 10}));
  // Across two tokens, so that no single piece contains it.
  const std::size_t space = whole.find(' ', whole.find(' ') + 1);
  const std::string stop = whole.substr(space - 1, 3);
  const AnswerPlan plan = plan_answer({kHash}, {.cap = 10, .stop = {"never seen", stop}});
  EXPECT_EQ(plan.finish, Finish::Stop);
  EXPECT_EQ(plan.matched_stop, stop);
  EXPECT_EQ(text_of(plan), whole.substr(0, whole.find(stop)));
  EXPECT_LT(plan.tokens, 10U);
}

TEST(Answer, StopStringInTheFirstTokenLeavesNoText) {
  const AnswerPlan plan = plan_answer({kHash}, {.cap = 1, .stop = {output_word(kHash, 0)}});
  EXPECT_EQ(text_of(plan), "");
  EXPECT_EQ(plan.finish, Finish::Stop);
}

TEST(Answer, ToolCallsHaveEightWordsUnlessCutShort) {
  EXPECT_EQ(plan_answer({kHash}, {.cap = 100, .tool_call = true}).tokens, 8U);
  EXPECT_EQ(plan_answer({kHash}, {.cap = 100, .tool_call = true}).finish, Finish::ToolCalls);
  EXPECT_EQ(plan_answer({kHash}, {.cap = 1, .tool_call = true}).finish, Finish::Length);
}

TEST(Answer, ProducedIdsAreNoPiecesOfAText) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(output_token(kHash, i), reference::id(kHash, i));
    EXPECT_GT(output_token(kHash, i), 50000U + 10U);
    EXPECT_LT(output_token(kHash, i), 60256U);
  }
}

std::vector<TokenId> continued(std::vector<TokenId> prompt, std::uint64_t hash,
                               std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) prompt.push_back(reference::id(hash, i));
  return prompt;
}

TEST(Answer, APromptThatEndsWithTheBeginningOfItsAnswerGoesOnThere) {
  const std::vector<TokenId> prompt{5, 6, 7};
  const std::uint64_t hash = reference::hash(prompt);
  const std::string whole = text_of(plan_answer({hash}, {.cap = 1000}));
  const std::uint32_t length = natural_length(hash, 16, 64);
  for (std::uint32_t k = 0; k <= length; ++k) {
    const auto origins = answer_origins(continued(prompt, hash, k), std::nullopt, 1);
    ASSERT_EQ(origins.front(), (AnswerOrigin{hash, k}));
    const AnswerPlan rest = plan_answer(origins.front(), {.cap = 1000});
    EXPECT_EQ(rest.tokens, length - k);
    EXPECT_EQ(rest.finish, Finish::Stop);
    const std::string before = k == 0 ? "" : text_of(plan_answer({hash}, {.cap = k}));
    EXPECT_EQ(before + text_of(rest), whole);
  }
}

TEST(Answer, AContinuationCountsItsOwnTokensOnly) {
  const AnswerOrigin origin{kHash, 10};
  EXPECT_EQ(plan_answer(origin, {.cap = 3}).tokens, 3U);
  EXPECT_EQ(plan_answer(origin, {.cap = 3}).finish, Finish::Length);
  const AnswerLimits longer{.min_output = 12, .max_output = 12, .cap = 50, .min_tokens = 20};
  EXPECT_EQ(plan_answer(origin, longer).tokens, 20U);
  // Stop strings are looked for in the new text, which begins with the joining space.
  const AnswerPlan stopped = plan_answer(origin, {.cap = 5, .stop = {" "}});
  EXPECT_EQ(stopped.text_end, 0U);
  EXPECT_EQ(stopped.tokens, 1U);
}

TEST(Answer, NothingIsLeftOfAnAnswerThatIsWholeInThePrompt) {
  for (const std::uint32_t begun : {16U, 17U}) {
    const AnswerPlan plan =
        plan_answer({kHash, begun}, {.min_output = 16, .max_output = 16, .cap = 50});
    EXPECT_EQ(plan.tokens, 0U);
    EXPECT_EQ(plan.finish, Finish::Stop);
    AnswerCursor cursor(plan);
    const AnswerCursor::Piece end = cursor.next();
    EXPECT_EQ(end.text, "");
    EXPECT_EQ(end.token, std::nullopt);
    EXPECT_EQ(cursor.produced(), 0U);
  }
}

TEST(Answer, ProducedIdsThatDoNotFollowFromThePromptArePartOfIt) {
  const std::vector<TokenId> prompt{5, 6, 7};
  std::vector<TokenId> wrong = continued(prompt, reference::hash(prompt), 6);
  std::swap(wrong[4], wrong[5]);
  ASSERT_NE(wrong[4], wrong[5]);
  const AnswerOrigin origin = answer_origins(wrong, std::nullopt, 1).front();
  EXPECT_NE(origin.hash, reference::hash(prompt));
  // And what is said then can be continued just as well.
  const std::vector<TokenId> asked(wrong.begin(), wrong.end() - origin.begun);
  EXPECT_EQ(origin.hash, reference::hash(asked));
  const auto further =
      answer_origins(continued(asked, origin.hash, origin.begun + 9), std::nullopt, 1);
  EXPECT_EQ(further.front(), (AnswerOrigin{origin.hash, origin.begun + 9}));
}

TEST(Answer, ChoicesOfASeedAreTheAnswersToTheSeedsThatFollow) {
  const std::vector<TokenId> prompt{5, 6, 7};
  const std::uint64_t hash = reference::hash(prompt);
  const auto seeded = answer_origins(prompt, 40, 3);
  for (std::uint64_t k = 0; k < 3; ++k) {
    EXPECT_EQ(seeded[k].hash, hash ^ reference::mix(40 + k + 0x9E3779B97F4A7C15U));
    EXPECT_EQ(seeded[k], answer_origins(prompt, 40 + k, 1).front());
    EXPECT_EQ(answer_origins(prompt, std::nullopt, 3)[k].hash, hash + k);
  }
  // A seeded answer goes on with its seed only.
  const auto half = continued(prompt, seeded[0].hash, 5);
  EXPECT_EQ(answer_origins(half, 40, 1).front(), (AnswerOrigin{seeded[0].hash, 5}));
  EXPECT_NE(answer_origins(half, 41, 1).front().begun, 5U);
}

}  // namespace
}  // namespace baton::sim
