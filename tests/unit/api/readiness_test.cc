// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace baton::api {
namespace {

using model::Disaggregation;
using model::Role;
using testing::HasSubstr;

struct ReadinessTest : testing::Test {
  config::Model& add_model(std::string name) {
    config.models.emplace_back().name = std::move(name);
    return config.models.back();
  }
  // With the ports 1, 2, 3, … of the model added last.
  void add(Role role, std::string name_space = "default") {
    model::WorkerSpec& one = config.models.back().workers.emplace_back();
    one.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(config.models.back().workers.size())};
    one.role = role;
    one.name_space = std::move(name_space);
  }
  fleet::Fleet& fleet() {
    if (!fleet_) fleet_.emplace(config, metrics, log);
    return *fleet_;
  }
  fleet::Worker& worker(const std::string& name) { return *fleet().find_worker(name); }
  nlohmann::json of_model(bool ready) {
    const Readiness found = readiness_of(*fleet().find("m"));
    EXPECT_EQ(found.ready, ready);
    auto json = nlohmann::json::parse(found.json);
    EXPECT_EQ(json["ready"], ready);
    EXPECT_EQ(json["reason"].is_null(), ready);
    return json;
  }
  nlohmann::json of_all(bool ready, const std::vector<fleet::SourceStatus>& sources = {},
                        bool draining = false) {
    const Readiness found = readiness_of(fleet(), sources, draining);
    EXPECT_EQ(found.ready, ready);
    auto json = nlohmann::json::parse(found.json);
    EXPECT_EQ(json["ready"], ready);
    EXPECT_EQ(json["reason"].is_null(), ready);
    return json;
  }

  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};

 private:
  std::optional<fleet::Fleet> fleet_;
};

TEST_F(ReadinessTest, TellsByNamespaceAndRoleWhoIsThere) {
  add_model("m");
  add(Role::Prefill);
  add(Role::Decode);
  add(Role::Decode);
  add(Role::Decode);
  worker("127.0.0.1:1").answered();
  worker("127.0.0.1:2").answered();
  worker("127.0.0.1:3").misconfigured("another model");
  worker("127.0.0.1:4").set_draining(true);
  EXPECT_EQ(of_model(true), nlohmann::json::parse(R"({
    "model": "m", "ready": true, "reason": null,
    "namespaces": {"default": {
      "ready": true, "reason": null, "prefill_state": "active",
      "roles": {
        "prefill": {"workers": 1, "states": {"ready": 1}},
        "decode": {"workers": 3, "states": {"ready": 1, "misconfigured": 1, "draining": 1}}},
      "missing": []}}})"));
}

TEST_F(ReadinessTest, NamesTheRolesThatAreMissing) {
  add_model("m").disaggregation = Disaggregation::Required;
  add(Role::Decode);
  auto json = of_model(false);
  EXPECT_EQ(json["namespaces"]["default"]["missing"], nlohmann::json::array({"prefill"}));
  EXPECT_THAT(std::string(json["reason"]), HasSubstr("there is no prefill worker"));
  worker("127.0.0.1:1").unreachable(fleet::Failure::Unreachable, "gone");
  json = of_model(false);
  EXPECT_EQ(json["namespaces"]["default"]["missing"], nlohmann::json::array({"prefill", "decode"}));
}

TEST_F(ReadinessTest, MissesPrefillWhereItIsMeantToBe) {
  add_model("m");
  add(Role::Prefill);
  add(Role::Decode);
  worker("127.0.0.1:1").unreachable(fleet::Failure::Unreachable, "gone");
  const auto json = of_model(true)["namespaces"]["default"];
  EXPECT_EQ(json["prefill_state"], "unavailable");
  EXPECT_EQ(json["missing"], nlohmann::json::array({"prefill"}))
      << "it serves, but not as it is meant to";
}

TEST_F(ReadinessTest, MissesNoDecodeWhereOneDoesBoth) {
  add_model("m");
  add(Role::Aggregated);
  EXPECT_EQ(of_model(true)["namespaces"]["default"]["missing"], nlohmann::json::array());
}

TEST_F(ReadinessTest, OneNamespaceIsEnough) {
  add_model("m");
  add(Role::Prefill, "blue");
  add(Role::Decode, "green \"1\"");
  const auto json = of_model(true)["namespaces"];
  EXPECT_EQ(json["blue"]["ready"], false);
  EXPECT_EQ(json["blue"]["missing"], nlohmann::json::array({"decode"}));
  EXPECT_EQ(json["green \"1\""]["ready"], true);
}

TEST_F(ReadinessTest, AModelWithoutWorkersHasNoNamespaces) {
  add_model("m");
  const auto json = of_model(false);
  EXPECT_TRUE(json["namespaces"].empty());
  EXPECT_THAT(std::string(json["reason"]), HasSubstr("no workers"));
}

TEST_F(ReadinessTest, OfAllIsThatOfSomeModel) {
  add_model("empty");
  EXPECT_EQ(of_all(false)["models"]["empty"]["ready"], false);
}

TEST_F(ReadinessTest, OfAllTellsOfEachModelAndEachSource) {
  add_model("empty");
  add_model("m");
  add(Role::Aggregated);
  const auto json =
      of_all(true, {{.origin = fleet::Origin::File, .well = true, .detail = ""},
                    {.origin = fleet::Origin::Etcd, .well = false, .detail = "away"}});
  EXPECT_EQ(json["models"]["empty"]["ready"], false);
  EXPECT_EQ(json["models"]["m"]["ready"], true);
  EXPECT_EQ(json["sources"], nlohmann::json::parse(R"({"file":{"well":true,"detail":null},)"
                                                   R"("etcd":{"well":false,"detail":"away"}})"));
}

TEST_F(ReadinessTest, NobodyIsReadyOnceItShutsDown) {
  add_model("m");
  add(Role::Aggregated);
  EXPECT_EQ(of_all(false, {}, true)["reason"], "shutting down");
}

TEST_F(ReadinessTest, WithoutModelsNothingIsReady) {
  EXPECT_EQ(of_all(false)["reason"], "no model can serve");
}

}  // namespace
}  // namespace baton::api
