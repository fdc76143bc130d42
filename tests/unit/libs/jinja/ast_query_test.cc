// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/ast_query.h"

#include <gtest/gtest.h>

namespace baton::jinja {
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
    EXPECT_TRUE(loops_over_member(source, "list", "parts", LoopSearch::Members)) << source;
  }
}

TEST(LoopsOverMember, AsksForTheVariableAndTheMember) {
  constexpr const char* kSource =
      "{% for x in list %}{% for y in x.parts %}{% endfor %}{% endfor %}";
  EXPECT_FALSE(loops_over_member(kSource, "other", "parts", LoopSearch::Members));
  EXPECT_FALSE(loops_over_member(kSource, "list", "other", LoopSearch::Members));
}

TEST(LoopsOverMember, IsFalseForATemplateThatCannotBeRead) {
  EXPECT_FALSE(loops_over_member("{% for x in list %}{% for y in x.parts %}", "list", "parts",
                                 LoopSearch::Members));
}

TEST(LoopsOverMember, FollowsTheMemberIntoAMacroOnlyWhereACallGivesIt) {
  constexpr const char* kGiven =
      "{% macro m(p) %}{% for y in p %}{% endfor %}{% endmacro %}"
      "{% for x in list %}{% if m(x.parts) %}{% endif %}{% endfor %}";
  EXPECT_TRUE(loops_over_member(kGiven, "list", "parts", LoopSearch::Macros));
  EXPECT_FALSE(loops_over_member(kGiven, "list", "parts", LoopSearch::Names));
  constexpr const char* kOther =
      "{% macro m(p, q) %}{% for y in q %}{% endfor %}{% endmacro %}"
      "{% for x in list %}{{ m(x.parts) }}{% endfor %}";
  EXPECT_FALSE(loops_over_member(kOther, "list", "parts", LoopSearch::Macros));
}

}  // namespace
}  // namespace baton::jinja
