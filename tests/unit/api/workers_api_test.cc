// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/workers_api.h"

#include "support/io_fixture.h"
#include "unit/api/answer_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <set>

namespace baton::api {
namespace {

using model::Role;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;

struct WorkersApiTest : test::IoFixture {
  static model::Announcement announcement(std::uint16_t port, Role role,
                                          const std::string& model = "m") {
    model::Announcement one;
    one.model = model;
    one.spec.endpoint = {"127.0.0.1", port};
    one.spec.role = role;
    return one;
  }
  int call(const std::string& method, const std::string& path, const std::string& body = "") {
    answer = {};
    run([&]() -> awaitable<void> { co_await call_route(routes, method, path, body, answer); });
    return answer.status;
  }
  Json json() const { return Json::parse(answer.body); }
  std::string code() const { return json()["error"]["code"]; }
  std::string message() const { return json()["error"]["message"]; }
  std::set<std::string> names(const std::string& query) {
    EXPECT_EQ(call("GET", "/workers" + query), 200) << answer.body;
    std::set<std::string> found;
    for (const Json& one : json()["workers"]) found.insert(one["name"]);
    return found;
  }

  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  fleet::Fleet fleet{config, metrics, log};
  fleet::AdminSource admin{fleet};
  std::map<std::uint64_t, engine::Facts> said;   // by worker
  std::map<std::uint64_t, CacheSummary> caches;  // by worker
  WorkersContext context{
      .fleet = fleet,
      .admin = admin,
      .facts = [this](model::WorkerId id) -> const engine::Facts* {
        const auto found = said.find(id.value);
        return found == said.end() ? nullptr : &found->second;
      },
      .cache = [this](const fleet::Worker& worker) -> std::optional<CacheSummary> {
        const auto found = caches.find(worker.id().value);
        return found == caches.end() ? std::nullopt : std::optional(found->second);
      }};
  http::Routes routes{workers_routes(context)};
  AnswerRecorder answer;
};

constexpr const char* kWorker =
    R"({"model":"m","url":"http://127.0.0.1:1","engine":"vllm","role":"decode"})";

TEST_F(WorkersApiTest, IsForOperatorsOnly) {
  for (const http::Route& route : workers_routes(context))
    EXPECT_EQ(route.access, http::Access::Operator) << route.method << " " << route.path;
}

TEST_F(WorkersApiTest, HasNoWorkersAtFirst) {
  EXPECT_EQ(call("GET", "/workers"), 200);
  EXPECT_EQ(json(), Json::parse(R"({"workers":[]})"));
}

TEST_F(WorkersApiTest, TellsWhatTheEngineSaidOfItself) {
  ASSERT_EQ(call("POST", "/workers", kWorker), 201) << answer.body;
  ASSERT_EQ(call("GET", "/workers/1"), 200);
  EXPECT_EQ(json()["engine_facts"], Json());
  said[1].engine = model::Engine::Vllm;
  said[1].version = "0.11.0";
  said[1].models.push_back({.id = "m", .parent = "", .max_model_len = 4096});
  said[1].block_size = 16;
  said[1].kv_events = {.publisher = "zmq", .endpoint = {"127.0.0.1", 5557}, .topic = "kv"};
  ASSERT_EQ(call("GET", "/workers/1"), 200);
  const Json facts = json()["engine_facts"];
  EXPECT_EQ(facts["engine"], "vllm");
  EXPECT_EQ(facts["version"], "0.11.0");
  EXPECT_EQ(facts["models"][0]["max_model_len"], 4096);
  EXPECT_EQ(facts["block_size"], 16);
  EXPECT_EQ(facts["data_parallel_size"], Json());
  EXPECT_EQ(facts["kv_events"]["endpoint"], "127.0.0.1:5557");
}

TEST_F(WorkersApiTest, TellsWhatIsKnownOfItsCache) {
  ASSERT_EQ(call("POST", "/workers", kWorker), 201) << answer.body;
  EXPECT_EQ(json().at("kv_cache"), Json());
  caches[1] = {.source = kvcache::Trusted::Decisions,
               .feed = kvcache::FeedHealth::Silent,
               .reason = "why",
               .block_size = 32,
               .blocks = 7};
  const Json expected = Json::parse(
      R"({"source":"decisions","feed":"silent","reason":"why","block_size":32,"blocks":7})");
  ASSERT_EQ(call("GET", "/workers"), 200);
  EXPECT_EQ(json()["workers"][0]["kv_cache"], expected);
  ASSERT_EQ(call("GET", "/workers/1"), 200);
  EXPECT_EQ(json()["kv_cache"], expected);
}

TEST_F(WorkersApiTest, ANumberThatNothingHoldsIsRefusedByItsKey) {
  ASSERT_EQ(call("POST", "/workers", kWorker), 201) << answer.body;
  EXPECT_EQ(call("PATCH", "/workers/1", R"({"draining":true,"kv_blocks":1e999})"), 400);
  EXPECT_EQ(code(), "invalid_request");
  EXPECT_THAT(message(), HasSubstr("kv_blocks: "));
  EXPECT_EQ(call("PATCH", "/workers/1", R"({"topology":{"rack":-1e400}})"), 400);
  EXPECT_THAT(message(), HasSubstr("topology: "));
  const std::string with = std::string(kWorker, strlen(kWorker) - 1) + R"(,"kv_blocks":1e999})";
  EXPECT_EQ(call("POST", "/workers", with), 400);
  EXPECT_THAT(message(), HasSubstr("kv_blocks: "));
  ASSERT_EQ(call("GET", "/workers/1"), 200);
  EXPECT_EQ(json()["announced"]["draining"], false);
}

TEST_F(WorkersApiTest, AddsAWorkerAndShowsIt) {
  EXPECT_EQ(call("POST", "/workers", kWorker), 201) << answer.body;
  EXPECT_EQ(answer.headers.find("location"), "/workers/1");
  const Json added = json();
  EXPECT_EQ(added["number"], 1);
  EXPECT_EQ(added["name"], "127.0.0.1:1");
  EXPECT_EQ(added["model"], "m");
  EXPECT_EQ(added["namespace"], "default");
  EXPECT_EQ(added["role"], "decode");
  EXPECT_EQ(added["engine"], "vllm");
  EXPECT_EQ(added["url"], "http://127.0.0.1:1");
  EXPECT_TRUE(added["instance"].is_null());
  EXPECT_EQ(added["state"], "new");
  EXPECT_TRUE(added["reason"].is_null());
  EXPECT_EQ(added["in_flight"], 0);
  EXPECT_FALSE(added.contains("in_flight_by_rank"));
  EXPECT_EQ(added["origin"], "admin");
  EXPECT_EQ(added["leaving"], false);
  EXPECT_EQ(added["overloaded"], false);
  EXPECT_TRUE(added["last_success_seconds_ago"].is_null());
  EXPECT_EQ(added["announced"]["url"], "http://127.0.0.1:1");
  for (const char* id : {"1", "127.0.0.1:1", "127.0.0.1%3A1"}) {
    EXPECT_EQ(call("GET", std::string("/workers/") + id), 200) << id;
    EXPECT_EQ(json(), added) << id;
  }
}

TEST_F(WorkersApiTest, TellsHowAWorkerIs) {
  model::Announcement one = announcement(1, Role::Decode);
  one.spec.data_parallel_size = 2;
  one.spec.instance = "run-1";
  const auto worker = admin.add(one)->member.worker;
  const fleet::Booking running(worker, 1);
  worker->succeeded();
  worker->unreachable(fleet::Failure::Unreachable, "the cable is out");
  ASSERT_EQ(call("GET", "/workers/1"), 200);
  EXPECT_EQ(json()["state"], "unreachable");
  EXPECT_EQ(json()["reason"], "the cable is out");
  EXPECT_EQ(json()["instance"], "run-1");
  EXPECT_EQ(json()["in_flight"], 1);
  EXPECT_THAT(json()["in_flight_by_rank"].get<std::vector<int>>(), ElementsAre(0, 1));
  EXPECT_GE(json()["last_success_seconds_ago"], 0.0);
  EXPECT_LT(json()["last_success_seconds_ago"], 60.0);
}

TEST_F(WorkersApiTest, AddingTheSameAgainIsNoNews) {
  EXPECT_EQ(call("POST", "/workers", kWorker), 201);
  EXPECT_EQ(call("POST", "/workers", kWorker), 200);
  EXPECT_EQ(json()["number"], 1);
}

TEST_F(WorkersApiTest, NamesEveryProblemOfAWorkerItRefuses) {
  EXPECT_EQ(call("POST", "/workers", R"({"url":"nowhere","engine":"llvm","colour":"red"})"), 400);
  EXPECT_EQ(code(), "invalid_request");
  EXPECT_THAT(message(), HasSubstr("url: "));
  EXPECT_THAT(message(), HasSubstr("vllm"));
  EXPECT_THAT(message(), HasSubstr("colour"));
  EXPECT_THAT(message(), HasSubstr("model"));
  EXPECT_TRUE(fleet.members().empty());
}

TEST_F(WorkersApiTest, TakesJsonOnlyAndNotTooMuchOfIt) {
  for (const char* bad : {"", "model: m", "[]", R"({"model":)"}) {
    EXPECT_EQ(call("POST", "/workers", bad), 400) << bad;
    EXPECT_EQ(code(), "invalid_json") << bad;
  }
  const std::string long_name = R"({"model":")" + std::string(70'000, 'x') + R"("})";
  EXPECT_EQ(call("POST", "/workers", long_name), 413);
  call("POST", "/workers", kWorker);
  EXPECT_EQ(call("PATCH", "/workers/1", "role: prefill"), 400);
  EXPECT_EQ(call("PATCH", "/workers/1", long_name), 413);
}

TEST_F(WorkersApiTest, FindsWorkersByModelRoleAndState) {
  admin.add(announcement(1, Role::Prefill));
  admin.add(announcement(2, Role::Decode));
  admin.add(announcement(3, Role::Decode, "org/other"))->member.worker->answered();
  EXPECT_EQ(names("").size(), 3U);
  EXPECT_THAT(names("?model=m"), UnorderedElementsAre("127.0.0.1:1", "127.0.0.1:2"));
  EXPECT_THAT(names("?model=org%2Fother"), UnorderedElementsAre("127.0.0.1:3"));
  EXPECT_THAT(names("?role=decode&model=m"), UnorderedElementsAre("127.0.0.1:2"));
  EXPECT_THAT(names("?state=ready"), UnorderedElementsAre("127.0.0.1:3"));
  EXPECT_TRUE(names("?model=nobody").empty());
}

TEST_F(WorkersApiTest, SaysWhichFiltersThereAre) {
  for (const char* bad : {"?colour=red", "?role", "?role=cook", "?=x"}) {
    EXPECT_EQ(call("GET", std::string("/workers") + bad), 400) << bad;
    EXPECT_THAT(message(), HasSubstr("there are ")) << bad;
  }
}

TEST_F(WorkersApiTest, AModelIsFoundByItsAlias) {
  config::Model configured;
  configured.name = "m";
  configured.aliases = {"short"};
  fleet.configure({configured});
  admin.add(announcement(1, Role::Decode));
  EXPECT_THAT(names("?model=short"), UnorderedElementsAre("127.0.0.1:1"));
}

TEST_F(WorkersApiTest, APatchChangesWhatItNamesAndNothingElse) {
  call("POST", "/workers",
       R"({"model":"m","url":"http://127.0.0.1:1","engine":"vllm","role":"decode",)"
       R"("id":"w","taints":["old"]})");
  EXPECT_EQ(call("PATCH", "/workers/w", R"({"role":"prefill"})"), 200) << answer.body;
  EXPECT_EQ(json()["role"], "prefill");
  EXPECT_EQ(json()["name"], "w");
  EXPECT_EQ(json()["number"], 1);
  EXPECT_EQ(json()["announced"]["taints"], Json({"old"}));
  EXPECT_EQ(call("PATCH", "/workers/w", R"({"taints":null,"draining":true})"), 200);
  EXPECT_FALSE(json()["announced"].contains("taints"));
  EXPECT_EQ(json()["state"], "draining");
}

TEST_F(WorkersApiTest, APatchThatIsWrongChangesNothing) {
  call("POST", "/workers", kWorker);
  EXPECT_EQ(call("PATCH", "/workers/1", R"({"role":"cook","colour":"red"})"), 400);
  EXPECT_THAT(message(), HasSubstr("role"));
  EXPECT_THAT(message(), HasSubstr("colour"));
  EXPECT_EQ(call("PATCH", "/workers/1", R"({"url":"http://127.0.0.1:2"})"), 400);
  EXPECT_EQ(call("PATCH", "/workers/2", "{}"), 404);
  call("GET", "/workers/1");
  EXPECT_EQ(json()["role"], "decode");
}

TEST_F(WorkersApiTest, RemovesAWorker) {
  const auto worker = admin.add(announcement(1, Role::Decode))->member.worker;
  const fleet::Booking running(worker);
  EXPECT_EQ(call("DELETE", "/workers/1"), 200);
  EXPECT_EQ(json()["state"], "leaving");
  EXPECT_EQ(json()["leaving"], true);
  EXPECT_EQ(json()["in_flight"], 1);
  EXPECT_TRUE(json()["origin"].is_null());
  EXPECT_TRUE(json()["announced"].is_null());
  EXPECT_THAT(names("?state=leaving"), UnorderedElementsAre("127.0.0.1:1"));
}

TEST_F(WorkersApiTest, DrainsAWorkerAndTakesItBack) {
  call("POST", "/workers", kWorker);
  EXPECT_EQ(call("POST", "/workers/127.0.0.1:1/drain"), 200);
  EXPECT_EQ(json()["state"], "draining");
  EXPECT_EQ(call("DELETE", "/workers/127.0.0.1:1/drain"), 200);
  EXPECT_EQ(json()["state"], "new");
  EXPECT_EQ(call("POST", "/workers/nobody/drain"), 404);
  EXPECT_EQ(code(), "not_found");
}

TEST_F(WorkersApiTest, LeavesToOtherSourcesWhatIsTheirs) {
  fleet.announce(fleet::Origin::Etcd, "/workers/a", announcement(1, Role::Decode));
  for (const char* method : {"PATCH", "DELETE"}) {
    EXPECT_EQ(call(method, "/workers/1", "{}"), 409) << method;
    EXPECT_EQ(code(), "conflict");
    EXPECT_THAT(message(), HasSubstr("/workers/a"));
  }
  EXPECT_EQ(call("POST", "/workers", kWorker), 409);
  EXPECT_EQ(call("GET", "/workers/1"), 200);
  EXPECT_EQ(json()["origin"], "etcd");
  EXPECT_EQ(json()["key"], "/workers/a");
}

TEST_F(WorkersApiTest, SaysWhatCanBeDoneToAWorker) {
  call("POST", "/workers", kWorker);
  EXPECT_EQ(call("POST", "/workers/1"), 405);
  EXPECT_EQ(call("GET", "/workers/1/drain"), 405);
  EXPECT_THAT(message(), HasSubstr("POST and DELETE"));
}

}  // namespace
}  // namespace baton::api
