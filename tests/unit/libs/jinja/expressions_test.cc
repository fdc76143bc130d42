// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Expressions, FollowPythonsPrecedence) {
  EXPECT_EQ(shown("1 + 2 * 3 - 4 // 2"), "5");
  EXPECT_EQ(shown("2 ** 3 ** 2"), "64");  // jinja2 reads powers from the left
  EXPECT_EQ(shown("-2 ** 2"), "4");       // and binds a sign closer
  EXPECT_EQ(shown("not 1 == 2"), "True");
  EXPECT_EQ(shown("1 ~ 2 * 3"), "16");
  EXPECT_THAT(refusal("1 + 1 ~ 2"), HasSubstr("unsupported operand"));  // 1 + '12'
}

TEST(Expressions, LogicReturnsOperands) {
  EXPECT_EQ(shown("0 or 'x'"), "x");
  EXPECT_EQ(shown("'' or none or []"), "[]");
  EXPECT_EQ(shown("1 and 'y'"), "y");
  EXPECT_EQ(shown("[] and x.y.z"), "[]");
  EXPECT_EQ(shown("not []"), "True");
}

TEST(Expressions, ComparisonsChain) {
  EXPECT_EQ(shown("1 < 2 < 3"), "True");
  EXPECT_EQ(shown("1 < 3 < 2"), "False");
  EXPECT_EQ(shown("1 == 1.0 == true"), "True");
  EXPECT_EQ(shown("'a' in 'abc' in ['abc']"), "True");
  EXPECT_EQ(shown("2 > 1 < x.y.z if false else 'lazy'"), "lazy");
}

TEST(Expressions, InlineIfs) {
  EXPECT_EQ(shown("'a' if true else 'b'"), "a");
  EXPECT_EQ(shown("'a' if false"), "");
  EXPECT_EQ(shown("'a' if false else 'b' if false else 'c'"), "c");
  EXPECT_THAT(refusal("('a' if false).x"),
              HasSubstr("the inline if-expression on line 1 evaluated to false"));
}

TEST(Expressions, ConcatenationPrintsEverything) {
  EXPECT_EQ(shown("1 ~ none ~ true ~ 'x' ~ [1] ~ undefined_name"), "1NoneTruex[1]");
}

TEST(Expressions, SumsOfStringsAreOneString) {
  EXPECT_EQ(shown("'a' + b + 'c' + d", R"({"b": "B", "d": "D"})"), "aBcD");
  EXPECT_EQ(rendered("{% set x = 'a' + b + 'c' + d %}{{ x|length }}", R"({"b": "B", "d": "D"})"),
            "4");
  EXPECT_EQ(shown("1 + 2 + 3"), "6");
  EXPECT_EQ(shown("[1] + [2] + [3]"), "[1, 2, 3]");
  EXPECT_EQ(shown("'<' + 'a' + ('<b>'|safe) + '>'"), "&lt;a<b>&gt;");
  EXPECT_THAT(refusal("'a' + 'b' + 1"), HasSubstr("can only concatenate str (not \"int\") to str"));
  EXPECT_THAT(refusal("'a' + 'b' + nothing"), HasSubstr("'nothing' is undefined"));
  EXPECT_THAT(refusal("nothing + 'b' + 'a'"), HasSubstr("'nothing' is undefined"));
}

TEST(Expressions, MakeListsTuplesAndDicts) {
  EXPECT_EQ(shown("[1, 'a', [2], (3,), (), {}]"), "[1, 'a', [2], (3,), (), {}]");
  EXPECT_EQ(shown("1, 2"), "(1, 2)");
  EXPECT_EQ(shown("{'a': 1, 2: 'b', true: 3, 'a': 4,}"), "{'a': 4, 2: 'b', True: 3}");
  EXPECT_EQ(shown("{1: 'a', 1.0: 'b', true: 'c'}"), "{1: 'c'}");
  EXPECT_THAT(refusal("{[]: 1}"), HasSubstr("unhashable type: 'list'"));
}

TEST(Expressions, CallWithSpreadArguments) {
  EXPECT_EQ(shown("dict(*[[['a', 1]]], **{'b': 2})"), "{'a': 1, 'b': 2}");
  EXPECT_EQ(shown("'{}{x}'.format(*['a'], **{'x': 'b'})"), "ab");
  EXPECT_THAT(refusal("dict(a=1, a=2)"), HasSubstr("keyword argument repeated"));
  EXPECT_THAT(refusal("5()"), HasSubstr("'int' object is not callable"));
  EXPECT_THAT(refusal("nothing()"), HasSubstr("'nothing' is undefined"));
}

TEST(Expressions, BuiltinsCheckTheirArguments) {
  EXPECT_THAT(refusal("'a'|replace('b')"), HasSubstr("missing required argument 'new'"));
  EXPECT_THAT(refusal("'a'|upper(1)"), HasSubstr("takes at most 0 arguments (1 given)"));
  EXPECT_THAT(refusal("'a'|trim(foo=1)"), HasSubstr("unexpected keyword argument 'foo'"));
  EXPECT_THAT(refusal("[]|join('a', d='b')"), HasSubstr("multiple values for argument 'd'"));
}

}  // namespace
}  // namespace baton::jinja
