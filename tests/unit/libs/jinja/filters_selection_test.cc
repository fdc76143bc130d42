// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

constexpr std::string_view kMessages =
    R"({"m": [{"role": "user", "n": 1}, {"role": "tool", "n": 2, "x": {"y": 0}}, {"role": "user", "n": 3, "x": {"y": 5}}]})";

TEST(SelectionFilters, Map) {
  EXPECT_EQ(shown("m|map(attribute='role')|join(',')", kMessages), "user,tool,user");
  EXPECT_EQ(shown("m|map(attribute='x.y', default='-')|join(',')", kMessages), "-,0,5");
  EXPECT_EQ(shown("['a', 'b']|map('upper')|list ~ ['axa']|map('replace', 'a', 'b')|list"),
            "['A', 'B']['bxb']");
  EXPECT_THAT(refusal("[1]|map('nope')|list"), HasSubstr("No filter named 'nope'"));
  EXPECT_THAT(refusal("[1]|map|list"), HasSubstr("map requires a filter argument"));
  EXPECT_EQ(shown("nothing|map('upper')|list"), "[]");
}

TEST(SelectionFilters, SelectAndReject) {
  EXPECT_EQ(shown("[0, 1, '', 'a']|select|list"), "[1, 'a']");
  EXPECT_EQ(shown("range(6)|select('odd')|list"), "[1, 3, 5]");
  EXPECT_EQ(shown("range(6)|reject('divisibleby', 3)|list"), "[1, 2, 4, 5]");
  EXPECT_EQ(shown("[1, 'a']|select('string')|list"), "['a']");
  EXPECT_THAT(refusal("[1]|select('nope')|list"), HasSubstr("No test named 'nope'"));
}

TEST(SelectionFilters, ByAttribute) {
  EXPECT_EQ(shown("m|selectattr('role', 'equalto', 'user')|map(attribute='n')|list", kMessages),
            "[1, 3]");
  EXPECT_EQ(shown("m|rejectattr('role', '==', 'user')|map(attribute='n')|list", kMessages), "[2]");
  EXPECT_EQ(shown("m|selectattr('x')|map(attribute='n')|list", kMessages), "[2, 3]");
  EXPECT_EQ(shown("m|selectattr('x', 'undefined')|map(attribute='n')|list", kMessages), "[1]");
  EXPECT_EQ(shown("m|selectattr('n', 'in', [1, 2])|list|length", kMessages), "2");
  EXPECT_THAT(refusal("[1]|selectattr|list"), HasSubstr("Missing parameter for attribute name"));
}

TEST(SelectionFilters, GiveWhatCanBeWalkedOnce) {
  EXPECT_EQ(rendered("{% set it = [1, 2]|map('string') %}{{ it|list }}{{ it|list }}{{ it is "
                     "sequence }}{{ it is iterable }}"),
            "['1', '2'][]FalseTrue");
}

}  // namespace
}  // namespace baton::jinja
