// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/prompt_rules.h"

#include "support/tiny_model.h"
#include "unit/handoff/handoff_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace baton::pipeline {
namespace {

using engine::Api;
using model::Version;

struct PromptRulesTest : handoff::HandoffFixture {
  void serve_two() {
    serve(Engine::Vllm,
          {{Role::Prefill, test::closed_endpoint()}, {Role::Decode, test::closed_endpoint()}});
  }
  void run_releases(Version prefill, Version decode) const {
    worker(Role::Prefill)->runs(prefill);
    worker(Role::Decode)->runs(decode);
  }
  std::shared_ptr<fleet::Worker> worker(Role role) const {
    const auto pools = fleet->find("m")->pools();
    return pools->front()->workers(role).members()->workers.front();
  }
  std::vector<prompt::Rules> rules() const { return rules_in(*fleet->find("m")); }
};

TEST_F(PromptRulesTest, AreEachWorkersOnce) {
  serve_two();
  EXPECT_EQ(rules(), std::vector{prompt::Rules()});
  run_releases({0, 22, 0}, {0, 22, 0});
  EXPECT_EQ(rules().size(), 1U);
  EXPECT_FALSE(rules().front().developer_as_system);
  run_releases({0, 22, 0}, {0, 32, 0});
  EXPECT_EQ(rules().size(), 2U);
  worker(Role::Decode)->set_renders_chats_in_code(true);
  EXPECT_TRUE(rules().back().chats_in_code);
}

TEST_F(PromptRulesTest, ThatDifferMakeOnlyThoseRequestsInexactThatTheyDifferIn) {
  const test::TinyModel files;
  const auto preprocessor = prompt::Preprocessor::load({.folder = files.folder()}).value();
  const auto made = [&](const char* text, const std::vector<prompt::Rules>& by) {
    const auto body = wire::JsonObject::parse(text);
    return prepare(*preprocessor, Api::Chat, *body, {.now = std::chrono::system_clock::now()}, by)
        .value();
  };
  constexpr const char* kPlain = R"({"messages":[{"role":"user","content":"hi"}]})";
  constexpr const char* kDeveloper =
      R"({"messages":[{"role":"user","content":"hi"},{"role":"developer","content":"hi"}]})";
  const std::vector<prompt::Rules> several{{}, {.developer_as_system = false}};
  EXPECT_TRUE(made(kPlain, several).exact());
  EXPECT_TRUE(made(kDeveloper, {several.front()}).exact());
  EXPECT_NE(made(kDeveloper, several).inexact.find("several releases"), std::string::npos);
}

TEST_F(PromptRulesTest, TheShortestContextOfTheWorkersCounts) {
  serve_two();
  EXPECT_EQ(max_model_len(*fleet->find("m")), std::nullopt);
  worker(Role::Prefill)->has_max_model_len(2048);
  worker(Role::Decode)->has_max_model_len(4096);
  EXPECT_EQ(max_model_len(*fleet->find("m")), 2048U);
}

}  // namespace
}  // namespace baton::pipeline
