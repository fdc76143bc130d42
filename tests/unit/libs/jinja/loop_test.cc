// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Loop, KnowsWhereItIs) {
  EXPECT_EQ(rendered("{% for i in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ "
                     "loop.revindex0 }}"
                     "{{ loop.length }}{{ loop.first }}{{ loop.last }} {% endfor %}"),
            "10323TrueFalse 21213FalseFalse 32103FalseTrue ");
}

TEST(Loop, KnowsItsNeighbours) {
  EXPECT_EQ(
      rendered(
          "{% for i in [1, 2, 3] %}{{ loop.previtem }}<{{ i }}<{{ loop.nextitem }} {% endfor %}"),
      "<1<2 1<2<3 2<3< ");
  EXPECT_EQ(rendered("{% for i in [1] %}{{ loop.previtem is defined }}{{ loop.nextitem is defined "
                     "}}{% endfor %}"),
            "FalseFalse");
  EXPECT_THAT(failure("{% for i in [1] %}{{ loop.nextitem.x }}{% endfor %}"),
              HasSubstr("there is no next item"));
}

TEST(Loop, CountsWhatIsFilteredOrGenerated) {
  EXPECT_EQ(rendered("{% for i in [1, 2, 3, 4] if i is even %}{{ loop.length }}{{ loop.revindex "
                     "}}{{ loop.last }} {% endfor %}"),
            "22False 21True ");
  EXPECT_EQ(
      rendered(
          "{% for i in [1, 2]|map('string') %}{{ loop.index }}/{{ loop.length }} {% endfor %}"),
      "1/2 2/2 ");
}

TEST(Loop, CyclesAndSeesChanges) {
  EXPECT_EQ(rendered("{% for i in range(4) %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %}"), "abca");
  EXPECT_EQ(rendered("{% for i in [1, 1, 2, 2, 1] %}{{ i if loop.changed(i) }}{% endfor %}"),
            "121");
}

TEST(Loop, Recurses) {
  const std::string_view tree = R"({"t": [{"n": 1, "c": [{"n": 2, "c": [{"n": 3}]}]}, {"n": 4}]})";
  EXPECT_EQ(rendered("{% for i in t recursive %}{{ loop.depth }}{{ loop.depth0 }}:{{ i.n }}"
                     "{% if i.c %}({{ loop(i.c) }}){% endif %}{% endfor %}",
                     tree),
            "10:1(21:2(32:3))10:4");
  EXPECT_THAT(failure("{% for i in [1] %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("'recursive' marker"));
}

TEST(Loop, OuterLoopsAreReachedThroughAVariable) {
  EXPECT_EQ(rendered("{% for i in 'ab' %}{% set outer = loop %}{% for j in 'xy' %}{{ outer.index "
                     "}}{{ loop.index }} "
                     "{% endfor %}{{ loop.index }};{% endfor %}"),
            "11 12 1;21 22 2;");
}

TEST(Loop, IsSeenByMacrosItIsPassedTo) {
  EXPECT_EQ(rendered("{% macro m(l) %}{{ l.index }}{{ l.last }} {% endmacro %}"
                     "{% for i in [1, 2, 3] if i != 2 %}{{ m(loop) }}{% endfor %}"),
            "1False 2True ");
}

TEST(Loop, OutlivesItsRounds) {
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% for i in [1, 2] if i %}{% set ns.l = loop %}{% "
                     "break %}{% endfor %}"
                     "{{ ns.l.index }}{{ ns.l.last }}"),
            "1True");
}

}  // namespace
}  // namespace baton::jinja
