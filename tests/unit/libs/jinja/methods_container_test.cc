// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(TextPredicates, AskEveryCharacter) {
  EXPECT_EQ(shown("['12'.isdigit(), '²'.isdigit(), '1a'.isdigit(), 'aé日'.isalpha(), "
                  "'a1'.isalnum(), ' \\t'.isspace(), ''.isdigit(), ''.isspace()]"),
            "[True, True, False, True, True, True, False, False]");
  EXPECT_EQ(shown("['AB 1'.isupper(), 'ab'.islower(), '1'.isupper(), 'aé'.isascii(), "
                  "'½'.isnumeric(), '²'.isdecimal()]"),
            "[True, True, False, False, True, False]");
}

TEST(ListMethods, FindAndCount) {
  EXPECT_EQ(shown("[[1, 2, 1].index(2), [1, 2, 1].count(1), (1, 2).index(2), [1, 2, 1].index(1, "
                  "1), [1].copy()]"),
            "[1, 2, 1, 2, [1]]");
  EXPECT_THAT(refusal("[1].index(5)"), HasSubstr("5 is not in list"));
}

TEST(DictMethods, GiveItsParts) {
  EXPECT_EQ(shown("[d.get('a'), d.get('x'), d.get('x', 5), d.keys()|list, d.values()|list, "
                  "d.items()|list, d.copy()]",
                  R"({"d": {"a": 1, "b": 2}})"),
            "[1, None, 5, ['a', 'b'], [1, 2], [('a', 1), ('b', 2)], {'a': 1, 'b': 2}]");
  EXPECT_EQ(shown("d.items()|length ~ (d.keys() is sequence)", R"({"d": {"a": 1}})"), "1False");
  EXPECT_THAT(refusal("{}.get([])"), HasSubstr("unhashable type: 'list'"));
}

}  // namespace
}  // namespace baton::jinja
