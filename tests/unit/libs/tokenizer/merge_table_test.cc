// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/merge_table.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace baton::tokenizer {
namespace {

TEST(MergeTable, FindsWhatWasSetAndNothingElse) {
  MergeTable table(4);
  std::map<std::pair<TokenId, TokenId>, TokenId> expected;
  for (TokenId left = 0; left < 60; ++left) {
    for (TokenId right = left; right < 60; right += left + 1) {
      table.set(left, right, {.rank = left, .id = right + 1000});
      expected[{left, right}] = right + 1000;
    }
  }
  for (TokenId left = 0; left < 60; ++left) {
    for (TokenId right = 0; right < 60; ++right) {
      const auto found = expected.find({left, right});
      const Merge merge = table.find(left, right);
      ASSERT_EQ(merge.rank, found == expected.end() ? Merge::kNever : left);
      if (found != expected.end()) {
        ASSERT_EQ(merge.id, found->second);
      }
    }
  }
  EXPECT_EQ(table.size(), expected.size());
}

TEST(MergeTable, LetsTheLastWordOnAPairCount) {
  MergeTable table;
  table.set(1, 2, {.rank = 5, .id = 3});
  table.set(1, 2, {.rank = 9, .id = 3});
  EXPECT_EQ(table.find(1, 2).rank, 9U);
  EXPECT_EQ(table.size(), 1U);
}

TEST(MergeTable, VisitsEachPairOnce) {
  MergeTable table;
  table.set(1, 2, {.rank = 0, .id = 3});
  table.set(2, 1, {.rank = 1, .id = 4});
  std::map<std::pair<TokenId, TokenId>, int> seen;
  table.for_each([&](TokenId left, TokenId right) { ++seen[{left, right}]; });
  EXPECT_EQ(seen, (std::map<std::pair<TokenId, TokenId>, int>{{{1, 2}, 1}, {{2, 1}, 1}}));
}

}  // namespace
}  // namespace baton::tokenizer
