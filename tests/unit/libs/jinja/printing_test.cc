// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Printing, ShowsFloatsAsPython) {
  EXPECT_EQ(shown("[1.0, 0.1, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 1.5e300, -0.0]"),
            "[1.0, 0.1, 1e+16, 1000000000000000.0, 1.2345678901234568e+17, 0.0001, 1e-05, "
            "1.5e+300, -0.0]");
  EXPECT_EQ(shown("[x, -x, x - x]", R"({"x": 1e999})"), "[inf, -inf, nan]");
}

TEST(Printing, QuotesStringsInsideOfContainers) {
  EXPECT_EQ(shown(R"(['a', "it's", 'say "x"', "both ' and \""])"),
            R"(['a', "it's", 'say "x"', 'both \' and "'])");
  EXPECT_EQ(shown(R"(['\n\t\r\\', '\x00\x7f', 'é日', '\u200b\xa0', '\U000e0001'])"),
            R"(['\n\t\r\\', '\x00\x7f', 'é日', '\u200b\xa0', '\U000e0001'])");
}

TEST(Printing, ShowsContainers) {
  EXPECT_EQ(shown("{'a': [1, (2,)], 'b': none}"), "{'a': [1, (2,)], 'b': None}");
  EXPECT_EQ(shown("{'a': 1}.items()"), "dict_items([('a', 1)])");
  EXPECT_EQ(shown("{'a': 1}.keys()"), "dict_keys(['a'])");
  EXPECT_EQ(shown("{'a': 1}.values()"), "dict_values([1])");
  EXPECT_EQ(shown("[range(3), range(1, 9, 2), nothing, 'x'|safe]"),
            "[range(0, 3), range(1, 9, 2), Undefined, Markup('x')]");
  EXPECT_EQ(rendered("{% macro m() %}{% endmacro %}{{ m }}"), "<Macro 'm'>");
}

TEST(Printing, ShowsNothingOfWhatIsUndefined) {
  EXPECT_EQ(shown("nothing"), "");
  EXPECT_EQ(shown("none"), "None");
}

}  // namespace
}  // namespace baton::jinja
