// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Arithmetic, OfIntegers) {
  EXPECT_EQ(shown("[7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 2 ** 10, 7 / 2, 6 / 2]"),
            "[3, -4, 1, 2, -2, 1024, 3.5, 3.0]");
  EXPECT_EQ(shown("[2 ** -1, true + true, -true, +false, - 5]"), "[0.5, 2, -1, 0, -5]");
}

TEST(Arithmetic, OfFloats) {
  EXPECT_EQ(shown("[0.1 + 0.2, 7.5 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, 1.5 * 2, 2.0 ** 0.5]"),
            "[0.30000000000000004, 3.0, -4.0, 1.5, 0.5, 3.0, 1.4142135623730951]");
}

TEST(Arithmetic, RefusesWhatPythonRefuses) {
  EXPECT_THAT(refusal("1 / 0"), HasSubstr("division by zero"));
  EXPECT_THAT(refusal("1 % 0"), HasSubstr("modulo by zero"));
  EXPECT_THAT(refusal("1.0 // 0"), HasSubstr("division by zero"));
  EXPECT_THAT(refusal("1 + 'a'"), HasSubstr("unsupported operand type(s) for +: 'int' and 'str'"));
  EXPECT_THAT(refusal("'a' - 'b'"),
              HasSubstr("unsupported operand type(s) for -: 'str' and 'str'"));
  EXPECT_THAT(refusal("[] + ()"), HasSubstr("can only concatenate list (not \"tuple\") to list"));
  EXPECT_THAT(refusal("'a' * 'b'"), HasSubstr("can't multiply sequence by non-int of type 'str'"));
  EXPECT_THAT(refusal("-'a'"), HasSubstr("bad operand type for unary -: 'str'"));
  EXPECT_THAT(refusal("none + 1"),
              HasSubstr("unsupported operand type(s) for +: 'NoneType' and 'int'"));
}

TEST(Arithmetic, RefusesIntegersBeyond64Bits) {
  for (const std::string_view large :
       {"9223372036854775807 + 1", "2 ** 64", "-9223372036854775807 - 2", "9223372036854775807 * 2",
        "(-9223372036854775807 - 1) // -1"}) {
    EXPECT_THAT(refusal(large), HasSubstr("too large")) << large;
  }
}

TEST(Arithmetic, RepeatsAndJoinsSequences) {
  EXPECT_EQ(shown("'ab' * 3 ~ 2 * '-' ~ 'x' * -1"), "ababab--");
  EXPECT_EQ(shown("[0] * 3 + [1]"), "[0, 0, 0, 1]");
  EXPECT_EQ(shown("(1,) * 2 + (2,)"), "(1, 1, 2)");
}

}  // namespace
}  // namespace baton::jinja
