// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/code_point_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace baton::tokenizer {
namespace {

TEST(CodePointTable, HoldsRuns) {
  const std::vector<CodePointTable::Run> runs{{'a', 'z', 1},
                                              {127, 128, 2},
                                              {0x4E00, 0x9FFF, 3},
                                              {0x5000, 0x5000, 4},
                                              {0x10FFFF, 0x10FFFF, 5}};
  const CodePointTable table(runs);
  EXPECT_EQ(table['a'], 1);
  EXPECT_EQ(table['z'], 1);
  EXPECT_EQ(table['{'], 0);
  EXPECT_EQ(table[127], 2);
  EXPECT_EQ(table[128], 2);
  EXPECT_EQ(table[129], 0);
  EXPECT_EQ(table[0x4DFF], 0);
  EXPECT_EQ(table[0x4E00], 3);
  EXPECT_EQ(table[0x5000], 4);  // the later run holds
  EXPECT_EQ(table[0x9FFF], 3);
  EXPECT_EQ(table[0xA000], 0);
  EXPECT_EQ(table[0x10FFFF], 5);
}

TEST(CodePointTable, MayBeAskedForAny21Bits) {
  const CodePointTable table(CharSet::all());
  EXPECT_EQ(table[0x10FFFF], 1);
  EXPECT_LE(table[0x110000], 1);
  EXPECT_LE(table[0x1FFFFF], 1);
}

}  // namespace
}  // namespace baton::tokenizer
