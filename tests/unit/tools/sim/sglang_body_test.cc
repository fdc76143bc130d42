// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_body.h"

#include "tools/sim/dialect.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

json sglang_chat(const json& fields) {
  json body{{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(fields);
  return body;
}

std::string wrong_with(Api api, const json& body) {
  const auto read = validate_sglang_body(api, body);
  return read ? "" : read.error().message();
}

TEST(SglangBody, TellsWhatIsWrongTwiceAndWhoSawIt) {
  const std::string entry =
      "{'type': 'float_parsing', 'loc': ('body', 'temperature'), 'msg': 'Input should be a valid "
      "number, unable to parse string as a number', 'input': 'hot'}";
  EXPECT_EQ(wrong_with(Api::Chat, sglang_chat({{"temperature", "hot"}})),
            "1 validation error:\n  " + entry +
                "\n\n  File \"http_server.py\", line 1, in openai_v1_chat_completions\n    POST "
                "/v1/chat/completions [" +
                entry + "]");
}

TEST(SglangBody, TakesTextForANumberButNoNullForADefault) {
  const auto read =
      validate_sglang_body(Api::Chat, sglang_chat({{"max_tokens", "2"}, {"stream", 1}}));
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((**read)["max_tokens"], 2);
  EXPECT_EQ((**read)["stream"], true);
  EXPECT_EQ(wrong_with(Api::Chat, sglang_chat({{"seed", nullptr}, {"top_p", nullptr}})), "");
  for (const char* name : {"n", "stream", "model", "min_tokens"})
    EXPECT_NE(wrong_with(Api::Chat, sglang_chat({{name, nullptr}})), "") << name;
}

TEST(SglangBody, TellsAWrongPromptAsEachOfItsKinds) {
  for (const json& right : {json("a"), json({1, 2}), json({"a", "b"}), json({{1}, {2}})})
    EXPECT_EQ(wrong_with(Api::Completions, {{"prompt", right}}), "") << right;
  EXPECT_TRUE(wrong_with(Api::Completions, {{"prompt", 5}}).starts_with("4 validation errors:"));
  EXPECT_TRUE(
      wrong_with(Api::Completions, {{"prompt", {"a", 5}}}).starts_with("5 validation errors:"));
}

TEST(SglangBody, StumblesOverAChatThatIsNoObjectAndOverAFormatThatIsNone) {
  EXPECT_TRUE(is_stumble(unreadable_sglang_body(Api::Chat, json::array({1}))));
  EXPECT_TRUE(is_stumble(unreadable_sglang_body(Api::Chat, 5)));
  EXPECT_TRUE(is_validation(unreadable_sglang_body(Api::Chat, nullptr)));
  EXPECT_TRUE(is_validation(unreadable_sglang_body(Api::Completions, json::array({1}))));
  const auto read = validate_sglang_body(Api::Chat, sglang_chat({{"response_format", "x"}}));
  ASSERT_FALSE(read);
  EXPECT_TRUE(is_stumble(read.error()));
  EXPECT_NE(wrong_with(Api::Completions, {{"prompt", "a"}, {"response_format", "x"}}), "");
}

TEST(SglangBody, WantsOneOfTextAndChatToTokenize) {
  EXPECT_TRUE(check_sglang_tokenize("/tokenize", {{"prompt", "a"}}));
  EXPECT_FALSE(check_sglang_tokenize("/tokenize", json::object()));
  EXPECT_FALSE(check_sglang_tokenize("/tokenize", {{"prompt", 5}}));
  EXPECT_TRUE(check_sglang_detokenize("/detokenize", {{"tokens", {1, 2}}}));
  EXPECT_FALSE(check_sglang_detokenize("/detokenize", {{"tokens", {"a"}}}));
  EXPECT_TRUE(check_sglang_abort(R"({"rid":"a"})"));
  EXPECT_FALSE(check_sglang_abort("{"));
}

}  // namespace
}  // namespace baton::sim
