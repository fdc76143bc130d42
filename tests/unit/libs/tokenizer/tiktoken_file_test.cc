// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tiktoken_file.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::tokenizer {
namespace {

// "a", "b", "ab", 0xFF, "abab": in base64.
constexpr std::string_view kRankFile = "YQ== 0\nYg== 1\nYWI= 2\r\n/w== 3\n\nYWJhYg== 5\n";

TEST(TiktokenFile, ReadsTokensAndRanks) {
  const auto source = read_tiktoken(kRankFile);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(source->vocabulary.find("a"), 0U);
  EXPECT_EQ(source->vocabulary.find("ab"), 2U);
  EXPECT_EQ(source->vocabulary.find("\xFF"), 3U);
  EXPECT_EQ(source->vocabulary.find("abab"), 5U);
  EXPECT_EQ(source->vocabulary.size(), 5U);
}

TEST(TiktokenFile, FindsEveryWayToMakeAToken) {
  const auto source = read_tiktoken(kRankFile);
  ASSERT_TRUE(source);
  EXPECT_EQ(source->merges.find(0, 1).id, 2U);
  EXPECT_EQ(source->merges.find(2, 2).id, 5U);
  EXPECT_EQ(source->merges.find(2, 2).rank, 5U);
  EXPECT_EQ(source->merges.size(), 2U);
}

TEST(TiktokenFile, SaysInWhichLineItIsWrong) {
  const auto refusal = [](std::string_view ranks) {
    const auto source = read_tiktoken(ranks);
    return source ? "" : source.error().message();
  };
  EXPECT_EQ(refusal(""), "the file has no tokens");
  EXPECT_EQ(refusal("YQ== 0\nYQ"), "line 2: not a token in base64 and its rank");
  EXPECT_EQ(refusal("Y!== 0"), "line 1: not a token in base64 and its rank");
  EXPECT_EQ(refusal("YQ== x"), "line 1: the rank is not a whole number");
  EXPECT_EQ(refusal("YQ== 0\nYg== 0"),
            "line 2: the token or its rank is there twice, or the rank is not below 4194304");
}

}  // namespace
}  // namespace baton::tokenizer
