// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(ToJson, WritesAsPythonDoes) {
  EXPECT_EQ(shown("v|tojson",
                  R"({"v": {"a": [1, 2.0, true, null, "é<&'\"\n\u0001"], "b": {}, "c": []}})"),
            R"({"a": [1, 2.0, true, null, "é<&'\"\n\u0001"], "b": {}, "c": []})");
  EXPECT_EQ(shown("(1, 'a')|tojson"), "[1, \"a\"]");
  EXPECT_EQ(shown("{1: 2, none: 3, true: 4, 1.5: 5}|tojson"), R"({"1": 4, "null": 3, "1.5": 5})");
  EXPECT_EQ(shown("[v, -v]|tojson", R"({"v": 1e999})"), "[Infinity, -Infinity]");
  EXPECT_EQ(shown("v|tojson", R"({"v": 123456789012345678901234})"), "123456789012345678901234");
}

TEST(ToJson, Indents) {
  EXPECT_EQ(shown("{'a': [1, {}], 'b': []}|tojson(indent=2)"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
  EXPECT_EQ(shown("[1]|tojson(indent='--')"), "[\n--1\n]");
  EXPECT_EQ(shown("[1]|tojson(indent=0)"), "[\n1\n]");
}

TEST(ToJson, TakesTransformersParameters) {
  EXPECT_EQ(shown("{'b': 1, 'a': 2}|tojson(sort_keys=true)"), R"({"a": 2, "b": 1})");
  EXPECT_EQ(shown("{'b': [1, 2]}|tojson(separators=(',', ':'))"), R"({"b":[1,2]})");
  EXPECT_EQ(shown("'é🎉'|tojson(ensure_ascii=true)"), R"("\u00e9\ud83c\udf89")");
  EXPECT_EQ(shown("'é'|tojson(true)"), R"("\u00e9")");  // the first parameter
}

TEST(ToJson, RefusesWhatHasNoJson) {
  EXPECT_THAT(refusal("nothing|tojson"),
              HasSubstr("Object of type Undefined is not JSON serializable"));
  EXPECT_THAT(refusal("namespace()|tojson"),
              HasSubstr("Object of type Namespace is not JSON serializable"));
  EXPECT_THAT(refusal("{(1, 2): 3}|tojson"),
              HasSubstr("keys must be str, int, float, bool or None, not tuple"));
  EXPECT_THAT(refusal("{'a': 1, 1: 2}|tojson(sort_keys=true)"), HasSubstr("'<' not supported"));
}

}  // namespace
}  // namespace baton::jinja
