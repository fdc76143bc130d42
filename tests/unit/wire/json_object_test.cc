// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::wire {
namespace {

using testing::HasSubstr;

JsonObject parsed(std::string_view text) {
  auto object = JsonObject::parse(text);
  EXPECT_TRUE(object) << text << ": " << (object ? "" : object.error().message());
  return object ? std::move(*object) : JsonObject();
}

std::string refusal(std::string_view text) {
  const auto object = JsonObject::parse(text);
  if (object) return "accepted";
  EXPECT_EQ(object.error().code(), Errc::InvalidJson);
  return object.error().message();
}

TEST(JsonObject, FindsTheRawTextOfTopLevelMembers) {
  const auto object = parsed(
      " { \"a\" : 1 ,\"b\":[1, {\"a\":2}, \"]\"] , \"c\":{\"d\":\"}\\\"\"},\n\"e\":\"x\\\\\","
      "\"f\":null,\"g\":-1.5e3}\r\n");
  EXPECT_EQ(object.find("a"), "1");
  EXPECT_EQ(object.find("b"), "[1, {\"a\":2}, \"]\"]");
  EXPECT_EQ(object.find("c"), "{\"d\":\"}\\\"\"}");
  EXPECT_EQ(object.find("e"), "\"x\\\\\"");
  EXPECT_EQ(object.find("f"), "null");
  EXPECT_EQ(object.find("g"), "-1.5e3");
  EXPECT_FALSE(object.find("d"));
  EXPECT_TRUE(object.has("f"));
  EXPECT_FALSE(object.has(""));
}

TEST(JsonObject, AcceptsEmptyObjectsAndEmptyKeys) {
  EXPECT_FALSE(parsed("{}").has("a"));
  EXPECT_FALSE(parsed(" { } ").has("a"));
  EXPECT_EQ(parsed("{\"\":1}").find(""), "1");
}

TEST(JsonObject, ReadsTheLastOfRepeatedKeys) {
  EXPECT_EQ(parsed("{\"a\":1,\"b\":2,\"a\":3}").find("a"), "3");
  EXPECT_EQ(parsed("{\"a\":1,\"\\u0061\":3}").find("a"), "3");
}

TEST(JsonObject, ComparesKeysUnescaped) {
  EXPECT_EQ(parsed("{\"\\u006dodel\":1}").find("model"), "1");
  EXPECT_EQ(parsed("{\"a\\\"b\":1}").find("a\"b"), "1");
  EXPECT_FALSE(parsed("{\"a\\\"b\":1}").has("a\\\"b"));
}

TEST(JsonObject, KeepsUnescapedKeysForItsCopies) {
  std::optional<JsonObject> first = parsed(R"({"\u0061":1,"plain":2,"\n\t":3,"\ud83d\ude00":4})");
  const JsonObject copy = *first;
  first.reset();
  EXPECT_EQ(copy.find("a"), "1");
  EXPECT_EQ(copy.find("plain"), "2");
  EXPECT_EQ(copy.find("\n\t"), "3");
  EXPECT_EQ(copy.find("\xF0\x9F\x98\x80"), "4");
  // As they were sent where they are listed.
  std::string keys;
  copy.each([&](std::string_view key, std::string_view) { keys.append(key).append(" "); });
  EXPECT_EQ(keys, R"(\u0061 plain \n\t \ud83d\ude00 )");
}

TEST(JsonObject, LimitsMembers) {
  const auto members = [](std::size_t count) {
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) {
      text += (i == 0 ? "" : ",") + std::string("\"\\u0061") + std::to_string(i) + "\": [{}]";
    }
    return text + "}";
  };
  const std::string most = members(JsonObject::kMostMembers);
  EXPECT_EQ(parsed(most).find("a4095"), "[{}]");
  EXPECT_TRUE(JsonObject::within(most));
  const std::string more = members(JsonObject::kMostMembers + 1);
  const auto refused = JsonObject::parse(more);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::InvalidRequest);
  EXPECT_EQ(refused.error().limit(), Limit::JsonMembers);
  EXPECT_THAT(refused.error().message(), HasSubstr("more than 4096 members"));
  EXPECT_FALSE(JsonObject::within(more));
}

TEST(JsonObject, UnescapesStrings) {
  const auto object = parsed(
      R"({"a":"\"\\\/\b\f\n\r\t","b":"\u00e9\u20AC\uD83D\ude00x","c":"é€😀","d":"\u0000z","e":""})");
  EXPECT_EQ(object.find_string("a"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(object.find_string("b"), "é€😀x");
  EXPECT_EQ(object.find_string("c"), "é€😀");
  EXPECT_EQ(object.find_string("d"), std::string("\0z", 2));
  EXPECT_EQ(object.find_string("e"), "");
}

TEST(JsonObject, GivesTypedValuesOnlyOfTheirType) {
  const auto object = parsed(R"({"s":"true","t":true,"f":false,"n":null,"i":1,"o":{}})");
  EXPECT_EQ(object.find_bool("t"), true);
  EXPECT_EQ(object.find_bool("f"), false);
  for (const auto* key : {"s", "n", "i", "o", "absent"}) EXPECT_FALSE(object.find_bool(key)) << key;
  for (const auto* key : {"t", "n", "i", "o", "absent"}) {
    EXPECT_FALSE(object.find_string(key)) << key;
  }
  for (const auto* key : {"s", "t", "n", "o", "absent"}) {
    EXPECT_FALSE(object.find_integer(key)) << key;
  }
}

TEST(JsonObject, ReadsIntegersExactlyOrNotAtAll) {
  const auto integer = [](const std::string& number) {
    const std::string text = "{\"n\":" + number + "}";
    return parsed(text).find_integer("n");
  };
  EXPECT_EQ(integer("0"), 0);
  EXPECT_EQ(integer("-0"), 0);
  EXPECT_EQ(integer("9007199254740993"), 9007199254740993);
  EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(integer("9223372036854775808"));
  EXPECT_FALSE(integer("123456789012345678901234567890"));
  EXPECT_FALSE(integer("1.0"));
  EXPECT_FALSE(integer("1e3"));
}

TEST(JsonObject, AcceptsNumbersOfAnySize) {
  const std::string text =
      R"({"big":123456789012345678901234567890,"far":1e400,"s":"-1 \" 99999999999999999999","t":[-0.0E-999]})";
  const auto object = parsed(text);
  EXPECT_EQ(object.find("big"), "123456789012345678901234567890");
  EXPECT_EQ(object.find("far"), "1e400");
  EXPECT_EQ(object.find_string("s"), "-1 \" 99999999999999999999");
}

TEST(JsonObject, RefusesMalformedNumbersAlsoBesideHugeOnes) {
  for (const std::string bad : {"01", "1.", ".5", "+1", "-", "1e", "1e+", "0x1", "1-2", "1.5.5",
                                "--1", "1 2", "NaN", "Infinity", "12a", "-a"}) {
    EXPECT_NE(refusal("{\"n\":" + bad + "}"), "accepted") << bad;
    EXPECT_NE(refusal("{\"big\":123456789012345678901234567890,\"n\":" + bad + "}"), "accepted")
        << bad;
  }
}

TEST(JsonObject, RefusesWhatIsNotJson) {
  for (const std::string_view text : {"{",
                                      "}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "{a:1}",
                                      "{'a':1}",
                                      "{\"a\":1}x",
                                      "{\"a\":1}{}",
                                      "{\"a\":tru}",
                                      "{\"a\":\"\\q\"}",
                                      "{\"a\":[1 2]}",
                                      "{\"a\":\"\n\"}",
                                      "{\"a\":\"x}",
                                      "{\"a\":{\"b\":[}}",
                                      "{\"a\":\"\\u12g4\"}",
                                      "\xEF\xBB\xBF{}",
                                      "{\"a\":\"\xff\"}",
                                      "{\"a\":1}//c"}) {
    EXPECT_THAT(refusal(text), HasSubstr("not valid JSON")) << text;
  }
  EXPECT_THAT(refusal(std::string_view("{\"a\":1}\0", 8)), HasSubstr("not valid JSON"));
}

TEST(JsonObject, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal(""), "request body is empty");
  EXPECT_EQ(refusal(" \r\n\t"), "request body is empty");
  EXPECT_EQ(refusal("[1]"), "request body must be a JSON object");
  EXPECT_EQ(refusal("\"x\""), "request body must be a JSON object");
  EXPECT_EQ(refusal("123456789012345678901234567890"), "request body must be a JSON object");
  EXPECT_THAT(refusal("{\"a\":tru, \"b\":1}"), HasSubstr("literal"));
  EXPECT_THAT(refusal("{\"a\":1 \"b\":2}"), HasSubstr("(at byte "));
  EXPECT_THAT(refusal("{\"a\":\"\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal("{\"a\":\"\xff\"}"), HasSubstr("(at byte 6)"));
  EXPECT_THAT(refusal("{\"a\":\"\xff" + std::string(100000, 'x') + "\"}"), HasSubstr("UTF-8"));
}

TEST(JsonObject, LimitsDepth) {
  const auto nested = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(refusal(nested(1000)), "accepted");
  EXPECT_THAT(refusal(nested(2000)), HasSubstr("nested too deeply"));
  EXPECT_EQ(JsonObject::parse(nested(2000)).error().limit(), Limit::JsonDepth);
  EXPECT_THAT(refusal(std::string(500000, '[')), HasSubstr("not valid JSON"));
}

TEST(JsonObject, ParsesWhatIsNotSureOnlyWhereThereIsMemoryForIt) {
  const std::string bad = "{\"a\":[" + std::string(300'000, '1') + ",!]}";
  const std::string good = "{\"a\":[" + std::string(300'000, '1') + "]}";
  MemoryBudget small(std::size_t{1} << 20U);
  MemoryShare share(&small);
  EXPECT_TRUE(JsonObject::parse(good, &share));
  EXPECT_EQ(JsonObject::parse(bad, &share).error().code(), Errc::MemoryExhausted);
  MemoryBudget large(std::size_t{64} << 20U);
  MemoryShare enough(&large);
  EXPECT_EQ(JsonObject::parse(bad, &enough).error().code(), Errc::InvalidJson);
  EXPECT_GT(enough.held(), bad.size());
}

TEST(JsonObject, TakesEightMebibytesOfMessages) {
  std::string text = R"({"model":"m","messages":[)";
  while (text.size() < 8U * 1024 * 1024) {
    text += R"({"role":"user","content":"say \"hello\" \\ and [1,2,{3}] again and again"},)";
  }
  text.back() = ']';
  text += R"(,"stream":true})";
  const auto object = parsed(text);
  EXPECT_EQ(object.find_string("model"), "m");
  EXPECT_EQ(object.find_bool("stream"), true);
  EXPECT_GT(object.find("messages")->size(), 8U * 1000 * 1000);
  text[text.size() / 2] = '\x01';
  EXPECT_NE(refusal(text), "accepted");
}

// Strings of every length with a quote or a backslash at every place.
TEST(JsonObject, FindsTheEndsOfStrings) {
  for (std::size_t length = 0; length < 40; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      for (const char c : {'"', '\\', '\n', 'x'}) {
        std::string expected(length, '.');
        expected[at] = c;
        const std::string text =
            "{\"a\":" + json_quote(expected) + ",\"b\":[" + json_quote(expected) + "],\"c\":1}";
        const auto object = parsed(text);
        ASSERT_EQ(object.find_string("a"), expected);
        ASSERT_EQ(object.find("b"), "[" + json_quote(expected) + "]");
        ASSERT_EQ(object.find("c"), "1");
      }
    }
  }
}

TEST(JsonObject, FindsMembersBetweenWhiteSpaceOfAnyKind) {
  const auto object = parsed(
      " \n{ \t\"a\"\r\n :\t[ {\"x\" : [1 , \"]\\\"}\"]} , [] ]\n,\"b\":  -1.5e3 ,\n\"c\" "
      ":\"}\\\\\" "
      ",\"\\\"d\\\\\" : {} , \"e\": null\t}\n ");
  EXPECT_EQ(object.find("a"), "[ {\"x\" : [1 , \"]\\\"}\"]} , [] ]");
  EXPECT_EQ(object.find("b"), "-1.5e3");
  EXPECT_EQ(object.find("c"), "\"}\\\\\"");
  EXPECT_EQ(object.find("\"d\\"), "{}");
  EXPECT_EQ(object.find("e"), "null");
  EXPECT_FALSE(object.has("x"));
}

TEST(JsonObject, FindsTheSameMembersInATextAsInAPartOfOne) {
  for (const std::string_view text :
       {R"({})", R"({ })", R"({"":""})", R"({"a":{},"b":[],"c":"","d":0,"e":true})",
        R"({ "a" : { "b" : [ { } , [ ] ] } , "a" : "\\" , "c" : 1e999 })",
        R"({"n":123456789012345678901234567890,"s":"\",}]{[:","t":[":",{"\\":"\""}]})"}) {
    const auto whole = parsed(text);
    const auto part = JsonObject::within(text);
    ASSERT_TRUE(part) << text;
    for (const std::string_view key : {"", "a", "b", "c", "d", "e", "n", "s", "t"}) {
      EXPECT_EQ(whole.find(key), part->find(key)) << text << " " << key;
    }
  }
}

TEST(JsonObject, UnescapesWhereverInALongStringEscapesStand) {
  const std::string plain(200, 'x');
  for (std::size_t at = 0; at <= plain.size(); ++at) {
    for (const auto& [written, meant] : {std::pair<std::string, std::string>{"\\n", "\n"},
                                         {"\\\\\\\"", "\\\""},
                                         {"\\u00e9\\/", "\xC3\xA9/"},
                                         {"\\ud83d\\ude00", "\xF0\x9F\x98\x80"}}) {
      const auto put = [&](const std::string& what) {
        return plain.substr(0, at) + what + plain.substr(at) + what;
      };
      const std::string text = "{\"s\":\"" + put(written) + "\"}";
      EXPECT_EQ(parsed(text).find_string("s"), put(meant)) << at;
    }
  }
}

TEST(JsonQuote, EscapesWhatMustBe) {
  EXPECT_EQ(json_quote(""), "\"\"");
  EXPECT_EQ(json_quote("a\"b\\c/\n\r\t\x01\x1f"), R"("a\"b\\c/\n\r\t\u0001\u001f")");
  EXPECT_EQ(json_quote("é€😀"), "\"é€😀\"");
}

TEST(JsonQuote, ReplacesWhatIsNotUtf8) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(json_quote("a\xff"
                       "b"),
            "\"a" + mark + "b\"");
  for (const std::string_view bad : {"\xc0\xaf", "\xe0\x80", "\xed\xa0", "\xf4\x90", "\xc3\"",
                                     "\xf0\x9f\x98", "\x80", "\xe2\x82"}) {
    const std::string quoted = json_quote(bad);
    EXPECT_THAT(quoted, HasSubstr(mark));
    EXPECT_TRUE(JsonObject::parse("{\"a\":" + quoted + "}")) << quoted;
  }
}

TEST(JsonQuote, IsUndoneByReading) {
  std::string every;
  for (int c = 0; c < 128; ++c) every += static_cast<char>(c);
  every += "é€😀";
  const std::string text = "{\"a\":" + json_quote(every) + "}";
  EXPECT_EQ(parsed(text).find_string("a"), every);
}

}  // namespace
}  // namespace baton::wire
