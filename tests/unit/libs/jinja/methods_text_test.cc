// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(TextMethods, Split) {
  EXPECT_EQ(shown("['a b  c '.split(), ' a b '.split(' '), 'a,b,c'.split(',', 1), "
                  "'a,b,c'.rsplit(',', 1), ''.split(), ''.split(',')]"),
            "[['a', 'b', 'c'], ['', 'a', 'b', ''], ['a', 'b,c'], ['a,b', 'c'], [], ['']]");
  EXPECT_EQ(
      shown("[' a b c '.split(none, 1), ' a b c '.rsplit(none, 1), 'a b c'.split(maxsplit=1)]"),
      "[['a', 'b c '], [' a b', 'c'], ['a', 'b c']]");
  EXPECT_EQ(
      shown("['a\\nb\\r\\nc\\n'.splitlines(), 'a\\nb'.splitlines(true), 'a\\u2028b'.splitlines()]"),
      "[['a', 'b', 'c'], ['a\\n', 'b'], ['a', 'b']]");
  EXPECT_THAT(refusal("'a'.split('')"), HasSubstr("empty separator"));
}

TEST(TextMethods, ThinkingTemplatesSplitLongTexts) {
  const std::string answer(300, 'a');
  EXPECT_EQ(shown("s.split('</think>')[-1].lstrip('\\n')",
                  "{\"s\": \"<think>x</think>\\n\\n" + answer + "\"}"),
            answer);
}

TEST(TextMethods, Strip) {
  EXPECT_EQ(shown("['  a '.strip(), '  a '.lstrip(), '  a '.rstrip(), 'xyaxy'.strip('yx'), "
                  "'éaé'.strip('é'), ' a'.strip(none)]"),
            "['a', 'a ', '  a', 'a', 'a', 'a']");
}

TEST(TextMethods, Affixes) {
  EXPECT_EQ(shown("['abc'.startswith('ab'), 'abc'.endswith(('x', 'bc')), 'abc'.startswith('b', 1), "
                  "'abc'.endswith('b', 0, 2), ''.startswith('')]"),
            "[True, True, True, True, True]");
  EXPECT_EQ(shown("['abc'.removeprefix('a'), 'abc'.removesuffix('bc'), 'abc'.removeprefix('x')]"),
            "['bc', 'a', 'abc']");
  EXPECT_THAT(refusal("'a'.startswith(1)"),
              HasSubstr("startswith first arg must be str or a tuple of str, not int"));
  EXPECT_THAT(refusal("'a'.startswith(['a'])"), HasSubstr("not list"));
}

TEST(TextMethods, Search) {
  EXPECT_EQ(shown("['aébé'.find('é'), 'aébé'.rfind('é'), 'abc'.find('x'), 'abcabc'.find('a', 1), "
                  "'abc'.index('c'), 'aXbX'.count('X'), 'abc'.count('')]"),
            "[1, 3, -1, 3, 2, 2, 4]");
  EXPECT_THAT(refusal("'abc'.index('x')"), HasSubstr("substring not found"));
}

TEST(TextMethods, Change) {
  EXPECT_EQ(shown("['aXb'.replace('X', '-'), 'aaa'.replace('a', 'b', 1), 'ab'.upper(), "
                  "'AB'.lower(), \"it's a\".title(), 'aB'.capitalize(), 'aB'.swapcase()]"),
            "['a-b', 'baa', 'AB', 'ab', \"It'S A\", 'Ab', 'Ab']");
  EXPECT_EQ(shown("'-'.join(['a', 'b']) ~ ''.join('xy') ~ 'a\\tb'.expandtabs(4)"), "a-bxya   b");
  EXPECT_THAT(refusal("','.join([1])"),
              HasSubstr("sequence item 0: expected str instance, int found"));
  EXPECT_THAT(refusal("'a'.replace('a', 1)"), HasSubstr("must be str, not int"));
}

TEST(TextMethods, Pad) {
  EXPECT_EQ(shown("['a'.ljust(3), 'a'.rjust(3, '.'), 'a'.center(4, '-'), 'ab'.center(5, '-'), "
                  "'-7'.zfill(4), '7'.zfill(3), 'abc'.ljust(1)]"),
            "['a  ', '..a', '-a--', '--ab-', '-007', '007', 'abc']");
}

TEST(TextMethods, Partition) {
  EXPECT_EQ(shown("['a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'a'.partition('='), "
                  "'a'.rpartition('=')]"),
            "[('a', '=', 'b=c'), ('a=b', '=', 'c'), ('a', '', ''), ('', '', 'a')]");
}

TEST(TextMethods, RefuseBytes) { EXPECT_THAT(refusal("'a'.encode()"), HasSubstr("not supported")); }

}  // namespace
}  // namespace baton::jinja
