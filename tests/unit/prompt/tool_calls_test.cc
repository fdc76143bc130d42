// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tool_calls.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

ToolCalls reshaped_calls(std::string_view json) {
  return tool_calls_of(from_json(json), 1).value();
}

TEST(ToolCalls, HaveTheirMembersInTheEnginesOrderAndNoOthers) {
  EXPECT_EQ(
      shown(reshaped_calls(R"([{"type":"function","index":0,"function":{"name":"f","extra":1,
                                "arguments":"{\"b\": 1, \"a\": [true]}"},"id":"c1"}])")
                .calls),
      R"([{"id":"c1","function":{"arguments":{"b":1,"a":[true]},"name":"f"},"type":"function"}])");
}

TEST(ToolCalls, WithoutArgumentsHaveAnEmptyObject) {
  for (const char* const arguments :
       {R"("arguments":"",)", R"("arguments":" \n",)", R"("arguments":null,)", ""}) {
    const std::string json = std::string(R"([{"id":"c","function":{)") + arguments +
                             R"("name":"f"},"type":"function"}])";
    const ToolCalls calls = reshaped_calls(json);
    EXPECT_EQ(shown(calls.calls),
              R"([{"id":"c","function":{"arguments":{},"name":"f"},"type":"function"}])")
        << json;
    EXPECT_EQ(calls.inexact, "");
  }
}

TEST(ToolCalls, TakeArgumentsThatAreParsedAlready) {
  EXPECT_EQ(
      shown(reshaped_calls(R"([{"id":"c","function":{"name":"f","arguments":{"x":1}}}])").calls),
      R"([{"id":"c","function":{"arguments":{"x":1},"name":"f"}}])");
}

// Releases of the engines differ in what they make of these.
TEST(ToolCalls, AreInexactWhereArgumentsAreNoObject) {
  for (const char* const arguments : {R"("{\"x\": ")", R"("[1]")", "[1]", "5"}) {
    const ToolCalls calls =
        reshaped_calls(std::string(R"([{"function":{"name":"f","arguments":)") + arguments + "}}]");
    EXPECT_EQ(shown(calls.calls), R"([{"function":{"arguments":{},"name":"f"}}])") << arguments;
    EXPECT_EQ(calls.inexact, "messages[1].tool_calls[0].function.arguments is no JSON object");
  }
}

TEST(ToolCalls, OfAnotherShapeAreRefusedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "messages[1].tool_calls"},
      {"[1]", "messages[1].tool_calls[0]"},
      {R"([{"id":"c"}])", "messages[1].tool_calls[0].function"},
      {R"([{"function":{"name":"f"}},{"function":"f"}])", "messages[1].tool_calls[1].function"},
  };
  for (const auto& [json, place] : cases) {
    const auto calls = tool_calls_of(from_json(json), 1);
    ASSERT_FALSE(calls) << json;
    EXPECT_EQ(calls.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(calls.error().param(), place);
  }
}

}  // namespace
}  // namespace baton::prompt
