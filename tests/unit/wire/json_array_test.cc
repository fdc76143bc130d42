// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_array.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::wire {
namespace {

TEST(FirstElement, IsTheRawTextOfWhateverComesFirst) {
  const std::pair<std::string, std::string> cases[] = {
      {R"([1])", "1"},
      {R"([1,2,3])", "1"},
      {" \t\r\n[ \n 12345678901234567890.25e-3 \t, 2]", "12345678901234567890.25e-3"},
      {R"(["a","b"])", R"("a")"},
      {R"(["a,b]}","c"])", R"("a,b]}")"},
      {R"(["quote \" and \\","c"])", R"("quote \" and \\")"},
      {R"(["\\"])", R"("\\")"},
      {R"([[1,[2]],3])", "[1,[2]]"},
      {R"([{"a":[1,{"b":"]"}],"c":"}"},2])", R"({"a":[1,{"b":"]"}],"c":"}"})"},
      {R"([null])", "null"},
      {R"([true,false])", "true"},
      {R"([[]])", "[]"},
      {R"([{}  ])", "{}"},
  };
  for (const auto& [json, expected] : cases) {
    EXPECT_EQ(first_element(json), expected) << json;
  }
}

TEST(FirstElement, IsNoneWhereThereIsNoArrayOrNothingInIt) {
  for (const char* json :
       {"[]", "[ \n ]", "{}", R"({"a":[1]})", R"("[1]")", "1", "null", "", "  "}) {
    EXPECT_EQ(first_element(json), std::nullopt) << json;
  }
}

}  // namespace
}  // namespace baton::wire
