// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/safe_cuts.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace baton::tokenizer {
namespace {

std::vector<std::string_view> words(const SafeCuts& cuts, std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    found.push_back(text.substr(0, cuts.first_word(text)));
    text.remove_prefix(found.back().size());
  }
  return found;
}

using Words = std::vector<std::string_view>;

TEST(SafeCuts, CutsWhereNoMergeJoins) {
  SafeCuts cuts;
  cuts.forbid("▁", "a");
  cuts.forbid("▁a", "b");
  cuts.forbid("▁", "▁");
  EXPECT_EQ(words(cuts, "▁ab▁ab"), (Words{"▁ab", "▁ab"}));
  EXPECT_EQ(words(cuts, "▁▁ab"), (Words{"▁▁ab"}));
  EXPECT_EQ(words(cuts, "ba"), (Words{"b", "a"}));
}

TEST(SafeCuts, LooksAtTheCharactersNextToTheSeamOnly) {
  SafeCuts cuts;
  cuts.forbid("xy", "zw");
  EXPECT_EQ(words(cuts, "yz"), (Words{"yz"}));
  EXPECT_EQ(words(cuts, "xz"), (Words{"x", "z"}));
}

TEST(SafeCuts, KnowsCharactersOfAnyLength) {
  SafeCuts cuts;
  cuts.forbid("é", "字");
  cuts.forbid("字", "😀");
  cuts.forbid("😀", "a");
  EXPECT_EQ(words(cuts, "é字😀aé"), (Words{"é字😀a", "é"}));
  EXPECT_EQ(words(cuts, "字é"), (Words{"字", "é"}));
}

}  // namespace
}  // namespace baton::tokenizer
