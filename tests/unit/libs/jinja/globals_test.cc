// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

#include <cstdlib>
#include <ctime>

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Globals, Range) {
  EXPECT_EQ(
      shown(
          "[range(3)|list, range(1, 3)|list, range(5, 0, -2)|list, range(3)|length, range(3)[1]]"),
      "[[0, 1, 2], [1, 2], [5, 3, 1], 3, 1]");
  EXPECT_EQ(shown("range(100000)|length"), "100000");
  EXPECT_THAT(
      refusal("range(100001)"),
      HasSubstr("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000)."));
  EXPECT_THAT(refusal("range(-9223372036854775807, 9223372036854775807)"),
              HasSubstr("Range too big"));
  EXPECT_THAT(refusal("range(1, 2, 0)"), HasSubstr("must not be zero"));
  EXPECT_THAT(refusal("range('a')"), HasSubstr("cannot be interpreted as an integer"));
}

TEST(Globals, Dict) {
  EXPECT_EQ(shown("dict(a=1, b=2) ~ dict([('x', 1)], y=2) ~ dict({'z': 1})"),
            "{'a': 1, 'b': 2}{'x': 1, 'y': 2}{'z': 1}");
}

TEST(Globals, Namespace) {
  EXPECT_EQ(rendered("{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}{{ "
                     "ns.c is defined }}"),
            "121False");
  EXPECT_EQ(rendered("{% set ns = namespace(items=3) %}{{ ns.items }}"), "3");
}

TEST(Globals, CyclerAndJoiner) {
  EXPECT_EQ(rendered("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ "
                     "c.next() }}{{ c.reset() }}{{ c.current }}"),
            "abaaNonea");
  EXPECT_EQ(
      rendered("{% set j = joiner('|') %}{% for i in [1, 2, 3] %}{{ j() }}{{ i }}{% endfor %}"),
      "1|2|3");
}

TEST(Globals, RaiseException) {
  EXPECT_EQ(failure("{% if x is not defined %}{{ raise_exception('no ' ~ 'x') }}{% endif %}"),
            "The chat template failed: no x");
}

TEST(Globals, StrftimeNowShowsTheGivenTimeInTheProcesssZone) {
  const std::time_t seconds = 1'700'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::string day(3, '0');
  day.resize(std::strftime(day.data(), day.size(), "%d", &local));
  EXPECT_EQ(shown("strftime_now('%d %b %Y|%%|%f|%H')").substr(0, 21), day + " Nov 2023|%|000000|");
  EXPECT_EQ(shown("strftime_now('')"), "");
  EXPECT_EQ(shown("strftime_now is defined"), "True");
}

}  // namespace
}  // namespace baton::jinja
