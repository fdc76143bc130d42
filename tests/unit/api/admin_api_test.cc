// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/admin_api.h"

#include "support/io_fixture.h"
#include "unit/api/answer_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::api {
namespace {

using model::Role;
using testing::HasSubstr;

struct AdminApiTest : test::IoFixture {
  void serve(std::string name, std::vector<Role> roles) {
    config::Model& model = config.models.emplace_back();
    model.policy = model::Policy::RoundRobin;  // so that a test knows who is next
    model.name = std::move(name);
    for (const Role role : roles) {
      model::WorkerSpec worker;
      worker.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(model.workers.size() + 1)};
      worker.role = role;
      model.workers.push_back(worker);
    }
  }
  void emplace_fleet() {
    fleet.emplace(config, metrics, log);
    route_query.emplace(*fleet, caches, prompts, ledger, [this] { return ++draws; });
  }
  std::vector<http::Route> make_routes() {
    return admin_routes({.fleet = *fleet,
                         .route_query = *route_query,
                         .metrics = metrics,
                         .sources = [this] { return sources; },
                         .draining = [this] { return draining; }});
  }
  const AnswerRecorder& call(const std::string& method, const std::string& path,
                             const std::string& body, const wire::Headers& headers = {}) {
    if (!fleet) emplace_fleet();
    const http::Routes routes(make_routes());
    run([&]() -> awaitable<void> {
      co_await call_route(routes, method, path, body, answer, headers);
    });
    return answer;
  }
  const AnswerRecorder& get(const std::string& path) {
    fleet.reset();
    return call("GET", path, "");
  }
  nlohmann::json json() const { return nlohmann::json::parse(answer.body); }

  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  pipeline::RequestLedger ledger{metrics, log, false};
  pipeline::Tokenizers tokenizers{std::size_t{1} << 20, metrics};
  kvcache::KvCacheView caches{config::KvIndex(), metrics, log};
  net::CpuPool cpu{1};
  http_client::UpstreamPool pool{io,
                                 deadlines,
                                 {.connect_timeout = std::chrono::seconds(5),
                                  .idle_per_worker = 1,
                                  .header_bytes = 16 * 1024}};
  pipeline::PromptStep prompts{tokenizers, caches, cpu, pipeline::EngineTokens(pool, cpu, 1024)};
  std::uint64_t draws = 0;
  std::optional<fleet::Fleet> fleet;
  std::optional<pipeline::RouteQuery> route_query;
  std::vector<fleet::SourceStatus> sources;
  bool draining = false;
  AnswerRecorder answer;
};

TEST_F(AdminApiTest, AsksMachinesThatLookAfterItForNoKey) {
  emplace_fleet();
  const http::Routes routes(make_routes());
  for (const char* path : {"/health", "/ready", "/metrics", "/v1/models/m/ready"})
    EXPECT_EQ(routes.find("GET", path).value()->access, http::Access::Open) << path;
  EXPECT_EQ(routes.find("POST", "/v1/route").value()->access, http::Access::Operator);
}

TEST_F(AdminApiTest, TellsWhetherOneModelIsReady) {
  serve("org/good", {Role::Aggregated});
  serve("bad", {Role::Prefill});
  EXPECT_EQ(get("/v1/models/org%2Fgood/ready").status, 200);
  EXPECT_EQ(get("/v1/models/org/good/ready").status, 200);
  EXPECT_EQ(json()["model"], "org/good");
  EXPECT_EQ(get("/v1/models/bad/ready").status, 503);
  EXPECT_TRUE(json()["reason"].is_string());
  for (const char* path : {"/v1/models/nobody/ready", "/v1/models/bad", "/v1/models/ready"}) {
    EXPECT_EQ(get(path).status, 404) << path;
    EXPECT_EQ(json()["error"]["code"], "model_not_found");
  }
}

TEST_F(AdminApiTest, IsHealthyAsLongAsItAnswers) {
  draining = true;
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(json()["status"], "ok");
}

TEST_F(AdminApiTest, IsReadyWhereSomeModelCanServe) {
  serve("good", {Role::Prefill, Role::Decode, Role::Decode});
  serve("bad \"one\"", {Role::Prefill});
  EXPECT_EQ(get("/ready").status, 200);
  EXPECT_EQ(json()["ready"], true);
  EXPECT_TRUE(json()["reason"].is_null());
  EXPECT_EQ(json()["models"]["good"]["ready"], true);
  EXPECT_TRUE(json()["models"]["good"]["reason"].is_null());
  const auto roles = json()["models"]["good"]["namespaces"]["default"]["roles"];
  EXPECT_EQ(roles["prefill"]["workers"], 1);
  EXPECT_EQ(roles["decode"]["workers"], 2);
  EXPECT_EQ(json()["models"]["bad \"one\""]["ready"], false);
  EXPECT_THAT(std::string(json()["models"]["bad \"one\""]["reason"]), HasSubstr("decode"));
}

TEST_F(AdminApiTest, IsNotReadyWhereNoModelCanServe) {
  EXPECT_EQ(get("/ready").status, 503);
  serve("bad", {Role::Prefill});
  EXPECT_EQ(get("/ready").status, 503);
  EXPECT_EQ(json()["ready"], false);
  EXPECT_TRUE(json()["reason"].is_string());
}

TEST_F(AdminApiTest, IsNotReadyOnceItShutsDown) {
  serve("good", {Role::Aggregated});
  EXPECT_EQ(get("/ready").status, 200);
  draining = true;
  EXPECT_EQ(get("/ready").status, 503);
  EXPECT_EQ(json()["reason"], "shutting down");
}

TEST_F(AdminApiTest, TellsOfSourcesThatAreNotWell) {
  serve("good", {Role::Aggregated});
  sources = {{.origin = fleet::Origin::File, .well = false, .detail = "line 3"}};
  EXPECT_EQ(get("/ready").status, 200) << "what it said before still holds";
  EXPECT_EQ(json()["sources"]["file"]["well"], false);
  EXPECT_EQ(json()["sources"]["file"]["detail"], "line 3");
}

TEST_F(AdminApiTest, GivesTheMetricsInPrometheusFormat) {
  metrics.counter("baton_something_total", "Something.").add(3);
  get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.find("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer.body, HasSubstr("baton_something_total 3\n"));
}

// prefill-router.md §2.11.
TEST_F(AdminApiTest, TellsWhoWouldServeARequestWithoutServingIt) {
  serve("m", {Role::Prefill, Role::Prefill, Role::Decode});
  const std::string body = R"({"model":"m","prompt":"p"})";
  EXPECT_EQ(call("POST", "/v1/route", body).status, 200) << answer.body;
  EXPECT_EQ(json()["object"], "route");
  EXPECT_EQ(json()["handoff"], "nixl_pull");
  EXPECT_EQ(json()["prefill"]["worker"], "127.0.0.1:1");
  EXPECT_EQ(json()["prefill"]["candidates"].size(), 2U);
  EXPECT_EQ(json()["decode"]["worker"], "127.0.0.1:3");
  const std::string first = answer.body;
  call("POST", "/v1/route", body);
  EXPECT_EQ(answer.body, first) << "nobody's turn is used up";
}

TEST_F(AdminApiTest, BelievesWhoeverMayAskItWhereARequestGoes) {
  serve("m", {Role::Prefill, Role::Prefill, Role::Decode});
  wire::Headers headers;
  headers.add("X-Baton-Prefill-Instance-Id", "127.0.0.1:2");
  EXPECT_EQ(call("POST", "/v1/route", R"({"model":"m","prompt":"p"})", headers).status, 200);
  EXPECT_EQ(json()["prefill"]["worker"], "127.0.0.1:2");
}

TEST_F(AdminApiTest, SaysWhyARequestWouldNotBeServed) {
  serve("m", {Role::Prefill});
  EXPECT_EQ(call("POST", "/v1/route", R"({"model":"other"})").status, 404);
  EXPECT_EQ(json()["error"]["code"], "model_not_found");
  EXPECT_EQ(call("POST", "/v1/route", "no JSON").status, 400);
  EXPECT_EQ(call("POST", "/v1/route", R"({"model":"m","prompt":"p"})").status, 503);
  EXPECT_EQ(json()["error"]["code"], "no_workers");
}

}  // namespace
}  // namespace baton::api
