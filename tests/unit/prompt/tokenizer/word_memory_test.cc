// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/word_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::prompt {
namespace {

TEST(WordMemory, CopiesTheTokensOfAWordThatComesAgain) {
  WordMemory memory;
  memory.begin();
  TokenIds ids{9};
  EXPECT_FALSE(memory.append_known("word", ids));
  ids.insert(ids.end(), {1, 2, 3});
  memory.remember("word", ids, 1);
  EXPECT_TRUE(memory.append_known("word", ids));
  EXPECT_EQ(ids, (TokenIds{9, 1, 2, 3, 1, 2, 3}));
}

TEST(WordMemory, ForgetsWhenItBeginsAnew) {
  WordMemory memory;
  memory.begin();
  TokenIds ids{1};
  memory.remember("word", ids, 0);
  memory.begin();
  EXPECT_FALSE(memory.append_known("word", ids));
}

// More words than it has room for, many alike in length and ends: never another word's tokens.
TEST(WordMemory, NeverTakesOneWordForAnother) {
  WordMemory memory;
  memory.begin();
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
        memory.remember(words[at], ids, before);
      }
    }
  }
}

}  // namespace
}  // namespace baton::prompt
