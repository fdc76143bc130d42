// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/word_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::tokenizer {
namespace {

TEST(WordMemory, CopiesTheTokensOfAWordThatComesAgain) {
  WordMemory memory;
  TokenIds ids{9};
  EXPECT_FALSE(memory.append_known("word", ids));
  memory.remember("word", TokenIds{1, 2, 3});
  EXPECT_TRUE(memory.append_known("word", ids));
  EXPECT_EQ(ids, (TokenIds{9, 1, 2, 3}));
  EXPECT_FALSE(memory.append_known("wor", ids));
  EXPECT_FALSE(memory.append_known("words", ids));
}

TEST(WordMemory, LongWordsAndLongAnswersMayBeForgottenButAreNeverCut) {
  WordMemory memory;
  for (std::size_t size = 1; size < 100; ++size) {
    const std::string word(size, 'x');
    const TokenIds expected(size % 20 + 1, static_cast<TokenId>(size));
    memory.remember(word, expected);
    TokenIds ids;
    if (memory.append_known(word, ids)) {
      EXPECT_EQ(ids, expected) << size;
    }
  }
}

// More words than it has room for, many alike in length and ends: never another word's tokens.
TEST(WordMemory, NeverTakesOneWordForAnother) {
  WordMemory memory;
  std::vector<std::string> words;
  for (unsigned at = 0; at < 20'000; ++at) words.push_back(std::to_string(at) + "endofaword");
  TokenIds ids;
  for (unsigned round = 0; round < 2; ++round) {
    for (TokenId at = 0; at < words.size(); ++at) {
      const std::size_t before = ids.size();
      if (memory.append_known(words[at], ids)) {
        ASSERT_EQ(ids.size(), before + 1);
        ASSERT_EQ(ids.back(), at);
      } else {
        ids.push_back(at);
        memory.remember(words[at], TokenIds{at});
      }
    }
  }
}

}  // namespace
}  // namespace baton::tokenizer
