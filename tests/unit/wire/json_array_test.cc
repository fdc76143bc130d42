// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_array.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

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

TEST(Elements, AreTheRawTextsOfAllUpToALimit) {
  using List = std::vector<std::string_view>;
  EXPECT_EQ(elements(R"([1, "a,]" ,[2,3],{"b":[4]} , null])", 9),
            (List{"1", R"("a,]")", "[2,3]", R"({"b":[4]})", "null"}));
  EXPECT_EQ(elements("[1,2,3]", 2), (List{"1", "2"}));
  EXPECT_EQ(elements("[1]", 0), List());
  for (const char* json : {"[]", "[ ]", "{}", R"("[1]")", "null", "", " "})
    EXPECT_EQ(elements(json, 9), List()) << json;
}

}  // namespace
}  // namespace baton::wire
