// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(PercentFormat, Converts) {
  EXPECT_EQ(shown("'%s %r %d %i %5.2f|%-5s|%05d|%+d|%x|%X|%#x|%o|%c|%%' % ('a', 'b', 7.9, 8, "
                  "3.14159, 'l', 42, 5, 255, 255, 255, 8, 'z')"),
            "a 'b' 7 8  3.14|l    |00042|+5|ff|FF|0xff|10|z|%");
  EXPECT_EQ(shown("'%(a)s-%(b)d' % {'a': 1, 'b': 2}"), "1-2");
  EXPECT_EQ(shown("'%s' % 5 ~ '%s' % [1, 2] ~ '%*d' % (4, 7) ~ '%.2s' % 'éab' ~ '%e' % 12345.678 ~ "
                  "' %g' % 0.0001"),
            "5[1, 2]   7éa1.234568e+04 0.0001");
}

TEST(PercentFormat, CountsItsArguments) {
  EXPECT_THAT(refusal("'%s %s' % 'a'"), HasSubstr("not enough arguments for format string"));
  EXPECT_THAT(refusal("'%s' % ('a', 'b')"),
              HasSubstr("not all arguments converted during string formatting"));
  EXPECT_THAT(refusal("'x' % 'a'"), HasSubstr("not all arguments converted"));
  EXPECT_THAT(refusal("'%d' % 'a'"), HasSubstr("%d format: a real number is required, not str"));
  EXPECT_THAT(refusal("'%q' % 1"), HasSubstr("unsupported format character"));
  EXPECT_THAT(refusal("'%(a)s' % 5"), HasSubstr("format requires a mapping"));
  EXPECT_THAT(refusal("'%(a)s' % {}"), HasSubstr("'a'"));
  EXPECT_THAT(refusal("'%' % 5"), HasSubstr("incomplete format"));
}

}  // namespace
}  // namespace baton::jinja
