// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/request_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace baton::loadgen {
namespace {

using Json = nlohmann::json;
using Speaker = Piece::Speaker;
using testing::ElementsAre;

Plan plan_of(Api api, PromptKind prompt, WorkloadKind kind = WorkloadKind::Distinct) {
  Options options;
  options.url = "http://127.0.0.1:1";
  options.api = api;
  options.prompt = prompt;
  options.workload.kind = kind;
  return *make_plan(options);
}

std::size_t words_in(const std::string& text) {
  std::istringstream stream(text);
  std::string word;
  std::size_t count = 0;
  while (stream >> word) ++count;
  return count;
}

TEST(RequestBody, HasExactlyAsManyTokenIdsAsAskedForAndAllInTheVocabulary) {
  Plan plan = plan_of(Api::Completions, PromptKind::Tokens);
  plan.options.vocabulary = 1000;
  const std::vector<Piece> said{{.key = 11, .tokens = 512}, {.key = 12, .tokens = 88}};
  const Json body = Json::parse(RequestBody(plan, "m\"1").write(said, 33));
  const auto ids = body["prompt"].get<std::vector<std::uint32_t>>();
  EXPECT_EQ(ids.size(), 600U);
  for (const std::uint32_t id : ids) {
    EXPECT_GE(id, 256U);
    EXPECT_LT(id, 1000U);
  }
  EXPECT_EQ(body["model"], "m\"1");
  EXPECT_EQ(body["max_tokens"], 33);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["ignore_eos"], true);
}

TEST(RequestBody, EqualKeysAreEqualTokensAndShorterOnesTheBeginning) {
  const RequestBody bodies(plan_of(Api::Completions, PromptKind::Tokens), "m");
  const auto ids = [&bodies](const Piece& piece) {
    const std::vector<Piece> said{piece};
    return Json::parse(bodies.write(said, 1))["prompt"].get<std::vector<std::uint32_t>>();
  };
  const auto whole = ids({.key = 5, .tokens = 512});
  const auto cut = ids({.key = 5, .tokens = 100});
  EXPECT_TRUE(std::equal(cut.begin(), cut.end(), whole.begin()));
  const auto other = ids({.key = 6, .tokens = 512});
  std::size_t equal = 0;
  for (std::size_t i = 0; i < 512; ++i) equal += whole[i] == other[i] ? 1 : 0;
  EXPECT_LT(equal, 10U);
}

TEST(RequestBody, IsAWordForEachTokenAsText) {
  const RequestBody bodies(plan_of(Api::Completions, PromptKind::Text), "m");
  const std::vector<Piece> said{{.key = 5, .tokens = 40}, {.key = 6, .tokens = 2}};
  const Json body = Json::parse(bodies.write(said, 1));
  EXPECT_EQ(words_in(body["prompt"].get<std::string>()), 42U);
}

TEST(RequestBody, IsAMessageForEachSpeaker) {
  const RequestBody bodies(plan_of(Api::Chat, PromptKind::Text), "m");
  const std::vector<Piece> said{
      {.speaker = Speaker::System, .key = 1, .tokens = 3},
      {.speaker = Speaker::User, .key = 2, .tokens = 4},
      {.speaker = Speaker::User, .key = 3, .tokens = 5},
      {.speaker = Speaker::Assistant, .key = 4, .tokens = 2, .text = "so \"it\"\n is"},
      {.speaker = Speaker::User, .key = 5, .tokens = 1}};
  const Json body = Json::parse(bodies.write(said, 7));
  const Json& messages = body["messages"];
  ASSERT_EQ(messages.size(), 4U);
  std::vector<std::string> roles;
  for (const Json& message : messages) roles.push_back(message["role"]);
  EXPECT_THAT(roles, ElementsAre("system", "user", "assistant", "user"));
  EXPECT_EQ(words_in(messages[1]["content"]), 9U);
  EXPECT_EQ(messages[2]["content"], "so \"it\"\n is");
  EXPECT_EQ(body["max_completion_tokens"], 7);
}

TEST(RequestBody, GoesOnWithTheIdsOfAnAnswer) {
  const RequestBody bodies(plan_of(Api::Completions, PromptKind::Tokens, WorkloadKind::MultiTurn),
                           "m");
  const std::vector<Piece> said{
      {.key = 1, .tokens = 2},
      {.speaker = Speaker::Assistant, .tokens = 3, .text = "x", .ids = {7, 8, 9}},
      {.key = 2, .tokens = 1}};
  const Json body = Json::parse(bodies.write(said, 1));
  ASSERT_EQ(body["prompt"].size(), 6U);
  EXPECT_EQ(body["prompt"][2], 7);
  EXPECT_EQ(body["prompt"][4], 9);
  EXPECT_EQ(body["return_token_ids"], true);
}

TEST(RequestBody, SaysNothingOfTheEndWhereItIsNatural) {
  Plan plan = plan_of(Api::Completions, PromptKind::Tokens);
  plan.options.natural_end = true;
  const std::vector<Piece> said{{.key = 1, .tokens = 1}};
  EXPECT_FALSE(Json::parse(RequestBody(plan, "m").write(said, 1)).contains("ignore_eos"));
}

TEST(RequestBody, NothingSaidIsAnEmptyPrompt) {
  const auto written = [](Api api, PromptKind prompt) {
    return Json::parse(RequestBody(plan_of(api, prompt), "m").write({}, 1));
  };
  EXPECT_EQ(written(Api::Completions, PromptKind::Tokens)["prompt"], Json::array());
  EXPECT_EQ(written(Api::Completions, PromptKind::Text)["prompt"], "");
}

TEST(RequestBody, TextOfAnswersIsQuotedWhateverItHolds) {
  const RequestBody bodies(plan_of(Api::Chat, PromptKind::Text), "m");
  for (const std::string& text :
       {std::string("\"\\/\b\f\n\r\t"), std::string("\x01\x1f", 2), std::string(""),
        std::string("\xc3\xa4\xf0\x9f\x98\x80"), std::string("</script>{}")}) {
    const std::vector<Piece> said{{.speaker = Speaker::Assistant, .text = text}};
    EXPECT_EQ(Json::parse(bodies.write(said, 1))["messages"][0]["content"], text);
  }
}

TEST(RequestBody, ANextPromptBeginsWithTheOneBefore) {
  for (const PromptKind kind : {PromptKind::Tokens, PromptKind::Text}) {
    const RequestBody bodies(plan_of(Api::Completions, kind, WorkloadKind::MultiTurn), "m");
    std::vector<Piece> said{{.key = 1, .tokens = 50}};
    const Json before = Json::parse(bodies.write(said, 1))["prompt"];
    said.push_back({.speaker = Speaker::Assistant, .key = 2, .tokens = 5});
    said.push_back({.key = 3, .tokens = 9});
    const Json after = Json::parse(bodies.write(said, 1))["prompt"];
    if (kind == PromptKind::Text) {
      EXPECT_TRUE(after.get<std::string>().starts_with(before.get<std::string>()));
    } else {
      ASSERT_EQ(after.size(), 64U);
      EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
    }
  }
}

TEST(RequestBody, AsksForIdsOnlyWhereItGoesOnWithThem) {
  const auto asks = [](PromptKind prompt, WorkloadKind kind) {
    const std::vector<Piece> said{{.key = 1, .tokens = 1}};
    return Json::parse(RequestBody(plan_of(Api::Completions, prompt, kind), "m").write(said, 1))
        .contains("return_token_ids");
  };
  EXPECT_TRUE(asks(PromptKind::Tokens, WorkloadKind::MultiTurn));
  EXPECT_FALSE(asks(PromptKind::Text, WorkloadKind::MultiTurn));
  EXPECT_FALSE(asks(PromptKind::Tokens, WorkloadKind::Distinct));
}

TEST(TokenOf, StaysInTheVocabularyAndUsesAllOfIt) {
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::uint32_t token = token_of(7, i, 1000);
    ASSERT_GE(token, 256U);
    ASSERT_LT(token, 1000U);
    seen.insert(token);
  }
  EXPECT_EQ(seen.size(), 744U);
}

TEST(WordOf, IsAWordWithoutBlanksOrQuotes) {
  std::set<std::string_view> seen;
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    const std::string_view word = word_of(3, i);
    ASSERT_FALSE(word.empty());
    for (const char c : word) ASSERT_TRUE(c >= 'a' && c <= 'z');
    seen.insert(word);
  }
  EXPECT_EQ(seen.size(), 128U);
  EXPECT_EQ(word_of(3, 4), word_of(3, 4));
}

}  // namespace
}  // namespace baton::loadgen
