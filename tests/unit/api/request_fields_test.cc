// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/request_fields.h"

#include "config/config.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace baton::api {
namespace {

using testing::HasSubstr;

struct ReadFiltersTest : testing::Test {
  Result<void> read(std::string_view target) {
    return read_filters(target, std::array{Filter{"colour", &colour}, Filter{"size", &size},
                                           Filter{"shape", &shape}});
  }
  std::optional<std::string> colour;
  std::optional<std::string> size;
  std::optional<std::string> shape;
};

TEST_F(ReadFiltersTest, SetsWhatIsNamedAndNothingElse) {
  EXPECT_TRUE(read("/things?size=a%2Fb&colour="));
  EXPECT_EQ(colour, "");
  EXPECT_EQ(size, "a/b");
  EXPECT_EQ(shape, std::nullopt);
}

TEST_F(ReadFiltersTest, ThereNeedNotBeAny) {
  EXPECT_TRUE(read("/things"));
  EXPECT_TRUE(read("/things?"));
  EXPECT_EQ(size, std::nullopt);
}

TEST_F(ReadFiltersTest, SaysWhichThereAre) {
  for (const char* bad : {"/?taste=x", "/?size", "/?=x", "/?size=1&taste=x"}) {
    const auto done = read(bad);
    ASSERT_FALSE(done) << bad;
    EXPECT_EQ(done.error().code(), Errc::InvalidRequest);
    EXPECT_THAT(done.error().message(), HasSubstr("there are colour=, size= and shape="));
  }
  const auto done = read_filters("/?x=1", std::array{Filter{"size", &size}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "x=1 is no filter; there is size=");
}

struct FindModelTest : testing::Test {
  Result<std::shared_ptr<fleet::Model>> find(std::string_view text) {
    fleet.configure(models);
    auto served = find_model(fleet, wire::JsonObject::parse(text).value());
    if (!served) return fail(std::move(served.error()));
    return served->model;
  }
  static config::Model named(const std::string& name) {
    config::Model model;
    model.name = name;
    return model;
  }
  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  fleet::Fleet fleet{config, metrics, log};
  std::vector<config::Model> models{named("m")};
};

TEST_F(FindModelTest, FindsByNameAndAlias) {
  models.push_back(named("n"));
  models.back().aliases = {"also-n"};
  EXPECT_EQ(find(R"({"model":"m"})").value()->name(), "m");
  EXPECT_EQ(find(R"({"model":"also-n"})").value()->name(), "n");
}

TEST_F(FindModelTest, TheOnlyModelNeedNotBeNamed) {
  EXPECT_EQ(find("{}").value()->name(), "m");
  models.push_back(named("n"));
  const auto found = find("{}");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Errc::InvalidRequest);
  EXPECT_EQ(found.error().param(), "model");
}

TEST_F(FindModelTest, SaysWhichModelThereIsNot) {
  const auto found = find(R"({"model":"x"})");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Errc::ModelNotFound);
  EXPECT_THAT(found.error().message(), HasSubstr("\"x\""));
}

}  // namespace
}  // namespace baton::api
