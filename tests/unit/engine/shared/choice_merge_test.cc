// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/choice_merge.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using Plan = std::vector<std::pair<std::uint32_t, std::string>>;

Plan plan(const std::string& body, Api api = Api::Completions) {
  const ClientRequest request(api, body);
  const auto branches = branches_of(api, request.object);
  EXPECT_TRUE(branches) << body;
  Plan made;
  for (const Branch& branch : *branches) {
    made.emplace_back(branch.choice, branch.prompt);
    // The prompt is the client's own bytes.
    if (!branch.prompt.empty()) EXPECT_GE(branch.prompt.data(), request.text.data());
  }
  return made;
}

std::string refused(const std::string& body, Api api = Api::Completions) {
  const ClientRequest request(api, body);
  const auto branches = branches_of(api, request.object);
  if (branches) return "not refused: " + body;
  EXPECT_EQ(branches.error().code(), Errc::InvalidRequest);
  return branches.error().param().value_or("");
}

TEST(GreedyChoices, AreSeveralAtTemperatureZero) {
  const auto greedy = [](const char* body) {
    return wants_greedy_choices(ClientRequest(Api::Completions, body).object);
  };
  for (const char* body : {R"({"n":2,"temperature":0})", R"({"n":2,"temperature":0.0})",
                           R"({"n":9,"temperature":-0e3})"})
    EXPECT_TRUE(greedy(body)) << body;
  for (const char* body : {R"({"n":1,"temperature":0})", R"({"temperature":0})", R"({"n":2})",
                           R"({"n":2,"temperature":null})", R"({"n":2,"temperature":0.1})",
                           R"({"n":2,"temperature":""})"})
    EXPECT_FALSE(greedy(body)) << body;
}

TEST(BranchesOf, AreNoneForOneChoice) {
  for (const char* body :
       {"{}", R"({"n":1})", R"({"n":null,"prompt":"a"})", R"({"prompt":[1,2,3]})",
        R"({"prompt":["a"]})", R"({"prompt":[[1,2]]})", R"({"prompt":[]})", R"({"prompt":null})"})
    EXPECT_EQ(plan(body), Plan()) << body;
  EXPECT_EQ(plan(R"({"prompt":["a","b"]})", Api::Chat), Plan());
}

TEST(BranchesOf, AreOneForEachChoiceOfEachPrompt) {
  EXPECT_EQ(plan(R"({"n":3})", Api::Chat), (Plan{{0, ""}, {1, ""}, {2, ""}}));
  EXPECT_EQ(plan(R"({"n":2,"prompt":[1,2,3]})"), (Plan{{0, ""}, {1, ""}}));
  EXPECT_EQ(plan(R"({"prompt":["a", "b,]"]})"), (Plan{{0, R"("a")"}, {0, R"("b,]")"}}));
  EXPECT_EQ(plan(R"({"n":2,"prompt":[[1,2], [3]]})"),
            (Plan{{0, "[1,2]"}, {1, "[1,2]"}, {0, "[3]"}, {1, "[3]"}}));
}

TEST(BranchesOf, AreNoneWhereChoicesComeOfOneSearch) {
  EXPECT_EQ(plan(R"({"n":3,"use_beam_search":true})"), Plan());
  EXPECT_EQ(plan(R"({"n":3,"best_of":5})"), Plan());
  EXPECT_EQ(plan(R"({"n":2,"best_of":1})").size(), 2U);
}

TEST(BranchesOf, AreRefusedWhereTheyMakeNoSense) {
  for (const char* n : {"0", "-1", "129", "1.5", "\"2\"", "true", "[2]", "99999999999999999999"}) {
    EXPECT_EQ(refused(std::string(R"({"n":)") + n + "}", Api::Chat), "n") << n;
  }
  EXPECT_EQ(refused(R"({"prompt":["a",1]})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":[[1],null]})"), "prompt");
}

std::string list_of(std::size_t count) {
  std::string list = "[\"p\"";
  for (std::size_t i = 1; i < count; ++i) list += ",\"p\"";
  return list + "]";
}

TEST(BranchesOf, AreLimited) {
  EXPECT_EQ(plan(R"({"n":128})", Api::Chat).size(), 128U);
  EXPECT_EQ(plan(R"({"prompt":)" + list_of(256) + "}").size(), 256U);
  EXPECT_EQ(plan(R"({"n":128,"prompt":)" + list_of(2) + "}").size(), 256U);
  EXPECT_EQ(refused(R"({"prompt":)" + list_of(257) + "}"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":)" + list_of(100'000) + "}"), "prompt");
  EXPECT_EQ(refused(R"({"n":128,"prompt":)" + list_of(3) + "}"), "prompt");
}

TEST(Renumber, MakesAChunkOneOfTheMergedStream) {
  const auto merged = renumber(
      R"({"id":"b-2", "created":1.0,"choices":[{"index": 0,"delta":{"content":"x"}}] ,"z":1e400})",
      5, "a-1");
  ASSERT_TRUE(merged);
  EXPECT_EQ(
      merged->json,
      R"({"id":"a-1", "created":1.0,"choices":[{"index": 5,"delta":{"content":"x"}}] ,"z":1e400})");
  EXPECT_EQ(merged->usage, "");
}

TEST(Renumber, AddsWhatAnEngineLeftOut) {
  const auto merged = renumber(R"({"choices":[{"text":"x"}]})", 2, "a\"1");
  ASSERT_TRUE(merged);
  EXPECT_EQ(json(merged->json), json(R"({"id":"a\"1","choices":[{"text":"x","index":2}]})"));
}

TEST(Renumber, TakesTheUsageOut) {
  const auto last = renumber(
      R"({"id":"b","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}})", 1, "a");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->json, "");
  EXPECT_EQ(last->usage, R"({"prompt_tokens":7,"completion_tokens":3})");

  const auto each = renumber(
      R"({"id":"b","usage":{"prompt_tokens":7,"completion_tokens":3},"choices":[{"index":0}]})", 1,
      "a");
  ASSERT_TRUE(each);
  EXPECT_EQ(each->json, R"({"id":"a","choices":[{"index":1}]})");
  EXPECT_EQ(each->usage, R"({"prompt_tokens":7,"completion_tokens":3})");

  const auto none = renumber(R"({"id":"b","choices":[{"index":0}],"usage":null})", 1, "a");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->json, R"({"id":"a","choices":[{"index":1}]})");
  EXPECT_EQ(none->usage, "");
}

TEST(Renumber, RefusesWhatIsNoChunk) {
  for (const char* chunk : {"", "[DONE]", "[]", "{", R"({"choices":[1]})", R"({"choices":[[]]})"}) {
    const auto merged = renumber(chunk, 0, "a");
    ASSERT_FALSE(merged) << chunk;
    EXPECT_EQ(merged.error().code(), Errc::EngineProtocol);
  }
}

std::string completion(const std::string& id, const std::string& text, int prompt, int cached) {
  return R"({"id":")" + id + R"(","choices":[{"index":0,"text":")" + text +
         R"(","finish_reason":"stop"}],"usage":{"prompt_tokens":)" + std::to_string(prompt) +
         R"(,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":)" +
         std::to_string(cached) + R"(}},"model":"m"})";
}

TEST(MergeWhole, PutsAllChoicesIntoOneAnswer) {
  const auto merged = merge_whole({completion("a", "1", 10, 4), completion("b", "2", 10, 8),
                                   completion("c", "3", 100, 0), completion("d", "4", 100, 96)},
                                  2);
  ASSERT_TRUE(merged);
  EXPECT_EQ(json(*merged), json(R"({"id":"a","model":"m","choices":[
      {"index":0,"text":"1","finish_reason":"stop"},{"index":1,"text":"2","finish_reason":"stop"},
      {"index":2,"text":"3","finish_reason":"stop"},{"index":3,"text":"4","finish_reason":"stop"}],
      "usage":{"prompt_tokens":110,"completion_tokens":8,"total_tokens":118,
               "prompt_tokens_details":{"cached_tokens":4}}})"));
}

TEST(MergeWhole, InventsNoUsage) {
  const std::string bare = R"({"choices":[{"index":0}]})";
  const auto merged = merge_whole({bare, bare}, 2);
  ASSERT_TRUE(merged);
  EXPECT_EQ(json(*merged), json(R"({"choices":[{"index":0},{"index":1}]})"));
}

TEST(MergeWhole, RefusesWhatIsNoAnswer) {
  const std::string good = R"({"choices":[{"index":0}]})";
  for (const std::string bad : {"", "{}", "[]", R"({"choices":[]})", R"({"choices":[1]})"}) {
    for (const auto& all : {std::vector{good, bad}, std::vector{bad, good}}) {
      const auto merged = merge_whole(all, 2);
      ASSERT_FALSE(merged) << bad;
      EXPECT_EQ(merged.error().code(), Errc::EngineProtocol) << bad;
    }
  }
  EXPECT_FALSE(merge_whole({}, 1));
}

TEST(UsageEvent, IsAChunkWithoutChoices) {
  const auto event = usage_event(
      R"({"id":"a","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0}]})",
      R"({"prompt_tokens":9,"completion_tokens":4,"new_details":{"a":8}})");
  ASSERT_TRUE(event);
  ASSERT_TRUE(event->starts_with("data: ") && event->ends_with("\n\n"));
  EXPECT_EQ(json(event->substr(6)),
            json(R"({"id":"a","object":"chat.completion.chunk","created":5,"model":"m","choices":[],
                     "usage":{"prompt_tokens":9,"completion_tokens":4,"new_details":{"a":8}}})"));
  EXPECT_FALSE(usage_event("{", "{}"));
}

TEST(UsageEvent, StaysOneEventWhateverTheChunkLooksLike) {
  const auto event = usage_event("{\"id\":{\n\n\"a\":\r\n1}}", "{}");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->find('\n'), event->size() - 2);
}

}  // namespace
}  // namespace baton::engine
