// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/decisions_api.h"

#include "support/io_fixture.h"
#include "unit/api/answer_recorder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace baton::api {
namespace {

using namespace std::chrono_literals;
using scheduling::DecisionLog;
using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

struct DecisionsApiTest : test::IoFixture {
  Json get(const std::string& target) {
    const http::Routes routes(decisions_routes(*decisions));
    run([&]() -> awaitable<void> { co_await call_route(routes, "GET", target, "", answer); });
    EXPECT_EQ(answer.headers.find("content-type"), "application/json");
    return Json::parse(answer.body);
  }
  std::string refusal(const std::string& target, int status) {
    const Json json = get(target);
    EXPECT_EQ(answer.status, status) << target;
    return json["error"]["message"];
  }
  static scheduling::Decision decision(scheduling::Part part, std::size_t attempt) {
    model::WorkerSpec spec;
    spec.name = "w";
    scheduling::Decision made{.part = part,
                              .attempt = attempt,
                              .at = std::chrono::sys_days{2026y / 11 / 15} + 10h + 7ms,
                              .choice = {.picked = 0, .candidates = {}}};
    made.choice.candidates.push_back(
        {.worker = std::make_shared<fleet::Worker>(model::WorkerId{1}, spec, config::Health{}),
         .rank = {},
         .load = 0,
         .preference = 1,
         .score = 1,
         .why_not = {},
         .weight = {}});
    return made;
  }

  std::unique_ptr<DecisionLog> decisions = std::make_unique<DecisionLog>(3);
  AnswerRecorder answer;
};

TEST_F(DecisionsApiTest, AsksForTheKeyOfAnOperator) {
  const http::Routes routes(decisions_routes(*decisions));
  EXPECT_EQ(routes.find("GET", "/v1/decisions").value()->access, http::Access::Operator);
  EXPECT_EQ(routes.find("GET", "/v1/decisions/x").value()->access, http::Access::Operator);
}

TEST_F(DecisionsApiTest, TellsAllThatWasDecidedAboutARequest) {
  auto page = decisions->open("id/ 1", "m", 70);
  page.bypass("bypass_denied_decode_busy");
  page.waited({.policy_class = "batch",
               .ahead = 4,
               .queued = 12'345'678ns,
               .followed = 2ms,
               .refused = "it is \"full\""});
  page.chosen(decision(scheduling::Part::Prefill, 1));
  page.given_back("no \"decode\" worker could follow");
  page.chosen(decision(scheduling::Part::Decode, 1));
  page.chosen(decision(scheduling::Part::Both, 2));
  page.close({.status = 200,
              .error = {},
              .retries = 1,
              .migrations = 2,
              .prompt_tokens = 70,
              .cached_tokens = 64,
              .time_to_first_token = 1500us});
  const Json told = get("/v1/decisions/id%2F%201");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(told["object"], "decision");
  EXPECT_EQ(told["request_id"], "id/ 1");
  EXPECT_EQ(told["model"], "m");
  EXPECT_EQ(told["prompt_tokens"], 70);
  EXPECT_EQ(told["bypass"], "bypass_denied_decode_busy");
  EXPECT_EQ(told["waited"], Json::parse(R"({"policy_class":"batch","ahead":4,"queued_ms":12.346,
                                            "followed_ms":2.0,"refused":"it is \"full\""})"));
  ASSERT_EQ(told["decisions"].size(), 3U);
  EXPECT_EQ(told["decisions"][0]["part"], "prefill");
  EXPECT_EQ(told["decisions"][0]["given_back"], "no \"decode\" worker could follow");
  EXPECT_EQ(told["decisions"][1]["part"], "decode");
  EXPECT_TRUE(told["decisions"][1]["given_back"].is_null());
  EXPECT_EQ(told["decisions"][2]["part"], "both");
  EXPECT_EQ(told["decisions"][2]["attempt"], 2);
  EXPECT_EQ(told["decisions"][0]["at"], "2026-11-15T10:00:00.007Z");
  EXPECT_EQ(told["decisions"][0]["choice"]["worker"], "w");
  EXPECT_EQ(told["outcome"], Json::parse(R"({"status":200,"error":null,"retries":1,"migrations":2,
                            "prompt_tokens":70,"cached_tokens":64,"ttft_ms":1.5})"));
}

TEST_F(DecisionsApiTest, OfARequestThatStillRunsThereIsNoOutcome) {
  decisions->open("id", "m", 1);
  const Json told = get("/v1/decisions/id");
  EXPECT_TRUE(told["outcome"].is_null());
  EXPECT_TRUE(told["bypass"].is_null());
  EXPECT_TRUE(told["waited"]["policy_class"].is_null());
  EXPECT_TRUE(told["decisions"].empty());
}

TEST_F(DecisionsApiTest, OfAFailureItTellsTheError) {
  scheduling::Outcome refused;
  refused.status = 429;
  refused.error = "queue_full";
  decisions->open("id", "m", 1).close(refused);
  const Json outcome = get("/v1/decisions/id")["outcome"];
  EXPECT_EQ(outcome["status"], 429);
  EXPECT_EQ(outcome["error"], "queue_full");
  EXPECT_TRUE(outcome["cached_tokens"].is_null());
  EXPECT_TRUE(outcome["ttft_ms"].is_null());
}

TEST_F(DecisionsApiTest, SaysHowManyAreRememberedWhereOneIsNot) {
  decisions->open("a", "m", 1);
  decisions->open("b", "m", 1);
  EXPECT_THAT(refusal("/v1/decisions/other", 404),
              AllOf(HasSubstr("the id other"), HasSubstr("2 are, at most 3"),
                    HasSubstr("x-request-id"), HasSubstr("\"decisions\"")));
  EXPECT_EQ(Json::parse(answer.body)["error"]["code"], "not_found");
}

TEST_F(DecisionsApiTest, SaysUnderWhichIdsTheChoicesOfARequestAre) {
  decisions->open("several-0", "m", 1);
  decisions->open("several-1", "m", 1);
  EXPECT_THAT(refusal("/v1/decisions/several", 404), HasSubstr("ask for several-0"));
}

TEST_F(DecisionsApiTest, SaysThatNothingIsRemembered) {
  decisions = std::make_unique<DecisionLog>(0);
  EXPECT_THAT(refusal("/v1/decisions/id", 404), HasSubstr("set \"decisions\""));
  EXPECT_TRUE(get("/v1/decisions")["request_ids"].empty());
}

TEST_F(DecisionsApiTest, ListsTheLatestFirst) {
  for (const char* id : {"a", "b", "c", "d"}) decisions->open(id, "m", 1);
  const Json all = get("/v1/decisions");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(all["remembered"], 3);
  EXPECT_EQ(all["most"], 3);
  EXPECT_EQ(all["request_ids"], Json::parse(R"(["d","c","b"])"));
  EXPECT_EQ(get("/v1/decisions?limit=1")["request_ids"], Json::parse(R"(["d"])"));
}

TEST_F(DecisionsApiTest, ListsNotMoreThanSomebodyReads) {
  decisions = std::make_unique<DecisionLog>(2000);
  for (int i = 0; i < 1500; ++i) decisions->open(fmt::format("id-{}", i), "m", 1);
  EXPECT_EQ(get("/v1/decisions")["request_ids"].size(), 100U);
  EXPECT_EQ(get("/v1/decisions?limit=1000")["request_ids"].size(), 1000U);
}

TEST_F(DecisionsApiTest, RefusesLimitsThatAreNone) {
  for (const char* limit : {"", "0", "-1", "1001", "ten", "1.5", "99999999999999999999"})
    EXPECT_THAT(refusal(fmt::format("/v1/decisions?limit={}", limit), 400), HasSubstr("limit"));
  EXPECT_THAT(refusal("/v1/decisions?most=3", 400), HasSubstr("limit="));
}

}  // namespace
}  // namespace baton::api
