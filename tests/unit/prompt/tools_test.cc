// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tools.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

std::string reshaped_tools(std::string_view json) {
  return shown(tools_of(from_json(json)).value());
}

TEST(Tools, HaveTheirMembersInTheEnginesOrderAndNoOthers) {
  EXPECT_EQ(
      reshaped_tools(R"([{"function":{"parameters":{"type":"object","properties":{}},"strict":true,
                          "description":"d","vendor":1,"name":"f"},"type":"function","x":2}])"),
      R"([{"type":"function","function":{"name":"f","description":"d",)"
      R"("parameters":{"type":"object","properties":{}},"strict":true}}])");
}

TEST(Tools, SayNullWhereDescriptionOrParametersAreNotGiven) {
  EXPECT_EQ(
      reshaped_tools(R"([{"type":"function","function":{"name":"f","strict":null}}])"),
      R"([{"type":"function","function":{"name":"f","description":null,"parameters":null}}])");
  EXPECT_EQ(
      reshaped_tools(R"([{"function":{"name":"f"}}])"),
      R"([{"type":"function","function":{"name":"f","description":null,"parameters":null}}])");
}

TEST(Tools, HandDeferredLoadingDownToTheirFunctions) {
  EXPECT_EQ(reshaped_tools(R"([{"type":"function","function":{"name":"f"},"defer_loading":true},
                         {"type":"function","function":{"name":"g","defer_loading":false},
                          "defer_loading":true}])"),
            R"([{"type":"function","function":{"name":"f","description":null,"parameters":null,)"
            R"("defer_loading":true},"defer_loading":true},)"
            R"({"type":"function","function":{"name":"g","description":null,"parameters":null,)"
            R"("defer_loading":false},"defer_loading":true}])");
}

TEST(Tools, OfAnotherShapeAreRefusedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "tools"},
      {"[1]", "tools[0]"},
      {R"([{"type":"web_search"}])", "tools[0].function"},
      {R"([{"function":{"name":"f"}},{"function":{}}])", "tools[1].function.name"},
  };
  for (const auto& [json, place] : cases) {
    const auto tools = tools_of(from_json(json));
    ASSERT_FALSE(tools) << json;
    EXPECT_EQ(tools.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(tools.error().param(), place);
  }
}

}  // namespace
}  // namespace baton::prompt
