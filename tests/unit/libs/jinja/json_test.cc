// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/printing.h"
#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

std::string printed(std::string_view json) {
  return shown("v", "{\"v\":" + std::string(json) + "}");
}

TEST(Json, ReadsEveryKindOfValue) {
  EXPECT_EQ(printed(R"([null, true, false, 1, -2, 1.5, "x", {"a": []}])"),
            "[None, True, False, 1, -2, 1.5, 'x', {'a': []}]");
  EXPECT_EQ(printed(R"("a\n\"\u00e9\ud83c\udf89")"), "a\n\"é🎉");
}

TEST(Json, ReadsBareValues) {
  EXPECT_EQ(value_from_json(" 12 ")->as_int(), 12);
  EXPECT_TRUE(value_from_json("null")->is_none());
  EXPECT_EQ(value_from_json("\"x\"")->as_string(), "x");
}

TEST(Json, ReadsNumbersAsPythonDoes) {
  EXPECT_EQ(printed("1.0"), "1.0");
  EXPECT_EQ(printed("1e2"), "100.0");
  EXPECT_EQ(printed("1E+2"), "100.0");
  EXPECT_EQ(printed("-0"), "0");
  EXPECT_EQ(printed("-0.0"), "-0.0");
  EXPECT_EQ(printed("1e400"), "inf");
  EXPECT_EQ(printed("1e-400"), "0.0");
  EXPECT_EQ(printed("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(printed("9223372036854775808"), "9223372036854775808");
  EXPECT_EQ(printed("-123456789012345678901234567890"), "-123456789012345678901234567890");
}

TEST(Json, OfARepeatedKeyTheLastValueWinsInTheFirstPlace) {
  EXPECT_EQ(printed(R"({"a": 1, "b": 2, "a": 3})"), "{'a': 3, 'b': 2}");
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const std::string_view bad : {"",
                                     "{",
                                     "[1,]",
                                     "{\"a\"}",
                                     "1 2",
                                     "1,2",
                                     "1] [2",
                                     "01",
                                     "1.",
                                     ".5",
                                     "+1",
                                     "1e",
                                     "nul",
                                     "truee",
                                     "'x'",
                                     "\"\xff\"",
                                     "\"\\ud800\"",
                                     "[1 2]",
                                     "{\"a\":1 \"b\":2}",
                                     "-",
                                     "--1"}) {
    const auto value = value_from_json(bad);
    ASSERT_FALSE(value) << bad;
    EXPECT_EQ(value.error().code(), ErrorCode::InvalidJson);
  }
}

TEST(Json, PointsToStringsWithinATextThatStays) {
  const std::string text =
      R"( { "plain" : "a text that is long enough" , "escaped":"a \"text\" that is not as it was",)"
      R"("list":[ 1 ,-2.5e1, true,false , null,[],{ },"\u00e9" ]} )";
  const Value value = value_within_json(text).value();
  EXPECT_EQ(str(value), str(value_from_json(text).value()));
  EXPECT_EQ(
      str(value),
      "{'plain': 'a text that is long enough', 'escaped': 'a \"text\" that is not as it was', "
      "'list': [1, -25.0, True, False, None, [], {}, 'é']}");
  EXPECT_EQ(value.as_dict().find("plain")->as_string().data(), text.data() + text.find("a text"));
  EXPECT_NE(value_from_json(text)->as_dict().find("plain")->as_string().data(),
            text.data() + text.find("a text"));
}

TEST(Json, BoundsHowDeepItGoes) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(value_from_json(nested(kMaxNesting)));
  EXPECT_FALSE(value_from_json(nested(kMaxNesting + 1)));
  EXPECT_FALSE(value_from_json(std::string(100'000, '[')));
  EXPECT_TRUE(value_within_json(nested(kMaxNesting)));
  EXPECT_FALSE(value_within_json(nested(kMaxNesting + 1)));
}

}  // namespace
}  // namespace baton::jinja
