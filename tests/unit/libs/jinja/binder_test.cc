// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Scopes, LoopsDoNotLeak) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [2, 3] %}{{ x }}{% set x = i %}{{ x }} {% endfor "
                     "%}{{ x }}{{ i }}"),
            "12 13 1");
}

TEST(Scopes, IfsShareTheScopeAround) {
  EXPECT_EQ(rendered("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
  EXPECT_EQ(rendered("{% if false %}{% set x = 1 %}{% endif %}{{ x }}", R"({"x": "given"})"),
            "given");
  EXPECT_EQ(
      rendered("{% for i in [1, 2] %}{% if i == 2 %}{% set x = i %}{% endif %}{{ x }}{% endfor %}",
               R"({"x": "g"})"),
      "g2");
}

TEST(Scopes, VariablesShadowGlobals) {
  EXPECT_EQ(rendered("{% set range = 5 %}{{ range }}"), "5");
  EXPECT_EQ(shown("range", R"({"range": 6})"), "6");
}

TEST(Scopes, AnAssignmentFurtherDownHidesWhatWasGiven) {
  // As in jinja2: the name belongs to the template as soon as it assigns it anywhere.
  EXPECT_EQ(rendered("{% for i in [1] %}[{{ x }}]{% endfor %}{% set x = 1 %}", R"({"x": "given"})"),
            "[]");
  EXPECT_EQ(rendered("{{ x }}{% set x = 1 %}{{ x }}", R"({"x": "given"})"), "given1");
}

TEST(Scopes, MacrosSeeTheVariablesAroundThemAsTheyAreNow) {
  EXPECT_EQ(rendered("{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% set x = 1 %}{{ m() }}{% set "
                     "x = 2 %}{{ m() }}"),
            "12");
  EXPECT_EQ(
      rendered(
          "{% macro m() %}{% set x = 9 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}"),
      "91");
  EXPECT_EQ(
      rendered(
          "{% macro f(n) %}{% macro g() %}{{ n }}{% endmacro %}{{ g() }}{% endmacro %}{{ f(3) }}"),
      "3");
}

TEST(Scopes, CapturesAndFiltersHaveTheirOwn) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% set y %}{% set x = 2 %}{{ x }}{% endset %}{{ x }}{{ y }}"),
            "12");
  EXPECT_EQ(rendered("{% set x = 1 %}{% filter upper %}{% set x = 2 %}{% endfilter %}{{ x }}"),
            "1");
}

TEST(Scopes, NamespacesReachAcross) {
  EXPECT_EQ(
      rendered(
          "{% set ns = namespace(n=0) %}{% macro add() %}{% set ns.n = ns.n + 1 %}{% endmacro %}"
          "{% for i in range(3) %}{{ add() }}{% endfor %}{{ ns.n }}"),
      "3");
}

TEST(Scopes, LoopIsNotAssigned) {
  EXPECT_THAT(failure("{% for loop in [1] %}{% endfor %}"), HasSubstr("special loop variable"));
  EXPECT_THAT(failure("{% for i in [1] %}{% set loop = 1 %}{% endfor %}"),
              HasSubstr("special loop variable"));
}

}  // namespace
}  // namespace baton::jinja
