// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_object.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace baton::wire {
namespace {

using Keys = std::vector<std::string>;
using Members = std::vector<std::pair<std::string, std::string>>;

std::string spliced(const std::string& text, const Keys& removed, const Members& added = {}) {
  const auto object = JsonObject::parse(text);
  if (!object) return "invalid: " + object.error().message();
  JsonSplice splice(*object);
  for (const auto& key : removed) splice.remove(key);
  for (const auto& [key, json] : added) splice.set(key, json);
  return splice.build().joined();
}

TEST(JsonSplice, LeavesEveryByteWhereNothingChanges) {
  const std::string text = " {\t\"a\" : 1e2 ,\n \"b\":[ 1,2 ] } \n";
  EXPECT_EQ(spliced(text, {}), text);
  EXPECT_EQ(spliced(text, {"absent"}), text);
  EXPECT_EQ(spliced("{}", {"a"}), "{}");
}

TEST(JsonSplice, RemovesAtTheFrontInTheMiddleAndAtTheEnd) {
  const std::string text = "{ \"a\": 1,  \"b\": 2 ,\t\"c\": 3 }\n";
  EXPECT_EQ(spliced(text, {"a"}), "{ \"b\": 2 ,\t\"c\": 3 }\n");
  EXPECT_EQ(spliced(text, {"b"}), "{ \"a\": 1,  \"c\": 3 }\n");
  EXPECT_EQ(spliced(text, {"c"}), "{ \"a\": 1,  \"b\": 2 }\n");
  EXPECT_EQ(spliced(text, {"a", "b"}), "{ \"c\": 3 }\n");
  EXPECT_EQ(spliced(text, {"a", "c"}), "{ \"b\": 2 }\n");
  EXPECT_EQ(spliced(text, {"b", "c"}), "{ \"a\": 1 }\n");
  EXPECT_EQ(spliced(text, {"a", "b", "c"}), "{  }\n");
}

TEST(JsonSplice, AddsBehindTheLastMemberKept) {
  EXPECT_EQ(spliced("{\"a\":1}", {}, {{"b", "2"}}), "{\"a\":1,\"b\":2}");
  EXPECT_EQ(spliced("{\"a\":1 } ", {}, {{"b", "2"}, {"c", "[]"}}), "{\"a\":1,\"b\":2,\"c\":[] } ");
  EXPECT_EQ(spliced(" { } ", {}, {{"b", "2"}, {"c", "3"}}), " {\"b\":2,\"c\":3 } ");
  EXPECT_EQ(spliced("{ \"a\":1 }", {"a"}, {{"b", "2"}}), "{ \"b\":2 }");
}

TEST(JsonSplice, ReplacesEveryOccurrence) {
  EXPECT_EQ(spliced("{\"a\":1,\"b\":2,\"a\":3}", {}, {{"a", "4"}}), "{\"b\":2,\"a\":4}");
  EXPECT_EQ(spliced("{\"\\u0061\":1,\"b\":2}", {}, {{"a", "4"}}), "{\"b\":2,\"a\":4}");
}

TEST(JsonSplice, RemovesEveryOccurrenceHoweverItIsSpelled) {
  EXPECT_EQ(spliced("{\"a\":1,\"\\u0061\":2,\"b\":3,\"a\":4}", {"a"}), "{\"b\":3}");
}

TEST(JsonSplice, DoesWhatItWasToldLast) {
  const auto object = JsonObject::parse("{\"a\":1}");
  ASSERT_TRUE(object);
  EXPECT_EQ(JsonSplice(*object).set("b", "1").set("b", "2").build().joined(), "{\"a\":1,\"b\":2}");
  EXPECT_EQ(JsonSplice(*object).set("b", "1").remove("b").build().joined(), "{\"a\":1}");
  EXPECT_EQ(JsonSplice(*object).remove("a").set("a", "2").build().joined(), "{\"a\":2}");
}

TEST(JsonSplice, KeepsBigIntegersRepeatedKeysEscapesAndOrder) {
  const std::string kept =
      R"("z":123456789012345678901234567890 , "dup":1,"dup" :2,"\u0061\/":"\ud83d\ude00", "f":1.10e+05)";
  EXPECT_EQ(spliced("{\"stream\":true, " + kept + "}", {"stream"}, {{"max_tokens", "1"}}),
            "{" + kept + ",\"max_tokens\":1}");
}

TEST(JsonSplice, GivesValidJsonForEveryChoiceOfMembers) {
  const std::string text = "{ \"a\":1 , \"b\" :\"x\",\"c\": {} ,\"d\":[ ] }";
  const Keys keys = {"a", "b", "c", "d"};
  for (unsigned mask = 0; mask < 16; ++mask) {
    for (const Members& added : {Members{}, Members{{"n", "1"}}, Members{{"n", "1"}, {"a", "2"}}}) {
      Keys removed;
      auto expected = nlohmann::json::parse(text);
      for (unsigned i = 0; i < 4; ++i) {
        if ((mask & (1U << i)) == 0) continue;
        removed.push_back(keys[i]);
        expected.erase(keys[i]);
      }
      for (const auto& [key, json] : added) expected[key] = nlohmann::json::parse(json);
      const auto result = spliced(text, removed, added);
      EXPECT_EQ(nlohmann::json::parse(result, nullptr, false), expected) << result;
    }
  }
}

TEST(JsonSplice, SharesTheTextOfTheClient) {
  const std::string messages = "[" + std::string(1 << 20, ' ') + "]";
  const std::string text = "{\"stream\":true,\"messages\":" + messages + ",\"n\":1}";
  const auto object = JsonObject::parse(text);
  ASSERT_TRUE(object);
  const auto body = JsonSplice(*object).remove("stream").set("x", "1").build();
  std::size_t own = 0;
  for (const auto piece : body.pieces()) {
    const bool shared = piece.data() >= text.data() && piece.data() < text.data() + text.size();
    if (!shared) own += piece.size();
  }
  EXPECT_EQ(own, std::string_view(",\"x\":1").size());
  EXPECT_EQ(body.pieces().size(), 4U);
  EXPECT_EQ(body.size(), body.joined().size());
}

TEST(JsonSplice, DoesNotCopyLongTexts) {
  const std::string text = "{\"a\":1}";
  const std::string ids = "[1,2,3]";
  const auto object = JsonObject::parse(text);
  ASSERT_TRUE(object);
  for (const bool empty : {false, true}) {
    JsonSplice splice(*object);
    if (empty) splice.remove("a");
    splice.set("m", "0").set_long("p", "{\"ids\":", ids, "}").set("z", "2");
    SplicedBody built = splice.build();
    const SplicedBody body = std::move(built);
    EXPECT_EQ(body.joined(), empty ? "{\"m\":0,\"p\":{\"ids\":[1,2,3]},\"z\":2}"
                                   : "{\"a\":1,\"m\":0,\"p\":{\"ids\":[1,2,3]},\"z\":2}");
    EXPECT_EQ(std::ranges::count(
                  body.pieces(), static_cast<const void*>(ids.data()),
                  [](std::string_view piece) { return static_cast<const void*>(piece.data()); }),
              1);
  }
}

TEST(JsonSplice, ALongTextIsReplacedAsAShortOneIs) {
  const auto object = JsonObject::parse("{\"a\":1}");
  ASSERT_TRUE(object);
  const std::string ids = "[1]";
  EXPECT_EQ(JsonSplice(*object).set("a", "0").set_long("a", {}, ids, {}).build().joined(),
            "{\"a\":[1]}");
  EXPECT_EQ(JsonSplice(*object).set_long("a", {}, ids, {}).set("a", "0").build().joined(),
            "{\"a\":0}");
  EXPECT_EQ(JsonSplice(*object).set_long("a", {}, ids, {}).remove("a").build().joined(), "{}");
}

TEST(SplicedBody, SurvivesMoves) {
  const std::string text = "{\"a\":1}";
  const auto object = JsonObject::parse(text);
  ASSERT_TRUE(object);
  for (const std::string& value : {std::string("1"), "\"" + std::string(100, 'x') + "\""}) {
    const std::string expected = "{\"a\":1,\"b\":" + value + "}";
    SplicedBody first = JsonSplice(*object).set("b", value).build();
    std::vector<SplicedBody> grown;
    for (int i = 0; i < 10; ++i) grown.push_back(JsonSplice(*object).set("b", value).build());
    SplicedBody second(std::move(first));
    EXPECT_EQ(second.joined(), expected);
    SplicedBody third;
    third = std::move(second);
    EXPECT_EQ(third.joined(), expected);
    for (const auto& body : grown) EXPECT_EQ(body.joined(), expected);
  }
}

}  // namespace
}  // namespace baton::wire
