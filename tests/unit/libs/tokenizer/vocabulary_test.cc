// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::tokenizer {
namespace {

TEST(Vocabulary, FindsTextsOfEveryLength) {
  Vocabulary vocabulary;
  std::string text;
  for (TokenId id = 0; id < 40; ++id) {
    ASSERT_EQ(vocabulary.add(text, id), Vocabulary::Added::Yes);
    text.push_back(static_cast<char>('a' + id % 26));
  }
  text.clear();
  for (TokenId id = 0; id < 40; ++id) {
    EXPECT_EQ(vocabulary.find(text), id);
    EXPECT_EQ(vocabulary.text(id), text);
    text.push_back(static_cast<char>('a' + id % 26));
  }
  EXPECT_EQ(vocabulary.find(text), std::nullopt);
  EXPECT_EQ(vocabulary.size(), 40U);
  EXPECT_EQ(vocabulary.longest(), 39U);
}

TEST(Vocabulary, TellsTextsApartThatDifferInTheirLastByteOnly) {
  for (const std::size_t length : {1UZ, 3UZ, 4UZ, 7UZ, 8UZ, 9UZ, 11UZ, 12UZ, 30UZ}) {
    Vocabulary vocabulary;
    const std::string stem(length - 1, '\0');
    vocabulary.add(stem + 'x', 0);
    EXPECT_EQ(vocabulary.find(stem + 'x'), 0U) << length;
    EXPECT_EQ(vocabulary.find(stem + 'y'), std::nullopt) << length;
    EXPECT_EQ(vocabulary.find(stem + std::string(1, '\0')), std::nullopt) << length;
    EXPECT_EQ(vocabulary.find(stem), std::nullopt) << length;
  }
}

TEST(Vocabulary, GrowsFarBeyondWhatWasExpected) {
  Vocabulary vocabulary(10);
  for (TokenId id = 0; id < 5000; ++id) vocabulary.add("token number " + std::to_string(id), id);
  for (TokenId id = 0; id < 5000; ++id) {
    ASSERT_EQ(vocabulary.find("token number " + std::to_string(id)), id);
  }
}

TEST(Vocabulary, RefusesWhatIsThereTwice) {
  Vocabulary vocabulary;
  vocabulary.add("one", 1);
  EXPECT_EQ(vocabulary.add("one", 2), Vocabulary::Added::DuplicateText);
  EXPECT_EQ(vocabulary.add("two", 1), Vocabulary::Added::DuplicateId);
  EXPECT_EQ(vocabulary.add("far", Vocabulary::kIdLimit), Vocabulary::Added::IdTooLarge);
  EXPECT_EQ(vocabulary.size(), 1U);
}

TEST(Vocabulary, KnowsTheHolesBetweenIds) {
  Vocabulary vocabulary;
  vocabulary.add("far", 7);
  EXPECT_FALSE(vocabulary.has(3));
  EXPECT_TRUE(vocabulary.has(7));
  EXPECT_FALSE(vocabulary.has(8));
  EXPECT_EQ(vocabulary.id_end(), 8U);
}

}  // namespace
}  // namespace baton::tokenizer
