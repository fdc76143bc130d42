// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/explain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace baton::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

Json plain_candidate(const std::string& worker, double score) {
  return {{"worker", worker},          {"dp_rank", nullptr},       {"load", 1},
          {"preference", 1},           {"score", score},           {"why_not", nullptr},
          {"prefill_tokens", nullptr}, {"decode_blocks", nullptr}, {"block_size", nullptr},
          {"overlap", nullptr},        {"cached_tokens", nullptr}, {"new_tokens", nullptr},
          {"cost", nullptr},           {"forecast", nullptr}};
}

// What it has cached of 100 tokens, and what it costs.
Json candidate(const std::string& worker, int cached, double total) {
  Json made = plain_candidate(worker, total);
  made["prefill_tokens"] = 48.0;
  made["decode_blocks"] = 7.0;
  made["cached_tokens"] = cached;
  made["new_tokens"] = 100 - cached;
  made["cost"] = {
      {"raw_prefill_blocks", 9.25}, {"decay", 1},    {"credit", cached / 16.0}, {"prefill", 5.125},
      {"decode_blocks", 7.0},       {"requests", 0}, {"preference", 1},         {"total", total}};
  return made;
}

Json choice(const std::vector<Json>& candidates, std::size_t picked = 0) {
  return {{"worker", candidates.at(picked).at("worker")},
          {"dp_rank", nullptr},
          {"policy", "kv"},
          {"by", "policy"},
          {"picked", picked},
          {"of", candidates.size()},
          {"candidates", candidates}};
}

Json decided(const std::vector<Json>& choices) {
  Json json{{"object", "decision"},
            {"request_id", "r-1"},
            {"model", "m"},
            {"begun", "2026-11-15T10:00:00.007Z"},
            {"prompt_tokens", 100},
            {"waited",
             {{"policy_class", nullptr},
              {"ahead", 0},
              {"queued_ms", 0.0},
              {"followed_ms", 0.0},
              {"refused", nullptr}}},
            {"bypass", nullptr},
            {"decisions", Json::array()},
            {"outcome", nullptr}};
  for (const Json& one : choices)
    json["decisions"].push_back({{"part", "prefill"},
                                 {"attempt", 1},
                                 {"at", ""},
                                 {"given_back", nullptr},
                                 {"choice", one}});
  return json;
}

std::string text_of(const Json& json) {
  const auto text = explanation(json.dump());
  EXPECT_TRUE(text) << json;
  return text.value_or("");
}

// The line of the table that tells of this worker.
std::string line_of(const Json& json, const std::string& worker) {
  const std::string text = text_of(json);
  const std::size_t table = text.find("WORKER");
  const std::size_t at = table == text.npos ? text.npos : text.find(" " + worker + " ", table);
  if (at == text.npos) return "";
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(Explanation, BeginsWithTheRequest) {
  EXPECT_THAT(text_of(decided({})),
              StartsWith("Request r-1: model m, 100 tokens, 2026-11-15T10:00:00.007Z\n"));
}

TEST(Explanation, ShowsEachTermAndMarksTheChosenOneFirst) {
  const Json json = decided({choice({candidate("w1", 0, 16.25), candidate("w2", 64, 12.125)}, 1)});
  const std::string text = text_of(json);
  EXPECT_THAT(text, HasSubstr("\nPrefill: w2 (policy kv)\n"));
  EXPECT_LT(text.find(" w2 ", text.find("WORKER")), text.find(" w1 ", text.find("WORKER")));
  EXPECT_THAT(
      line_of(json, "w2"),
      testing::MatchesRegex(R"(\* +w2 +64 +36 +48 +7 +1 +9\.25 +4 +5\.125 +7 +0 +12\.125)"));
  EXPECT_THAT(line_of(json, "w1"), AllOf(StartsWith(" "), EndsWith("16.25  4.125 more")));
  EXPECT_THAT(text, HasSubstr("COST is in KV blocks"));
}

TEST(Explanation, ShowsForecastsInSeconds) {
  Json one = candidate("w1", 64, 0.75);
  one["cost"] = nullptr;
  one["forecast"] = {{"wait", 0.5},  {"compute", 0.0625}, {"transfer", 0},  {"stall", 0.125},
                     {"waste", 0.2}, {"preference", 1},   {"total", 0.8875}};
  Json taken = choice({one});
  taken["policy"] = "ttft";
  const Json json = decided({taken});
  EXPECT_THAT(
      line_of(json, "w1"),
      testing::MatchesRegex(R"(\* +w1 +64 +36 +48 +7 +1 +0\.5 +0\.0625 +0 +0\.125 +0\.2 +0\.75)"));
  EXPECT_THAT(text_of(json), AllOf(HasSubstr("WASTE  FORECAST"),
                                   HasSubstr("FORECAST is in seconds"), Not(HasSubstr("COST is"))));
}

TEST(Explanation, SaysWhereLoadDecidesBesideForecasts) {
  const auto text_with = [](const Json& trust) {
    Json one = candidate("w1", 64, 0.75);
    one["cost"] = nullptr;
    one["forecast"] = {{"wait", 0.5},  {"compute", 0.0625}, {"transfer", 0},
                       {"waste", 0.2}, {"preference", 1},   {"total", 0.7625}};
    if (!trust.is_null()) one["forecast"]["trust"] = trust;
    Json taken = choice({one});
    taken["policy"] = "ttft";
    return text_of(decided({taken}));
  };
  EXPECT_THAT(text_with(0.25), HasSubstr("75 % of WAIT and COMPUTE follow from load"));
  EXPECT_THAT(text_with(1), Not(HasSubstr("follow from load")));
  EXPECT_THAT(text_with(nullptr), Not(HasSubstr("follow from load"))) << "of an older router";
}

TEST(Explanation, SaysWhyOthersWereNotTaken) {
  const auto why = [](Json one, Json taken) {
    Json json = decided({taken});
    one["worker"] = "other";
    json["decisions"][0]["choice"]["candidates"].push_back(one);
    return line_of(json, "other");
  };
  const Json taken = choice({candidate("w1", 0, 10)});
  Json refused = candidate("x", 0, 1);
  refused["why_not"] = "it is busy";
  EXPECT_THAT(why(refused, taken), EndsWith("it is busy"));
  EXPECT_THAT(why(candidate("x", 0, 10), taken), EndsWith("as good; the dice fell otherwise"));
  EXPECT_THAT(why(candidate("x", 0, 9), taken), HasSubstr("second choice"));
  Json by_session = taken;
  by_session["by"] = "session";
  EXPECT_THAT(why(candidate("x", 0, 9), by_session), EndsWith("the session is served elsewhere"));
  Json turns = taken;
  turns["policy"] = "round_robin";
  EXPECT_THAT(why(candidate("x", 0, 9), turns), EndsWith("not its turn"));
}

TEST(Explanation, WhatIsNotWeighedHasNoCosts) {
  Json one = choice({plain_candidate("w1", 2), plain_candidate("w2", 3)});
  one["policy"] = "least_loaded";
  const std::string text = text_of(decided({one}));
  EXPECT_THAT(text, AllOf(HasSubstr("SCORE"), Not(HasSubstr("CREDIT")), Not(HasSubstr("COST"))));
}

TEST(Explanation, TellsHowManyAreNotShown) {
  Json one = choice({candidate("w1", 0, 1)});
  EXPECT_THAT(text_of(decided({one})), Not(HasSubstr("more, none")));
  one["of"] = 40;
  EXPECT_THAT(text_of(decided({one})), HasSubstr("and 39 more"));
}

TEST(Explanation, TellsOfNamesSessionsRanksAndAttempts) {
  Json one = choice({candidate("w1", 0, 1)});
  one["dp_rank"] = 3;
  one["by"] = "name";
  Json json = decided({one});
  json["decisions"][0]["part"] = "both";
  json["decisions"][0]["attempt"] = 2;
  EXPECT_THAT(text_of(json),
              HasSubstr("Prefill and decode: w1 rank 3 (the request names it, attempt 2)\n"));
  json["decisions"][0]["choice"]["by"] = "session";
  EXPECT_THAT(text_of(json), HasSubstr("its session was served there"));
}

TEST(Explanation, TellsWhoDidNotGetTheRequestAfterAll) {
  Json json = decided({choice({candidate("w1", 0, 1)}), choice({candidate("w2", 0, 1)})});
  EXPECT_THAT(text_of(json), Not(HasSubstr("did not get")));
  json["decisions"][0]["given_back"] = "no decode worker could follow";
  EXPECT_THAT(text_of(json),
              HasSubstr("Prefill: w1 (policy kv)\nBut it did not get the request: no decode worker "
                        "could follow.\n"));
}

TEST(Explanation, TellsOfWaiting) {
  Json json = decided({});
  EXPECT_THAT(text_of(json), Not(HasSubstr("Waited")));
  json["waited"] = {{"policy_class", "batch"},
                    {"ahead", 4},
                    {"queued_ms", 12.5},
                    {"followed_ms", 3.0},
                    {"refused", nullptr}};
  EXPECT_THAT(text_of(json), Not(HasSubstr("turned away")));
  json["waited"]["refused"] = "no worker had time";
  EXPECT_THAT(text_of(json), HasSubstr("Then it was turned away: no worker had time.\n"));
  EXPECT_THAT(text_of(json),
              AllOf(HasSubstr("Waited 12.5 ms in the queue of class batch, 4 ahead of it.\n"),
                    HasSubstr("Waited 3 ms for a request with the same beginning.\n")));
}

TEST(Explanation, TellsWhetherTheDecodeWorkerComputes) {
  Json json = decided({});
  const struct {
    const char* label;
    const char* words;
  } cases[] = {{"bypass_declined_by_policy", "no, too much"},
               {"bypass_denied_decode_busy", "no, it would get too full"},
               {"bypass_denied_decode_busy_unknown", "no, the number of its KV blocks"},
               {"bypass_allowed_decode_gate_disabled", "yes ("},
               {"bypass_allowed_decode_not_busy", "yes ("}};
  for (const auto& c : cases) {
    json["bypass"] = c.label;
    EXPECT_THAT(text_of(json), AllOf(HasSubstr(c.words), HasSubstr(c.label)));
  }
}

TEST(Explanation, TellsWhatBecameOfIt) {
  Json json = decided({});
  EXPECT_THAT(text_of(json), AllOf(HasSubstr("No worker was chosen"), HasSubstr("It still runs")));
  json["outcome"] = {{"status", 200},     {"error", nullptr},     {"retries", 1},
                     {"migrations", 0},   {"prompt_tokens", 100}, {"cached_tokens", 64},
                     {"ttft_ms", 12.3456}};
  EXPECT_THAT(text_of(json), HasSubstr("Outcome: 200, 1 retry, first token after 12.346 ms; the "
                                       "engine had 64 of 100 tokens cached\n"));
  json["outcome"] = {{"status", 429},     {"error", "queue_full"},    {"retries", 0},
                     {"migrations", 2},   {"prompt_tokens", nullptr}, {"cached_tokens", nullptr},
                     {"ttft_ms", nullptr}};
  EXPECT_THAT(text_of(json),
              HasSubstr("Outcome: 429, error queue_full, 0 retries, 2 migrations\n"));
}

TEST(Explanation, WhatOthersWroteCannotMoveTheCursor) {
  Json json = decided({choice({candidate("w\x1b[2J", 0, 1)})});
  json["request_id"] = "r\n1";
  EXPECT_THAT(text_of(json), AllOf(HasSubstr("r 1"), Not(HasSubstr("\x1b"))));
}

TEST(Explanation, RefusesWhatIsNoAnswerOfARouter) {
  for (const char* bad : {"", "{}", "[]", R"({"request_id":1})"}) {
    EXPECT_FALSE(explanation(bad)) << bad;
    EXPECT_FALSE(recent_requests(bad)) << bad;
  }
  Json broken = decided({choice({candidate("w", 0, 1)})});
  broken["decisions"][0]["choice"]["picked"] = 7;
  EXPECT_FALSE(explanation(broken.dump()));
}

TEST(RecentRequests, AreOneOnALine) {
  EXPECT_EQ(recent_requests(R"({"request_ids":["b","a"]})").value(), "b\na\n");
  EXPECT_EQ(recent_requests(R"({"request_ids":[]})").value(), "No request is remembered yet.\n");
}

}  // namespace
}  // namespace baton::cli
