// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/content_format.h"

#include <gtest/gtest.h>

namespace baton::prompt {
namespace {

ContentFormat format_of(std::string_view source, ContentSearch search = ContentSearch::Members) {
  return content_format_of(source, search);
}

TEST(ContentFormat, IsTextForTemplatesThatPrintTheContent) {
  for (const char* const source :
       {"", "{{ messages[0].content }}",
        "{% for message in messages %}{{ message['content'] }}{% endfor %}",
        "{% for m in messages %}{% for c in m.tool_calls %}{{ c }}{% endfor %}{% endfor %}",
        // A loop over something else that is called content.
        "{% for x in content %}{{ x }}{% endfor %}",
        "{% for m in history %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}",
        // A conditional expression is not looked into.
        "{% for m in (messages if messages else []) %}{% for c in m.content %}{% endfor %}{% "
        "endfor %}",
        "{% for m in messages %}{% for c in m['content'].split('x') %}{% endfor %}{% endfor %}"}) {
    EXPECT_EQ(format_of(source), ContentFormat::Text) << source;
  }
}

TEST(ContentFormat, IsPartsForTemplatesThatLoopOverTheContent) {
  for (const char* const source :
       {"{% for message in messages %}{% for c in message['content'] %}{{ c }}{% endfor %}{% "
        "endfor %}",
        "{% for m in messages %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}",
        "{% for m in messages[1:] %}{% if m.content is not string %}"
        "{% for c in m.content | selectattr('type', 'equalto', 'text') %}{% endfor %}"
        "{% endif %}{% endfor %}",
        "{% set loop_messages = messages %}{% for m in loop_messages %}"
        "{% for c in m['content'] %}{% endfor %}{% endfor %}",
        "{% if true %}{% set a = messages[1:] %}{% endif %}{% set b = a | list %}"
        "{% for m in b %}{% for c in m.content %}{% endfor %}{% endfor %}",
        // Scopes are not looked at: any loop with a variable of that name counts.
        "{% for m in messages %}{% endfor %}"
        "{% macro show(m) %}{% for c in m.content %}{% endfor %}{% endmacro %}",
        "{% for m in messages %}{% generation %}{% for c in m.content[::-1] %}{% endfor %}"
        "{% endgeneration %}{% endfor %}"}) {
    EXPECT_EQ(format_of(source), ContentFormat::Parts) << source;
  }
}

TEST(ContentFormat, IsTextWhereTheEnginesDetectionGivesUp) {
  // The messages go into something that is not a plain name.
  EXPECT_EQ(format_of("{% set ns = namespace() %}{% set ns.all = messages %}{% for m in messages %}"
                      "{% for c in m.content %}{% endfor %}{% endfor %}"),
            ContentFormat::Text);
  EXPECT_EQ(format_of("{% for m in messages %}{% for a, b in m.content %}{% endfor %}{% endfor %}"),
            ContentFormat::Text);
}

TEST(ContentFormat, IsFoundForNamesThatAreAssignedToEachOther) {
  EXPECT_EQ(format_of("{% set a = messages %}{% set b = a %}{% set a = b %}{% for m in b %}"
                      "{% for c in m.content %}{% endfor %}{% endfor %}"),
            ContentFormat::Parts);
}

// Qwen3.5 and others hand the content to a macro.
TEST(ContentFormat, IsPartsForTemplatesThatLoopOverItInAMacro) {
  for (const char* const source :
       {"{% macro show(what) %}{% for c in what %}{{ c }}{% endfor %}{% endmacro %}"
        "{% for m in messages %}{{ show(m.content) }}{% endfor %}",
        "{% macro show(a, what=none) %}{% for c in what %}{{ c }}{% endfor %}{% endmacro %}"
        "{% for m in messages %}{% if m.role %}{% set x = show(1, what=m['content']) | trim %}"
        "{% endif %}{% endfor %}"}) {
    EXPECT_EQ(format_of(source, ContentSearch::Macros), ContentFormat::Parts) << source;
    EXPECT_EQ(format_of(source, ContentSearch::Members), ContentFormat::Text) << source;
    EXPECT_EQ(format_of(source, ContentSearch::Names), ContentFormat::Text) << source;
  }
}

TEST(ContentFormat, IsPartsForALoopOverWhatIsCalledContent) {
  constexpr const char* kLoop = "{% set content = x %}{% for c in content %}{{ c }}{% endfor %}";
  EXPECT_EQ(format_of(kLoop, ContentSearch::Members), ContentFormat::Text);
  EXPECT_EQ(format_of(kLoop, ContentSearch::Names), ContentFormat::Parts);
  EXPECT_EQ(format_of(kLoop, ContentSearch::Macros), ContentFormat::Parts);
  // A macro's parameter is not the content by its name alone.
  constexpr const char* kMacro =
      "{% macro show(content) %}{% for c in content %}{{ c }}{% endfor %}{% endmacro %}"
      "{% for m in messages %}{{ show(m.tools) }}{% endfor %}";
  EXPECT_EQ(format_of(kMacro, ContentSearch::Names), ContentFormat::Parts);
  EXPECT_EQ(format_of(kMacro, ContentSearch::Macros), ContentFormat::Text);
}

}  // namespace
}  // namespace baton::prompt
