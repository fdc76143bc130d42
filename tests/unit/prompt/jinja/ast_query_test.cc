// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/jinja/ast_query.h"

#include <gtest/gtest.h>

namespace baton::prompt::jinja {
namespace {

TEST(LoopsOverMember, LooksIntoEveryKindOfBlock) {
  for (const char* const source :
       {"{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}",
        "{% for x in list %}{% else %}{% endfor %}{% for y in x['parts'] %}{% endfor %}",
        "{% if a %}{% elif b %}{% for x in list %}{% endfor %}{% else %}"
        "{% for y in x.parts %}{% endfor %}{% endif %}",
        "{% set c %}{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}{% endset %}",
        "{% with a = 1 %}{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}{% "
        "endwith %}",
        "{% macro m() %}{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}{% "
        "endmacro %}",
        "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}"
        "{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}{% endcall %}",
        "{% filter upper %}{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}"
        "{% endfilter %}"}) {
    EXPECT_TRUE(loops_over_member(source, "list", "parts")) << source;
  }
}

TEST(LoopsOverMember, AsksForTheVariableAndTheMember) {
  constexpr const char* kSource =
      "{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}";
  EXPECT_FALSE(loops_over_member(kSource, "other", "parts"));
  EXPECT_FALSE(loops_over_member(kSource, "list", "other"));
}

TEST(LoopsOverMember, IsFalseForATemplateThatCannotBeRead) {
  EXPECT_FALSE(loops_over_member("{% for x in list %}{% for y in x.parts %}", "list", "parts"));
}

}  // namespace
}  // namespace baton::prompt::jinja
