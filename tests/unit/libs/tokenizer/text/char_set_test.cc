// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/char_set.h"

#include <gtest/gtest.h>

namespace baton::tokenizer {
namespace {

TEST(CharSet, JoinsRangesThatMeet) {
  CharSet set{{'x', 'z'}, {'a', 'c'}, {'d', 'e'}};
  EXPECT_EQ(set.ranges(), (std::vector<CharSet::Range>{{'a', 'e'}, {'x', 'z'}}));
  set.add('f', 'w');
  EXPECT_EQ(set.ranges(), (std::vector<CharSet::Range>{{'a', 'z'}}));
  set.add('b', 'c');
  EXPECT_EQ(set.size(), 26U);
  set.add('~', '~');
  set.add('}', '}');
  EXPECT_EQ(set.ranges(), (std::vector<CharSet::Range>{{'a', 'z'}, {'}', '~'}}));
}

TEST(CharSet, HasAComplement) {
  EXPECT_TRUE(CharSet::all().complement().empty());
  EXPECT_EQ(CharSet{}.complement(), CharSet::all());
  const CharSet set{{0, 9}, {20, 29}, {100, kLastCodePoint}};
  EXPECT_EQ(set.complement(), (CharSet{{10, 19}, {30, 99}}));
  EXPECT_EQ(set.complement().complement(), set);
}

TEST(CharSet, HasIntersections) {
  const CharSet a{{0, 10}, {20, 30}, {40, 50}};
  const CharSet b{{5, 25}, {45, 45}};
  EXPECT_EQ(a.intersection(b), (CharSet{{5, 10}, {20, 25}, {45, 45}}));
  EXPECT_TRUE(a.intersection({}).empty());
}

TEST(CharSet, KnowsItsMembers) {
  const CharSet set{{10, 19}, {30, 30}};
  for (const char32_t code : {10U, 15U, 19U, 30U}) {
    EXPECT_TRUE(set.contains(code)) << static_cast<unsigned>(code);
  }
  for (const char32_t code : {0U, 9U, 20U, 29U, 31U}) {
    EXPECT_FALSE(set.contains(code)) << static_cast<unsigned>(code);
  }
}

}  // namespace
}  // namespace baton::tokenizer
