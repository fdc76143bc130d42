// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(TextFilters, ChangeCase) {
  EXPECT_EQ(shown("'Straße ǆ İ ΑΣ'|upper"), "STRASSE Ǆ İ ΑΣ");
  EXPECT_EQ(shown("'ÄB ΑΣ ΑΣΑ'|lower"), "äb ας ασα");
  EXPECT_EQ(shown("'hELLO wORLD'|capitalize"), "Hello world");
  EXPECT_EQ(shown("\"they're bill's (friends) a-b\"|title"), "They're Bill's (Friends) A-B");
  EXPECT_EQ(shown("5|upper ~ none|lower"), "5none");
}

TEST(TextFilters, Trim) {
  EXPECT_EQ(shown("' \\n\\u2003a b\\t '|trim ~ '|' ~ 'xxaxx'|trim('x') ~ '|' ~ 'xya'|trim('yx')"),
            "a b|a|a");
  EXPECT_EQ(shown("nothing|trim"), "");
}

TEST(TextFilters, Replace) {
  EXPECT_EQ(shown("'aXbXc'|replace('X', '--') ~ 'aaa'|replace('a', 'b', 2) ~ 'ab'|replace('', '.') "
                  "~ 5|replace(5, 6)"),
            "a--b--cbba.a.b.6");
}

TEST(TextFilters, Indent) {
  EXPECT_EQ(shown("'a\\n\\nb'|indent(2)"), "a\n\n  b");
  EXPECT_EQ(shown("'a\\n\\nb'|indent(2, true)"), "  a\n\n  b");
  EXPECT_EQ(shown("'a\\n\\nb'|indent(2, blank=true)"), "a\n  \n  b");
  EXPECT_EQ(shown("'a\\nb'|indent(width='> ', first=true)"), "> a\n> b");
  EXPECT_EQ(shown("'a\\nb\\n'|indent"), "a\n    b\n");
}

TEST(TextFilters, Truncate) {
  EXPECT_EQ(shown("'foo bar baz qux'|truncate(9)"), "foo...");
  EXPECT_EQ(shown("'foo bar baz qux'|truncate(9, true)"), "foo ba...");
  EXPECT_EQ(shown("'foo bar baz qux'|truncate(11)"), "foo bar baz qux");
  EXPECT_EQ(shown("'foo bar baz qux'|truncate(11, false, '...', 0)"), "foo bar...");
}

TEST(TextFilters, CenterAndCount) {
  EXPECT_EQ(shown("'[' ~ 'é'|center(4) ~ ']' ~ 'a b_c, d'|wordcount"), "[ é  ]3");
}

TEST(TextFilters, Format) {
  EXPECT_EQ(shown("'%s-%03d'|format('a', 7) ~ '%(x)s'|format(x=1)"), "a-0071");
  EXPECT_THAT(refusal("'%s'|format(1, x=2)"), HasSubstr("positional and keyword arguments"));
}

TEST(TextFilters, EscapeMakesMarkup) {
  EXPECT_EQ(shown("'<a href=\"x\">&\\'</a>'|e"), "&lt;a href=&#34;x&#34;&gt;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(shown("'<'|e|e ~ '<'|safe|e ~ '<'|e|forceescape"), "&lt;<&amp;lt;");
  // Markup escapes what it is joined with by +, but not by ~ or join.
  EXPECT_EQ(shown("('<b>'|safe) + '<i>'"), "<b>&lt;i&gt;");
  EXPECT_EQ(shown("'<i>' + ('<b>'|safe)"), "&lt;i&gt;<b>");
  EXPECT_EQ(shown("('<b>'|safe) ~ '<i>' ~ ['<', '>'|safe]|join"), "<b><i><>");
  EXPECT_EQ(shown("('<b>'|safe).upper() is escaped"), "True");
  EXPECT_EQ(shown("('%s'|safe) % '<'"), "&lt;");
}

TEST(TextFilters, UrlEncode) {
  EXPECT_EQ(shown("'a b/é?'|urlencode ~ ' ' ~ {'a b': 'c/d', 'e': 1}|urlencode"),
            "a%20b/%C3%A9%3F a+b=c%2Fd&e=1");
}

}  // namespace
}  // namespace baton::jinja
