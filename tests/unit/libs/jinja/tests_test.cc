// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

std::string holding(std::string_view test) {
  std::string held;
  for (const std::string_view value :
       {"none", "true", "1", "1.5", "'a'", "[]", "()", "{}", "range(1)", "nothing", "'x'.upper"}) {
    if (shown(std::string(value) + " is " + std::string(test)) == "True") {
      held += std::string(held.empty() ? "" : " ") + std::string(value);
    }
  }
  return held;
}

TEST(Tests, TellKindsApart) {
  EXPECT_EQ(holding("none"), "none");
  EXPECT_EQ(holding("boolean"), "true");
  EXPECT_EQ(holding("integer"), "1");
  EXPECT_EQ(holding("float"), "1.5");
  EXPECT_EQ(holding("number"), "true 1 1.5");
  EXPECT_EQ(holding("string"), "'a'");
  EXPECT_EQ(holding("mapping"), "{}");
  EXPECT_EQ(holding("sequence"), "'a' [] () {} range(1) nothing");
  EXPECT_EQ(holding("iterable"), "'a' [] () {} range(1) nothing");
  EXPECT_EQ(holding("undefined"), "nothing");
  EXPECT_EQ(holding("not defined"), "nothing");
  EXPECT_EQ(holding("callable"), "nothing 'x'.upper");
  EXPECT_EQ(holding("true"), "true");
  EXPECT_EQ(holding("false"), "");
}

TEST(Tests, Compare) {
  EXPECT_EQ(shown("[1 is eq 1, 1 is equalto(2), 1 is ne 2, 1 is lt 2, 2 is gt(1), 1 is le 1, 1 is "
                  "ge 2, 1 is lessthan 2, 2 is greaterthan 3]"),
            "[True, False, True, True, True, True, False, True, False]");
  EXPECT_EQ(shown("[2 is even, 2 is odd, 9 is divisibleby 3, 1 is in [1], 'a' is not in 'b']"),
            "[True, False, True, True, True]");
  EXPECT_EQ(shown("[none is sameas none, true is sameas true, 1 is sameas true, [] is sameas []]"),
            "[True, True, False, False]");
}

TEST(Tests, AboutTextAndNames) {
  EXPECT_EQ(shown("['AB1' is upper, 'aB' is lower, 'é' is lower, '1' is upper]"),
            "[True, False, True, False]");
  EXPECT_EQ(shown("['upper' is filter, 'nope' is filter, 'odd' is test, '==' is test]"),
            "[True, False, True, True]");
  EXPECT_EQ(shown("['x'|e is escaped, 'x' is escaped]"), "[True, False]");
}

TEST(Tests, CannotBeChained) {
  EXPECT_THAT(refusal("1 is odd is true"), HasSubstr("You cannot chain multiple tests with is"));
}

}  // namespace
}  // namespace baton::jinja
