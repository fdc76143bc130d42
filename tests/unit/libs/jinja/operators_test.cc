// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Operators, CompareAcrossTypesAsPython) {
  EXPECT_EQ(shown("[1 == 1.0, 1 == true, '1' == 1, none == false, [1, 2] == (1, 2), [1] == [1.0]]"),
            "[True, True, False, False, False, True]");
  EXPECT_EQ(shown("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}"), "True");
  EXPECT_EQ(shown("range(0, 3, 2) == range(0, 4, 2)"), "True");
  EXPECT_EQ(shown("9007199254740993 == 9007199254740992.0"), "False");
  EXPECT_EQ(shown("undefined_a == undefined_b"), "True");
}

TEST(Operators, Order) {
  EXPECT_EQ(shown("['a' < 'b', 'B' < 'a', 'é' > 'z', [1, 2] < [1, 3], [1] < [1, 0], (2,) > (1, 9), "
                  "2 > 1.5]"),
            "[True, True, True, True, True, True, True]");
  EXPECT_EQ(
      shown("[big > 5, big < -5, big > 1.5, big == big]", R"({"big": 123456789012345678901})"),
      "[True, False, True, True]");
  EXPECT_THAT(refusal("1 < 'a'"),
              HasSubstr("'<' not supported between instances of 'int' and 'str'"));
  EXPECT_THAT(refusal("none >= 1"),
              HasSubstr("'>=' not supported between instances of 'NoneType' and 'int'"));
  EXPECT_THAT(refusal("x > 1"), HasSubstr("'x' is undefined"));
}

TEST(Operators, Membership) {
  EXPECT_EQ(
      shown(
          "['b' in 'abc', 2 in [1, 2], 'a' in {'a': 1}, 3 not in (1, 2), 2 in range(3), '' in '']"),
      "[True, True, True, True, True, True]");
  EXPECT_EQ(shown("'x' in nothing"), "False");
  EXPECT_EQ(shown("'a' in {'a': 1}.keys()"), "True");
  EXPECT_THAT(refusal("1 in 'abc'"),
              HasSubstr("'in <string>' requires string as left operand, not int"));
  EXPECT_THAT(refusal("'a' in 5"), HasSubstr("argument of type 'int' is not iterable"));
  EXPECT_THAT(refusal("'a' in none"), HasSubstr("argument of type 'NoneType' is not iterable"));
}

TEST(Operators, Truth) {
  EXPECT_EQ(shown("[0, 0.0, '', [], (), {}, none, false, range(0), nothing]|select|list"), "[]");
  EXPECT_EQ(shown("[1, 0.1, ' ', [0], (0,), {'': 0}, true, range(1)]|reject|list"), "[]");
}

}  // namespace
}  // namespace baton::jinja
