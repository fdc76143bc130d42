// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/libs/jinja/rendering.h"

#include <stop_token>

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Template, RendersTheSameManyTimes) {
  const auto read =
      Template::parse("{% set ns = namespace(n=n) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}");
  ASSERT_TRUE(read);
  Dict variables;
  variables.set("n", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*read)->render(variables, usual()), "2");
}

TEST(Template, NamesTheLineOfWhatItCannotRead) {
  EXPECT_THAT(failure("a\n{% if x %}\n"), HasSubstr("line 2: Unexpected end of template"));
  EXPECT_THAT(failure("\n\n{{ 1 + }}"), HasSubstr("line 3: unexpected 'end of print statement'"));
  EXPECT_THAT(failure("{% foo %}"), HasSubstr("unknown tag 'foo'"));
  EXPECT_THAT(failure("{{ x"), HasSubstr("unexpected end of template"));
  EXPECT_THAT(failure("{{ ) }}"), HasSubstr("unexpected ')'"));
  EXPECT_THAT(failure("{{ (] }}"), HasSubstr("unexpected ']', expected ')'"));
  EXPECT_THAT(failure("{{ a ? b }}"), HasSubstr("unexpected char '?' at 5"));
  EXPECT_THAT(failure("{# x"), HasSubstr("Missing end of comment tag"));
  EXPECT_THAT(failure("{% raw %} x"), HasSubstr("Missing end of raw directive"));
}

TEST(Template, RefusesWhatIsNoText) { EXPECT_THAT(failure("a\xff"), HasSubstr("not UTF-8")); }

TEST(Template, RefusesWhatNeedsOtherTemplates) {
  for (const std::string tag : {"extends 'x'", "include 'x'", "import 'x' as y", "block b"}) {
    const std::string name = tag.substr(0, tag.find(' '));
    EXPECT_THAT(failure("{% " + tag + " %}"), HasSubstr("the tag '" + name + "' is not supported"));
  }
}

TEST(Template, RefusesUnknownFiltersAndTestsByName) {
  EXPECT_THAT(failure("{{ x|nope }}"), HasSubstr("No filter named 'nope'"));
  EXPECT_THAT(failure("{{ x is nope }}"), HasSubstr("No test named 'nope'"));
  EXPECT_THAT(failure("{% for i in [] %}{{ i|nope }}{% endfor %}"),
              HasSubstr("No filter named 'nope'"));
  // Inside of an `if` only where they are reached, so that templates can ask first.
  EXPECT_EQ(rendered("{% if false %}{{ x|nope }}{% endif %}-"), "-");
  EXPECT_EQ(rendered("{{ 1 if true else x|nope }}"), "1");
  EXPECT_THAT(failure("{% if true %}{{ 1|nope }}{% endif %}"), HasSubstr("No filter named 'nope'"));
}

TEST(Template, RefusesGlobalsItDoesNotHaveByName) {
  for (const std::string source : {"{{ lipsum(1) }}", "{% if false %}{{ lipsum() }}{% endif %}",
                                   "{% macro m() %}{{ lipsum() }}{% endmacro %}",
                                   "{% for i in [] if lipsum is defined %}{% endfor %}"}) {
    const auto read = Template::parse(source);
    ASSERT_FALSE(read) << source;
    EXPECT_THAT(read.error().message(), HasSubstr("the global 'lipsum' is not supported"));
  }
  EXPECT_EQ(rendered("{% set lipsum = 1 %}{{ lipsum }}"), "1") << "a variable of that name";
  EXPECT_EQ(rendered("{{ x.lipsum }}", R"({"x":{"lipsum":2}})"), "2");
}

TEST(Template, QuotesItsOwnExceptions) {
  EXPECT_EQ(failure("{{ raise_exception('Roles must alternate!') }}"),
            "The chat template failed: Roles must alternate!");
}

TEST(Template, BoundsSteps) {
  auto circumstances = usual();
  bool crossed = false;
  circumstances.crossed = &crossed;
  circumstances.limits.steps = 10'000;
  const std::string_view loops =
      "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}";
  const auto result = render(loops, "{}", circumstances);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("more than 10000 steps"));
  EXPECT_TRUE(crossed);
  EXPECT_FALSE(render("{{ raise_exception('no') }}", "{}", circumstances));
  EXPECT_FALSE(crossed) << "which no limit has to do with";
}

TEST(Template, BoundsOutput) {
  auto circumstances = usual();
  bool crossed = false;
  circumstances.crossed = &crossed;
  circumstances.limits.output_bytes = 1000;
  EXPECT_TRUE(render("{% for i in range(100) %}0123456789{% endfor %}", "{}", circumstances));
  const auto result =
      render("{% for i in range(101) %}0123456789{% endfor %}", "{}", circumstances);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("more than 1000 bytes"));
  EXPECT_TRUE(crossed);
}

TEST(Template, BoundsWhatIsMadeOnTheWay) {
  auto circumstances = usual();
  circumstances.limits.output_bytes = 100'000;
  for (const std::string_view greedy :
       {"{% set x = 'x' * 10**9 %}", "{% set x = [1] * 10**9 %}", "{% set x = 'x'.rjust(10**9) %}",
        "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% "
        "endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% "
        "endfor %}",
        "{% set x = '%999999d' % 1 %}", "{% set x = ('a' * 50000).replace('', 'b' * 1000) %}"}) {
    EXPECT_FALSE(render(greedy, "{}", circumstances)) << greedy;
  }
}

TEST(Template, BoundsWhatSharedValuesGrowTo) {
  const std::string_view doubled =
      "{% set ns = namespace(a=[1], b=[1]) %}"
      "{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor "
      "%}";
  for (const std::string_view use :
       {"{{ ns.a }}", "{{ ns.a|tojson }}", "{{ ns.a == ns.b }}", "{{ ns.a in [ns.b] }}"}) {
    EXPECT_FALSE(render(std::string(doubled) + std::string(use))) << use;
  }
}

TEST(Template, BoundsRecursion) {
  EXPECT_THAT(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("calls itself"));
  EXPECT_THAT(failure("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("calls itself"));
  EXPECT_EQ(rendered("{% macro m(n) %}{{ n }}{{ m(n - 1) if n }}{% endmacro %}{{ m(5) }}"),
            "543210");
}

TEST(Template, BoundsNesting) {
  const auto repeat = [](std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_THAT(failure("{{ " + repeat("(", 5000) + "1" + repeat(")", 5000) + " }}"),
              HasSubstr("nested deeper"));
  EXPECT_THAT(failure("{{ " + repeat("[", 5000) + repeat("]", 5000) + " }}"),
              HasSubstr("nested deeper"));
  EXPECT_THAT(failure("{{ 1" + repeat(" + 1", 5000) + " }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(failure("{{ x" + repeat("|upper", 5000) + " }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(failure("{{ " + repeat("not ", 5000) + "x }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(failure("{{ " + repeat("-", 5000) + "1 }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(failure(repeat("{% if 1 %}", 5000)), HasSubstr("nested deeper"));
  EXPECT_EQ(rendered("{{ 'a'" + repeat(" ~ 'a'", 1000) + " }}").size(), 1001U);
  // Values too: freeing and printing them recurses.
  EXPECT_THAT(failure("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = "
                      "[ns.x] %}{% endfor %}"),
              HasSubstr("nested deeper"));
}

TEST(Template, StopsWhenTheClientIsGone) {
  std::stop_source source;
  source.request_stop();
  auto circumstances = usual();
  circumstances.stop = source.get_token();
  const auto result = render("{% for i in range(100000) %}x{% endfor %}", "{}", circumstances);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::Stopped);
}

TEST(Template, FreesWhatHoldsItself) {
  // The leak checker of the asan build watches this one.
  EXPECT_EQ(
      rendered("{% set ns = namespace() %}{% set ns.me = ns %}"
               "{% macro m() %}{{ m is callable }}{% endmacro %}{% set ns.m = m %}{{ ns.m() }}"),
      "True");
  EXPECT_THAT(failure("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"),
              HasSubstr("recursion"));
}

}  // namespace
}  // namespace baton::jinja
