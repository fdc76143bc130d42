// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/bpe_merge.h"

#include <gtest/gtest.h>

#include <random>

namespace baton::tokenizer {
namespace {

// The rule, word for word: as long as some neighbours merge, those of the lowest rank do, and of
// equal ones the leftmost.
TokenIds merged_plainly(const MergeTable& table, TokenIds symbols) {
  for (;;) {
    std::size_t best = symbols.size();
    Merge found;
    for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
      const Merge merge = table.find(symbols[at], symbols[at + 1]);
      if (merge.rank < found.rank) {
        found = merge;
        best = at;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = found.id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TokenIds merged(const MergeTable& table, const TokenIds& symbols) {
  Workspace workspace;
  workspace.symbols = symbols;
  for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
    workspace.merges.push_back(table.find(symbols[at], symbols[at + 1]));
  }
  merge_symbols(table, workspace);
  return workspace.symbols;
}

TEST(BpeMerge, TakesTheLowestRankFirst) {
  MergeTable table;
  table.set(0, 1, {.rank = 1, .id = 10});
  table.set(1, 2, {.rank = 0, .id = 11});
  table.set(0, 11, {.rank = 2, .id = 12});
  EXPECT_EQ(merged(table, {0, 1, 2}), (TokenIds{12}));
  EXPECT_EQ(merged(table, {0, 1, 3}), (TokenIds{10, 3}));
}

TEST(BpeMerge, TakesTheLeftmostOfEqualOnes) {
  MergeTable table;
  table.set(0, 0, {.rank = 0, .id = 1});
  EXPECT_EQ(merged(table, {0, 0, 0}), (TokenIds{1, 0}));
}

TEST(BpeMerge, LeavesOneSymbolAndNoneAlone) {
  const MergeTable table;
  EXPECT_EQ(merged(table, {}), TokenIds{});
  EXPECT_EQ(merged(table, {5}), TokenIds{5});
}

// Both ways of merging, short and long, against the rule itself.
TEST(BpeMerge, AgreesWithTheRuleOnRandomTables) {
  std::mt19937 random(7);
  const auto below = [&](unsigned bound) { return static_cast<TokenId>(random() % bound); };
  for (int round = 0; round < 300; ++round) {
    // A merge makes a token that no earlier one made, as texts that grow would.
    MergeTable table;
    TokenId next = 4;
    for (std::uint32_t rank = 0; rank < 40; ++rank) {
      table.set(below(next), below(next), {.rank = rank, .id = next});
      ++next;
    }
    TokenIds symbols(1 + below(round % 2 == 0 ? 40 : 400));
    for (TokenId& symbol : symbols) symbol = below(4);
    ASSERT_EQ(merged(table, symbols), merged_plainly(table, symbols)) << "round " << round;
  }
}

}  // namespace
}  // namespace baton::tokenizer
