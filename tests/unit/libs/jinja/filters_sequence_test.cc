// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(SequenceFilters, FirstLastLength) {
  EXPECT_EQ(
      shown("[1, 2, 3]|first ~ [1, 2, 3]|last ~ 'abc'|length ~ {'a': 1}|count ~ nothing|length"),
      "13310");
  EXPECT_EQ(shown("'é日'|first ~ 'é日'|last ~ {'k': 1}|first"), "é日k");
  EXPECT_EQ(shown("[]|first is defined"), "False");
  EXPECT_THAT(refusal("([]|first).x"), HasSubstr("No first item, sequence was empty."));
  EXPECT_THAT(refusal("5|length"), HasSubstr("object of type 'int' has no len()"));
  EXPECT_THAT(refusal("[1]|map('string')|length"),
              HasSubstr("object of type 'generator' has no len()"));
}

TEST(SequenceFilters, ListAndReverse) {
  EXPECT_EQ(shown("['ab'|list, {'k': 1}|list, range(2)|list]"), "[['a', 'b'], ['k'], [0, 1]]");
  EXPECT_EQ(shown("[[1, 2]|reverse|list, 'aé'|reverse]"), "[[2, 1], 'éa']");
}

TEST(SequenceFilters, Join) {
  EXPECT_EQ(shown("[1, 'a', none]|join ~ [1, 2]|join(', ') ~ 'abc'|join('-')"), "1aNone1, 2a-b-c");
  EXPECT_EQ(shown("v|join('/', attribute='n.x')", R"({"v": [{"n": {"x": 1}}, {"n": {"x": 2}}]})"),
            "1/2");
}

TEST(SequenceFilters, Sort) {
  EXPECT_EQ(shown("['b', 'A', 'c']|sort"), "['A', 'b', 'c']");
  EXPECT_EQ(shown("['b', 'a', 'C']|sort(case_sensitive=true)"), "['C', 'a', 'b']");
  EXPECT_EQ(shown("[3, 1, 2]|sort(reverse=true)"), "[3, 2, 1]");
  const std::string_view people =
      R"({"p": [{"n": "b", "a": 1}, {"n": "a", "a": 2}, {"n": "c", "a": 1}]})";
  EXPECT_EQ(shown("p|sort(attribute='a')|map(attribute='n')|join", people), "bca");
  EXPECT_EQ(shown("p|sort(attribute='a', reverse=true)|map(attribute='n')|join", people), "abc");
  EXPECT_EQ(shown("p|sort(attribute='a,n')|map(attribute='n')|join", people), "bca");
  EXPECT_THAT(refusal("[1, 'a']|sort"), HasSubstr("'<' not supported"));
}

TEST(SequenceFilters, DictSort) {
  EXPECT_EQ(shown("{'b': 1, 'A': 2}|dictsort"), "[('A', 2), ('b', 1)]");
  EXPECT_EQ(shown("{'b': 1, 'A': 2}|dictsort(by='value')"), "[('b', 1), ('A', 2)]");
  EXPECT_EQ(shown("{'b': 1, 'A': 2}|dictsort(true, reverse=true)"), "[('b', 1), ('A', 2)]");
}

TEST(SequenceFilters, UniqueMinMaxSum) {
  EXPECT_EQ(shown("['a', 'A', 'b']|unique|list"), "['a', 'b']");
  EXPECT_EQ(shown("['a', 'A', 'b']|unique(case_sensitive=true)|list"), "['a', 'A', 'b']");
  EXPECT_EQ(
      shown("[3, 1, 2]|min ~ [3, 1, 2]|max ~ ['b', 'A']|min ~ [1, 2.5]|sum ~ [1]|sum(start=10)"),
      "13A3.511");
  EXPECT_EQ(
      shown("v|sum(attribute='x') ~ (v|max(attribute='x')).x", R"({"v": [{"x": 1}, {"x": 2}]})"),
      "32");
  EXPECT_EQ(shown("[]|min is defined"), "False");
}

TEST(SequenceFilters, GroupBy) {
  const std::string_view people =
      R"({"p": [{"n": 1, "c": "ny"}, {"n": 2, "c": "LA"}, {"n": 3, "c": "NY"}, {"n": 4}]})";
  EXPECT_EQ(rendered("{% for c, ps in p|groupby('c', default='zz') %}{{ c }}:{{ "
                     "ps|map(attribute='n')|join(',') }} {% endfor %}",
                     people),
            "LA:2 ny:1,3 zz:4 ");
  EXPECT_EQ(
      shown("(p[:2]|groupby('c')|first).grouper ~ (p[:2]|groupby('c')|first).list|length", people),
      "LA1");
}

TEST(SequenceFilters, BatchAndSlice) {
  EXPECT_EQ(shown("range(5)|batch(2)|list"), "[[0, 1], [2, 3], [4]]");
  EXPECT_EQ(shown("range(5)|batch(2, 'x')|list"), "[[0, 1], [2, 3], [4, 'x']]");
  EXPECT_EQ(shown("range(5)|slice(3)|list"), "[[0, 1], [2, 3], [4]]");
  EXPECT_EQ(shown("range(5)|slice(3, 'x')|list"), "[[0, 1], [2, 3], [4, 'x']]");
}

}  // namespace
}  // namespace baton::jinja
