// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(ValueFilters, Default) {
  EXPECT_EQ(shown("nothing|default('d') ~ nothing|d ~ ''|default('d') ~ ''|default('e', true) ~ "
                  "none|d('n') ~ none|d('n', boolean=true)"),
            "deNonen");
}

TEST(ValueFilters, Numbers) {
  EXPECT_EQ(shown("['42'|int, ' 7 '|int, '3.9'|int, 'x'|int, 'x'|int(5), '0x1f'|int(base=16), "
                  "'ff'|int(0, 16), 3.99|int, none|int, true|int]"),
            "[42, 7, 3, 0, 5, 31, 255, 3, 0, 1]");
  EXPECT_EQ(shown("['1.5'|float, 'x'|float, 'x'|float(2.5), 3|float, ' 1e3 '|float, '1_0'|float]"),
            "[1.5, 0.0, 2.5, 3.0, 1000.0, 10.0]");
  EXPECT_EQ(shown("[-5|abs, (-2.5)|abs, true|abs]"), "[5, 2.5, 1]");
  EXPECT_EQ(shown("'123456789012345678901'|int"), "123456789012345678901");
}

TEST(ValueFilters, Round) {
  EXPECT_EQ(shown("[2.5|round, 3.5|round, 2.675|round(2), 42.55|round(1, 'floor'), 42.51|round(1, "
                  "'ceil'), 5|round, 1234|round(-2)]"),
            "[2.0, 4.0, 2.67, 42.5, 42.6, 5, 1200]");
  EXPECT_THAT(refusal("1|round(method='x')"), HasSubstr("method must be common, ceil or floor"));
}

TEST(ValueFilters, Items) {
  EXPECT_EQ(rendered("{% for k, v in d|items %}{{ k }}{{ v }}{% endfor %}{{ nothing|items|list }}",
                     R"({"d": {"a": 1}})"),
            "a1[]");
  EXPECT_THAT(refusal("[1]|items|list"), HasSubstr("Can only get item pairs from a mapping."));
}

TEST(ValueFilters, Attr) {
  EXPECT_EQ(
      rendered("{{ {'upper': 1}|attr('upper') is defined }}{{ 'a'|attr('upper') is defined }}"),
      "FalseTrue");
}

}  // namespace
}  // namespace baton::jinja
