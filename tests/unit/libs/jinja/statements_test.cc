// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(If, TakesTheFirstBranchThatHolds) {
  const std::string_view source = "{% if a %}1{% elif b %}2{% elif c %}3{% else %}4{% endif %}";
  EXPECT_EQ(rendered(source, R"({"a": 1, "b": 1})"), "1");
  EXPECT_EQ(rendered(source, R"({"b": [0], "c": 1})"), "2");
  EXPECT_EQ(rendered(source, R"({"c": "x"})"), "3");
  EXPECT_EQ(rendered(source, R"({"a": [], "b": "", "c": 0.0})"), "4");
}

TEST(For, WalksOverEverythingIterable) {
  const std::string_view source = "{% for i in v %}[{{ i }}]{% else %}none{% endfor %}";
  EXPECT_EQ(rendered(source, R"({"v": [1, "a"]})"), "[1][a]");
  EXPECT_EQ(rendered(source, R"({"v": {"a": 1, "b": 2}})"), "[a][b]");
  EXPECT_EQ(rendered(source, R"({"v": "aé🎉"})"), "[a][é][🎉]");
  EXPECT_EQ(rendered(source, R"({"v": []})"), "none");
  EXPECT_EQ(rendered(source), "none");
  EXPECT_THAT(failure(source, R"({"v": 5})"), HasSubstr("'int' object is not iterable"));
  EXPECT_THAT(failure(source, R"({"v": null})"), HasSubstr("'NoneType' object is not iterable"));
}

TEST(For, Unpacks) {
  EXPECT_EQ(rendered("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
                     R"({"d": {"a": 1, "b": 2}})"),
            "a=1;b=2;");
  EXPECT_EQ(rendered("{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}"),
            "123");
  EXPECT_THAT(failure("{% for a, b in [[1]] %}{% endfor %}"),
              HasSubstr("not enough values to unpack (expected 2, got 1)"));
  EXPECT_THAT(failure("{% for a, b in [[1, 2, 3]] %}{% endfor %}"),
              HasSubstr("too many values to unpack (expected 2)"));
  EXPECT_THAT(failure("{% for a, b in [1] %}{% endfor %}"),
              HasSubstr("cannot unpack non-iterable int object"));
}

TEST(For, LeavesOutWhatItsConditionRefuses) {
  EXPECT_EQ(rendered("{% for i in range(6) if i is odd %}{{ loop.index }}:{{ i }} {% endfor %}"),
            "1:1 2:3 3:5 ");
  // The condition is asked as the loop goes, not before.
  EXPECT_EQ(
      rendered("{% set ns = namespace(stop=false) %}{% for i in range(9) if not ns.stop %}{{ i }}"
               "{% if i == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}"),
      "012");
}

TEST(For, BreaksAndContinues) {
  EXPECT_EQ(rendered("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 4 "
                     "%}{% break %}"
                     "{% endif %}{{ i }}{% endfor %}"),
            "023");
  EXPECT_THAT(failure("{% break %}"), HasSubstr("'break' outside of a loop"));
  EXPECT_THAT(failure("{% for i in x %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}"),
              HasSubstr("'continue' outside of a loop"));
  // jinja2 runs the else where no round came to its end.
  EXPECT_EQ(rendered("{% for i in [1, 2] %}{% continue %}{% else %}else{% endfor %}"), "else");
}

TEST(Set, AssignsNamesTuplesAndAttributes) {
  EXPECT_EQ(rendered("{% set a = 1 %}{% set b, c = a, 'x' %}{{ a }}{{ b }}{{ c }}"), "11x");
  EXPECT_EQ(
      rendered(
          "{% set ns = namespace(a=1) %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns }}"),
      "12<Namespace {'a': 1, 'b': 2}>");
  EXPECT_THAT(failure("{% set d = {} %}{% set d.x = 1 %}"),
              HasSubstr("cannot assign attribute on non-namespace object"));
  EXPECT_THAT(failure("{% set 1 = 2 %}"), HasSubstr("can't assign to"));
  EXPECT_THAT(failure("{% set none = 2 %}"), HasSubstr("can't assign to"));
}

TEST(Set, CapturesABlock) {
  EXPECT_EQ(rendered("{% set x %}a{{ 1 }}{% endset %}[{{ x }}]"), "[a1]");
  EXPECT_EQ(rendered("{% set x | upper | replace('A', 'b') %}a c{% endset %}[{{ x }}]"), "[b C]");
}

TEST(FilterBlock, FiltersItsOutput) {
  EXPECT_EQ(rendered("{% filter upper | trim %} a{{ 'b' }} {% endfilter %}!"), "AB!");
}

TEST(With, HasItsOwnVariables) {
  EXPECT_EQ(
      rendered("{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}{{ y }}"),
      "211");
}

TEST(Macro, TakesArgumentsDefaultsAndTheRest) {
  EXPECT_EQ(rendered("{% macro m(a, b=a ~ '!') %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, "
                     "2) }}{{ m(b=3, a=4) }}"),
            "1-1!;1-2;4-3;");
  EXPECT_EQ(
      rendered(
          "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}"),
      "1(2, 3){'x': 4}");
  EXPECT_EQ(rendered("{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}"), "[]");
  EXPECT_EQ(rendered("{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}{{ "
                     "m.name }}{{ m.arguments }}"),
            "12m('a',)");
  EXPECT_THAT(failure("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"),
              HasSubstr("macro 'm' takes not more than 1 argument(s)"));
  EXPECT_THAT(failure("{% macro m(a) %}{% endmacro %}{{ m(x=1) }}"),
              HasSubstr("macro 'm' takes no keyword argument 'x'"));
  EXPECT_THAT(failure("{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}"),
              HasSubstr("parameter 'a' was not provided"));
  EXPECT_THAT(failure("{% macro m(a=1, b) %}{% endmacro %}"),
              HasSubstr("non-default argument follows default argument"));
}

TEST(CallBlock, PassesItsBody) {
  EXPECT_EQ(rendered("{% macro m(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call "
                     "m('b') %}x{% endcall %}"),
            "<b>x</b>");
  EXPECT_EQ(rendered("{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a + b "
                     "}}{% endcall %}"),
            "3");
  EXPECT_THAT(failure("{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}"),
              HasSubstr("No caller defined"));
  EXPECT_THAT(failure("{% call x %}{% endcall %}"), HasSubstr("expected call"));
}

TEST(Generation, RendersItsBodyInAScopeOfItsOwn) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [7] %}{% generation %}{{ i }}{{ loop.last }}{% "
                     "set x = 2 %}{{ x }}"
                     "{% endgeneration %}{% endfor %}{{ x }}"),
            "7True21");
}

TEST(Print, PrintsItsList) { EXPECT_EQ(rendered("{% print 1, 'a' %}"), "1a"); }

}  // namespace
}  // namespace baton::jinja
