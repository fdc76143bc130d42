// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/logprobs.h"

#include "tools/sim/answer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

TEST(Logprobs, TheSampledTokenIsTheLikeliestAndTheOthersFollow) {
  for (std::uint64_t index = 0; index < 20; ++index) {
    const auto tokens = output_logprobs(42, index, 3);
    ASSERT_EQ(tokens.size(), 3U);
    EXPECT_EQ(tokens[0].token, output_token(42, index));
    EXPECT_EQ(tokens[0].text, (index == 0 ? "" : " ") + output_word(42, index));
    EXPECT_LT(tokens[0].logprob, 0);
    EXPECT_GT(tokens[0].logprob, tokens[1].logprob);
    EXPECT_GT(tokens[1].logprob, tokens[2].logprob);
    EXPECT_EQ(output_logprobs(42, index, 0).size(), 1U);
  }
}

TEST(Logprobs, AChatShowsTheTopOnesOnlyWhereTheyAreAskedFor) {
  const auto tokens = output_logprobs(42, 1, 2);
  const auto none = chat_logprob(tokens, 0, TokenNames::Text);
  EXPECT_EQ(none["top_logprobs"], nlohmann::ordered_json::array());
  EXPECT_EQ(none["bytes"].size(), tokens[0].text.size());
  const auto two = chat_logprob(tokens, 2, TokenNames::Ids);
  EXPECT_EQ(two["top_logprobs"].size(), 2U);
  EXPECT_EQ(two["token"], "token_id:" + std::to_string(tokens[0].token));
}

TEST(Logprobs, OffsetsCountCodePoints) {
  CompletionLogprobs lists(3, TokenNames::Text);
  lists.add_unknown(1, "\xC3\xBC\xC3\xBC");
  lists.add(prompt_logprobs(2, " a", 1, 1));
  const auto json = lists.json();
  EXPECT_EQ(json["text_offset"], nlohmann::ordered_json({3, 5}));
  EXPECT_EQ(json["token_logprobs"][0], nullptr);
  EXPECT_EQ(json["top_logprobs"][1].size(), 2U);
}

TEST(Logprobs, APromptBeginsWithoutAny) {
  const auto json = prompt_logprobs_json({5, 6, 7}, {"a", "b", "c"}, 1);
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0], nullptr);
  EXPECT_EQ(json[1]["6"]["decoded_token"], "b");
  EXPECT_EQ(json[2].size(), 2U);
}

}  // namespace
}  // namespace baton::sim
