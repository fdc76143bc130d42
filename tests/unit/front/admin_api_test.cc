// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "front/admin_api.h"

#include "support/io_fixture.h"
#include "unit/front/answer_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::front {
namespace {

using model::Role;
using testing::HasSubstr;

struct AdminApiTest : test::IoFixture {
  void serve(std::string name, std::vector<Role> roles) {
    config::Model& model = config.models.emplace_back();
    model.name = std::move(name);
    for (const Role role : roles) {
      model.workers.push_back({{"127.0.0.1", 1}, model::Engine::Vllm, role, std::nullopt});
    }
  }
  const AnswerRecorder& get(const std::string& path) {
    fleet.emplace(config, metrics, log);
    const Routes routes(admin_routes(*fleet, metrics, [this] { return draining; }));
    run([&]() -> awaitable<void> { co_await call_route(routes, "GET", path, "", answer); });
    return answer;
  }
  nlohmann::json json() const { return nlohmann::json::parse(answer.body); }

  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  std::optional<fleet::Fleet> fleet;
  bool draining = false;
  AnswerRecorder answer;
};

TEST_F(AdminApiTest, NeedsNoKey) {
  fleet.emplace(config, metrics, log);
  for (const Route& route : admin_routes(*fleet, metrics, [] { return false; })) {
    EXPECT_EQ(route.access, Access::Open) << route.path;
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
  EXPECT_EQ(json()["models"]["good"],
            nlohmann::json::parse(R"({"ready":true,"reason":null,)"
                                  R"("prefill":1,"decode":2,"aggregated":0})"));
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

TEST_F(AdminApiTest, GivesTheMetricsInPrometheusFormat) {
  metrics.counter("baton_something_total", "Something.").add(3);
  get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.find("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer.body, HasSubstr("baton_something_total 3\n"));
}

}  // namespace
}  // namespace baton::front
