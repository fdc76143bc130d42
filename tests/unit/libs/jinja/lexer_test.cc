// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Lexer, LeavesOutOneNewlineAfterATag) {
  EXPECT_EQ(rendered("{% if true %}\na\n{% endif %}\n\nb"), "a\n\nb");
  EXPECT_EQ(rendered("{{ 1 }}\nb"), "1\nb");
  EXPECT_EQ(rendered("{# c #}\nb"), "b");
  EXPECT_EQ(rendered("{% if true +%}\na{% endif +%}\nb"), "\na\nb");
}

TEST(Lexer, LeavesOutSpaceBeforeATagThatBeginsItsLine) {
  EXPECT_EQ(rendered("  {% if true %}x{% endif %}"), "x");
  EXPECT_EQ(rendered("a\n \t{% if true %}x\n  {% endif %}b"), "a\nx\nb");
  EXPECT_EQ(rendered("a  {% if true %}x{% endif %}"), "a  x");
  EXPECT_EQ(rendered("  {%+ if true %}x{% endif %}"), "  x");
  EXPECT_EQ(rendered("  {{ 1 }}"), "  1");
  EXPECT_EQ(rendered("  {# c #}x"), "x");
  EXPECT_EQ(rendered("{{ 1 }}  {% if true %}x{% endif %}"), "1  x");
  EXPECT_EQ(rendered("{% if true %}\n  {% if true %}x{% endif %}{% endif %}"), "x");
}

TEST(Lexer, StripsAroundMinus) {
  EXPECT_EQ(rendered("a \n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(rendered("a \n {%- if true -%} \n b \n {%- endif -%} \n c"), "abc");
  EXPECT_EQ(rendered("a {#- c -#} b"), "ab");
  EXPECT_EQ(rendered("a\u2003{{- 1 }}"), "a1");  // any white space of Unicode
}

TEST(Lexer, DropsOneNewlineAtTheEnd) {
  EXPECT_EQ(rendered("a\n"), "a");
  EXPECT_EQ(rendered("a\n\n"), "a\n");
  EXPECT_EQ(rendered("a\r\nb\rc\r\n"), "a\nb\nc");
}

TEST(Lexer, KeepsRawTextAsItIs) {
  EXPECT_EQ(rendered("{% raw %}{{ x }}{% if %}{% endraw %}"), "{{ x }}{% if %}");
  EXPECT_EQ(rendered("a {%- raw -%} \n{{ x }} {%- endraw -%} \nb"), "a{{ x }}b");
  EXPECT_EQ(rendered("{% raw %}\nx\n  {% endraw %}\ny"), "\nx\ny");
}

TEST(Lexer, FindsTheEndOfATagOutsideOfBracketsAndStrings) {
  EXPECT_EQ(rendered("{{ {'a': {'b': 1}}['a']['b'] }}"), "1");
  EXPECT_EQ(rendered("{{ '}}' }}{{ \"%}\" }}"), "}}%}");
  EXPECT_EQ(rendered("{ { }} %} #}"), "{ { }} %} #}");
}

TEST(Lexer, ReadsStrings) {
  EXPECT_EQ(shown(R"('it\'s' "a\"b")"), "it'sa\"b");
  EXPECT_EQ(shown(R"("\n\t\\\x41\u00e9\U0001F389\101\a")"), "\n\t\\Aé🎉A\a");
  EXPECT_EQ(shown(R"('\d\ ')"), R"(\d\ )");
  EXPECT_EQ(shown("'é日🎉'"), "é日🎉");
  EXPECT_THAT(refusal(R"('\x4')"), HasSubstr("escape"));
  EXPECT_THAT(refusal(R"('\ud800')"), HasSubstr("escape"));
}

TEST(Lexer, ReadsNumbers) {
  EXPECT_EQ(shown("[1_000, 0x1F, 0b101, 0o17, 0, 00]"), "[1000, 31, 5, 15, 0, 0]");
  EXPECT_EQ(shown("[1.5, 1e3, 1.5e-2, 1_0.2_5]"), "[1.5, 1000.0, 0.015, 10.25]");
  EXPECT_EQ(shown("123456789012345678901"), "123456789012345678901");
  EXPECT_EQ(shown("[[7,8]].0.1"), "8");
  EXPECT_THAT(refusal("007"), HasSubstr("expected token"));
}

TEST(Lexer, ReadsNames) {
  EXPECT_EQ(shown("größe_2", R"({"größe_2": 1})"), "1");
  EXPECT_EQ(shown("[true, True, none, None, false]"), "[True, True, None, None, False]");
}

}  // namespace
}  // namespace baton::jinja
