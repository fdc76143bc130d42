// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/request_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <sstream>
#include <string>
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

}  // namespace
}  // namespace baton::loadgen
