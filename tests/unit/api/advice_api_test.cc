// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/advice_api.h"

#include "support/io_fixture.h"
#include "unit/api/answer_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::api {
namespace {

using namespace std::chrono_literals;
using model::Role;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

struct AdviceApiTest : test::IoFixture {
  AdviceApiTest() {
    config::Model one;
    one.name = "m";
    one.aliases = {"also-m"};
    one.routing.slo = config::Slo{.ttft = 500ms};
    config::Model other;
    other.name = "n";
    fleet.configure({one, other});
    announce("p", "m", Role::Prefill, "blue");
    announce("d", "m", Role::Decode, "blue");
    announce("a", "m", Role::Aggregated, "green");
    announce("b", "n", Role::Aggregated, "default");
  }
  void announce(const std::string& key, const std::string& model, Role role,
                const std::string& name_space) {
    model::Announcement worker;
    worker.model = model;
    worker.spec.endpoint = {"127.0.0.1", next_port++};
    worker.spec.role = role;
    worker.spec.name_space = name_space;
    fleet.announce(fleet::Origin::Etcd, key, worker);
  }
  int get(const std::string& query = "") {
    answer = {};
    run([&]() -> awaitable<void> {
      co_await call_route(routes, "GET", "/v1/advice" + query, "", answer);
    });
    return answer.status;
  }
  Json json() const { return Json::parse(answer.body); }
  std::vector<std::string> pools(const std::string& query) {
    EXPECT_EQ(get(query), 200) << answer.body;
    std::vector<std::string> found;
    for (const Json& one : json()["models"]) {
      found.push_back(one["model"].get<std::string>() + " " + one["namespace"].get<std::string>());
    }
    return found;
  }

  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  fleet::Fleet fleet{config, metrics, log};
  std::uint16_t next_port = 1;
  http::Routes routes{advice_routes(fleet)};
  AnswerRecorder answer;
};

TEST_F(AdviceApiTest, IsForOperatorsOnly) {
  for (const http::Route& route : advice_routes(fleet))
    EXPECT_EQ(route.access, http::Access::Operator) << route.method << " " << route.path;
}

TEST_F(AdviceApiTest, TellsHowManyWorkersAreWanted) {
  fleet.find("m")->pool("blue")->work().came(0.5, fleet::Clock::now());
  ASSERT_EQ(get("?model=m"), 200) << answer.body;
  EXPECT_EQ(answer.headers.find("content-type"), "application/json");
  Json blue = json()["models"][0];
  EXPECT_GE(blue["observed"]["seconds"], 0.0);
  blue["observed"].erase("seconds");
  for (Json& role : blue["roles"]) {
    EXPECT_THAT(role["reason"].get<std::string>(), HasSubstr("a minute is needed"));
    role.erase("reason");
  }
  EXPECT_EQ(blue, Json::parse(R"({
    "model":"m","namespace":"blue","objective":{"ttft_ms":500,"itl_ms":null},
    "observed":{"requests_per_second":0.017,"prefill_seconds_per_second":0.008,"streams":null},
    "roles":[
      {"role":"prefill","wanted":1,"available":1,"registered":1,"utilization":null},
      {"role":"decode","wanted":1,"available":1,"registered":1,"utilization":null}]})"));
}

TEST_F(AdviceApiTest, OfAModelWithoutAnObjectiveItIsNull) {
  ASSERT_EQ(get("?model=n"), 200) << answer.body;
  EXPECT_TRUE(json()["models"][0].at("objective").is_null());
  EXPECT_EQ(json()["models"][0]["roles"][0]["role"], "aggregated");
}

TEST_F(AdviceApiTest, ListsEachNamespaceOfEachModel) {
  EXPECT_THAT(pools(""), ElementsAre("m blue", "m green", "n default"));
  EXPECT_THAT(pools("?model=n"), ElementsAre("n default"));
  EXPECT_THAT(pools("?model=also-m"), ElementsAre("m blue", "m green"));
  EXPECT_THAT(pools("?model=nobody"), IsEmpty());
}

TEST_F(AdviceApiTest, SaysWhichFilterThereIs) {
  EXPECT_EQ(get("?role=prefill"), 400);
  EXPECT_THAT(answer.body, HasSubstr("there is model="));
}

}  // namespace
}  // namespace baton::api
