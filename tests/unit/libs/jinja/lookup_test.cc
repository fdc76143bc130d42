// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Lookup, FindsItemsAndAttributes) {
  const std::string_view data = R"({"m": {"role": "user", "items": 5, "n": {"x": [1, 2]}}})";
  EXPECT_EQ(shown("m.role ~ m['role'] ~ m.n.x[1] ~ m.n.x.0 ~ m['n']['x'][-1]", data),
            "useruser212");
  // An attribute hides the item behind a dot, the item the attribute in brackets.
  EXPECT_EQ(shown("m['items']", data), "5");
  EXPECT_EQ(shown("m.items()|length", data), "3");
  EXPECT_EQ(shown("m['keys']()|length", data), "3");
}

TEST(Lookup, WhatIsNotThereIsUndefined) {
  const std::string_view data = R"({"d": {}, "l": [1], "s": "x", "n": null, "i": 5})";
  EXPECT_EQ(shown("[d.x, d['x'], d[5], l[1], l.x, l['x'], s[5], s.x, n.x, n[0], i.x, "
                  "i[0]]|select('defined')|list",
                  data),
            "[]");
  EXPECT_THAT(refusal("d.x.y", data), HasSubstr("'dict object' has no attribute 'x'"));
  EXPECT_THAT(refusal("l[3].y", data), HasSubstr("list object has no element 3"));
  EXPECT_THAT(refusal("n.x.y", data), HasSubstr("'None' has no attribute 'x'"));
  EXPECT_THAT(refusal("nothing.x", data), HasSubstr("'nothing' is undefined"));
  EXPECT_THAT(refusal("nothing['x']", data), HasSubstr("'nothing' is undefined"));
}

TEST(Lookup, CountsCharacters) {
  EXPECT_EQ(shown("'aé日🎉'[2] ~ 'aé日🎉'[-1] ~ 'aé日🎉'|length"), "日🎉4");
}

TEST(Lookup, Slices) {
  EXPECT_EQ(shown("[l[1:], l[:-1], l[::2], l[::-1], l[3:1:-1], l[-2:], l[5:], l[:99]]",
                  R"({"l": [0, 1, 2, 3]})"),
            "[[1, 2, 3], [0, 1, 2], [0, 2], [3, 2, 1, 0], [3, 2], [2, 3], [], [0, 1, 2, 3]]");
  EXPECT_EQ(
      shown(
          "'aé日🎉b'[1:4] ~ '|' ~ 'aé日🎉b'[::-1] ~ '|' ~ 'abc'[none:2] ~ '|' ~ 'abcdef'[4:0:-2]"),
      "é日🎉|b🎉日éa|ab|ec");
  EXPECT_EQ(shown("(1, 2, 3)[1:]"), "(2, 3)");
  EXPECT_EQ(shown("range(10)[2:8:3]|list"), "[2, 5]");
  EXPECT_THAT(refusal("x[::0]", R"({"x": [1]})"), HasSubstr("slice step cannot be zero"));
  EXPECT_THAT(refusal("x[1:]"), HasSubstr("'x' is undefined"));
  EXPECT_THAT(refusal("x[1:]", R"({"x": 5})"), HasSubstr("'int' object is not subscriptable"));
  EXPECT_THAT(refusal("x['a':]", R"({"x": [1]})"), HasSubstr("slice indices must be integers"));
}

TEST(Lookup, LongSlicesOfTextShareIt) {
  const std::string text(1000, 'x');
  EXPECT_EQ(shown("s[10:]|length", "{\"s\": \"" + text + "\"}"), "990");
}

TEST(Lookup, TheSandboxHidesWhatChangesOrReaches) {
  EXPECT_THAT(refusal("[].append(1)"),
              HasSubstr("access to attribute 'append' of 'list' object is unsafe."));
  EXPECT_THAT(refusal("{}.update({})"),
              HasSubstr("access to attribute 'update' of 'dict' object is unsafe."));
  EXPECT_THAT(refusal("''.__class__.x"),
              HasSubstr("access to attribute '__class__' of 'str' object is unsafe."));
  EXPECT_EQ(shown("[].append is defined"), "False");
  EXPECT_EQ(shown("{'pop': 1}['pop']"), "1");
}

TEST(Lookup, MethodsAreValues) {
  EXPECT_EQ(rendered("{% set f = 'abc'.upper %}{{ f() }}{{ f is callable }}"), "ABCTrue");
}

}  // namespace
}  // namespace baton::jinja
