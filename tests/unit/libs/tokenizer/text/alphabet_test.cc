// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/alphabet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace baton::tokenizer {
namespace {

TEST(Alphabet, HasOneSymbolForCharactersThatNoSetTellsApart) {
  const std::vector<CharSet> sets{{{'a', 'f'}}, {{'d', 'z'}}, {{0x4E00, 0x9FFF}}};
  const auto alphabet = Alphabet::for_sets(sets);
  ASSERT_TRUE(alphabet);
  std::string symbols;
  alphabet->write("abdez 漢字é", symbols);
  ASSERT_EQ(symbols.size(), 9U);
  EXPECT_EQ(symbols[0], symbols[1]);  // in the first set only
  EXPECT_EQ(symbols[2], symbols[3]);  // in both
  EXPECT_NE(symbols[0], symbols[2]);
  EXPECT_NE(symbols[2], symbols[4]);
  EXPECT_EQ(symbols[5], symbols[8]);  // in none
  EXPECT_EQ(symbols[6], symbols[7]);
  EXPECT_EQ(alphabet->symbols_of(0).size(), 2U);
  EXPECT_EQ(alphabet->symbols_of(2).size(), 1U);
  EXPECT_EQ(static_cast<std::uint8_t>(symbols[6]), alphabet->symbols_of(2)[0]);
}

TEST(Alphabet, IsRefusedWhereSymbolsDoNotSuffice) {
  std::vector<CharSet> sets;
  for (char32_t code = 0; code < 255; ++code) {
    sets.push_back(CharSet::of(0x1000 + code));
  }
  EXPECT_TRUE(Alphabet::for_sets(sets));  // and one symbol for all others
  sets.push_back(CharSet::of(0x2000));
  EXPECT_FALSE(Alphabet::for_sets(sets));
}

}  // namespace
}  // namespace baton::tokenizer
