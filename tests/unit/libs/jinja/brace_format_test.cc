// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(BraceFormat, FillsFields) {
  EXPECT_EQ(shown("'{} {1}'.format(1) if false else '{0}{1}{0} {x} {{}}'.format('a', 'b', x=3)"),
            "aba 3 {}");
  EXPECT_EQ(shown("'{}-{}'.format(1, none)"), "1-None");
  EXPECT_EQ(shown("'{d[k]}{l[1]}{d.k}'.format(d={'k': 5}, l=[1, 2])"), "525");
  EXPECT_EQ(shown("'{!r} {0!s}'.format('a') if false else '{0!r} {0!s}'.format('a')"), "'a' a");
}

TEST(BraceFormat, LaysOut) {
  EXPECT_EQ(shown("'{:>5}|{:<5}|{:^5}|{:*^5}|{:05d}|{:+d}|{:,}|{:.2f}|{:x}|{:#b}|{:.1%}|{:5}|{:.2}'"
                  ".format('a', 'b', 'c', 'd', 42, 5, 1234567, 3.14159, 255, 5, 0.256, 7, 'xyz')"),
            "    a|b    |  c  |**d**|00042|+5|1,234,567|3.14|ff|0b101|25.6%|    7|xy");
  EXPECT_EQ(shown("'{:{w}}|'.format('a', w=3)"), "a  |");
}

TEST(BraceFormat, RefusesWhatPythonRefuses) {
  EXPECT_THAT(refusal("'{}{}'.format(1)"),
              HasSubstr("Replacement index 1 out of range for positional args tuple"));
  EXPECT_THAT(refusal("'{x}'.format(1)"), HasSubstr("'x'"));
  EXPECT_THAT(refusal("'{}{0}'.format(1)"), HasSubstr("cannot switch"));
  EXPECT_THAT(refusal("'{'.format(1)"), HasSubstr("before end of string"));
  EXPECT_THAT(refusal("'}'.format(1)"), HasSubstr("Single '}'"));
  EXPECT_THAT(refusal("'{:d}'.format('a')"),
              HasSubstr("Unknown format code 'd' for object of type 'str'"));
}

}  // namespace
}  // namespace baton::jinja
