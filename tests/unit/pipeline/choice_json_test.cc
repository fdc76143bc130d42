// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/choice_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <memory>
#include <string>

namespace baton::pipeline {
namespace {

using Json = nlohmann::json;

scheduling::Choice::Candidate candidate(const std::string& name) {
  model::WorkerSpec spec;
  spec.endpoint = {"10.0.0.1", 80};
  spec.name = name;
  return {.worker = std::make_shared<fleet::Worker>(model::WorkerId{7}, spec, config::Health{}),
          .rank = {},
          .load = 3,
          .preference = 1,
          .score = 4,
          .why_not = {},
          .weight = {}};
}

Json written(const scheduling::Choice& choice) { return Json::parse(choice_json(choice)); }

TEST(ChoiceJson, TellsWhoWasPickedOfWhomAndBecauseOfWhat) {
  scheduling::Choice choice{.picked = 1,
                            .candidates = {candidate("a"), candidate("b \"2\"")},
                            .of = 9,
                            .by = scheduling::Choice::By::Session,
                            .policy = model::Policy::LeastLoaded};
  choice.candidates[0].why_not = "it is busy";
  choice.candidates[1].rank = 2;
  const Json json = written(choice);
  EXPECT_EQ(json["worker"], "b \"2\"");
  EXPECT_EQ(json["dp_rank"], 2);
  EXPECT_EQ(json["policy"], "least_loaded");
  EXPECT_EQ(json["by"], "session");
  EXPECT_EQ(json["picked"], 1);
  EXPECT_EQ(json["of"], 9);
  const Json& first = json["candidates"][0];
  EXPECT_EQ(first["worker"], "a");
  EXPECT_TRUE(first["dp_rank"].is_null());
  EXPECT_EQ(first["load"], 3);
  EXPECT_EQ(first["preference"], 1);
  EXPECT_EQ(first["score"], 4);
  EXPECT_EQ(first["why_not"], "it is busy");
  EXPECT_TRUE(json["candidates"][1]["why_not"].is_null());
}

TEST(ChoiceJson, HasNothingOfWhatThePolicyDoesNotWeigh) {
  const Json json = written({.picked = 0, .candidates = {candidate("a")}});
  EXPECT_EQ(json["by"], "policy");
  for (const char* field : {"prefill_tokens", "decode_blocks", "block_size", "overlap",
                            "cached_tokens", "new_tokens", "cost", "forecast"}) {
    ASSERT_TRUE(json["candidates"][0].contains(field)) << field;
    EXPECT_TRUE(json["candidates"][0][field].is_null()) << field;
  }
}

TEST(ChoiceJson, HasEachTermOfACost) {
  scheduling::Choice choice{.picked = 0, .candidates = {candidate("a")}};
  choice.candidates[0].weight = scheduling::CandidateScore{
      .leg = {.tokens = 100, .block_size = 16, .track_prefill = true, .decode_worker = false},
      .facts = {.prefill_tokens = 32,
                .device = 2,
                .host = 1,
                .disk = 3,
                .shared = 0,
                .decode_blocks = 9,
                .requests = 3,
                .preference = 1},
      .cached_tokens = 60,
      .cost = {.raw_prefill_blocks = 8.25,
               .decay = 0.5,
               .credit = 2.5,
               .prefill = 5.75,
               .decode_blocks = 9,
               .requests = 1.5,
               .preference = 0.25,
               .total = 4.0625},
      .forecast = {},
      .total = 4.0625};
  const Json one = written(choice)["candidates"][0];
  EXPECT_EQ(one["prefill_tokens"], 32);
  EXPECT_EQ(one["decode_blocks"], 9);
  EXPECT_EQ(one["block_size"], 16);
  EXPECT_EQ(one["overlap"], Json::parse(R"({"device":2,"host":1,"disk":3})"));
  EXPECT_EQ(one["cached_tokens"], 60);
  EXPECT_EQ(one["new_tokens"], 40);
  EXPECT_EQ(one["cost"], Json::parse(R"({"raw_prefill_blocks":8.25,"decay":0.5,"credit":2.5,
      "prefill":5.75,"decode_blocks":9,"requests":1.5,"preference":0.25,"total":4.0625})"));
}

TEST(ChoiceJson, HasEachTermOfAForecastInstead) {
  scheduling::Choice choice{
      .picked = 0, .candidates = {candidate("a")}, .policy = model::Policy::Ttft};
  scheduling::CandidateScore& weight = choice.candidates[0].weight.emplace();
  weight.forecast = scheduling::Forecast{.wait = 0.5,
                                         .compute = 0.25,
                                         .transfer = 0.125,
                                         .stall = 0.0625,
                                         .waste = 1,
                                         .preference = 2,
                                         .trust = 0.5,
                                         .total = 3.75};
  const Json json = written(choice);
  EXPECT_EQ(json["policy"], "ttft");
  const Json& one = json["candidates"][0];
  EXPECT_TRUE(one["cost"].is_null());
  EXPECT_EQ(one["forecast"],
            Json::parse(R"({"wait":0.5,"compute":0.25,"transfer":0.125,"stall":0.0625,"waste":1,
                                             "preference":2,"trust":0.5,"total":3.75})"));
}

TEST(ChoiceJson, NothingIsNewToWhoeverComputesNothing) {
  scheduling::Choice choice{.picked = 0, .candidates = {candidate("a")}};
  scheduling::CandidateScore& weight = choice.candidates[0].weight.emplace();
  weight.leg = {.tokens = 100, .track_prefill = false};
  EXPECT_EQ(written(choice)["candidates"][0]["new_tokens"], 0);
  weight.leg.track_prefill = true;
  weight.cached_tokens = 112;  // whole blocks
  EXPECT_EQ(written(choice)["candidates"][0]["new_tokens"], 0);
}

TEST(ChoiceJson, NumbersWithoutEndAreNull) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  scheduling::Choice choice{.picked = 0, .candidates = {candidate("a")}};
  choice.candidates[0].score = kInfinity;
  choice.candidates[0].preference = std::numeric_limits<double>::quiet_NaN();
  scheduling::CandidateScore& weight = choice.candidates[0].weight.emplace();
  weight.cost.total = -kInfinity;
  weight.cost.prefill = 1e300;
  const Json one = written(choice)["candidates"][0];
  EXPECT_TRUE(one["score"].is_null());
  EXPECT_TRUE(one["preference"].is_null());
  EXPECT_TRUE(one["prefill_tokens"].is_null()) << "nobody knows its load";
  EXPECT_TRUE(one["cost"]["total"].is_null());
  EXPECT_EQ(one["cost"]["prefill"], 1e300);
}

}  // namespace
}  // namespace baton::pipeline
