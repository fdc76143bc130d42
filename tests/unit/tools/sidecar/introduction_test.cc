// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sidecar/introduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::sidecar {
namespace {

using model::Engine;
using model::HandoffMode;
using model::Role;
using testing::AllOf;
using testing::HasSubstr;

Introduction said(Engine engine = Engine::Vllm, Role role = Role::Aggregated) {
  Introduction made;
  made.announcement.spec.endpoint = {"10.0.0.2", 8000};
  made.announcement.spec.engine = engine;
  made.announcement.spec.role = role;
  return made;
}

engine::Facts facts(Engine engine = Engine::Vllm) {
  engine::Facts made;
  made.engine = engine;
  made.models = {{.id = "adapter", .parent = "llama", .max_model_len = {}},
                 {.id = "llama", .parent = "", .max_model_len = {}},
                 {.id = "other", .parent = "", .max_model_len = {}}};
  return made;
}

std::string refusal(const std::expected<model::Announcement, std::string>& outcome) {
  return outcome ? "none" : outcome.error();
}

TEST(IntroductionTest, TakesTheFirstModelThatIsNoAdapter) {
  const auto announced = introduce(said(), facts());
  ASSERT_TRUE(announced) << announced.error();
  EXPECT_EQ(announced->model, "llama");
  EXPECT_EQ(announced->spec, said().announcement.spec);
}

TEST(IntroductionTest, KeepsTheModelThatWasSaid) {
  Introduction given = said();
  given.announcement.model = "other";
  const auto announced = introduce(given, facts());
  ASSERT_TRUE(announced) << announced.error();
  EXPECT_EQ(announced->model, "other");
}

TEST(IntroductionTest, AsksForTheModelWhereTheEngineKeepsItToItself) {
  engine::Facts silent;
  silent.unknown_because = "the worker asks for a key";
  EXPECT_THAT(refusal(introduce(said(), silent)),
              AllOf(HasSubstr("asks for a key"), HasSubstr("--model")));
}

TEST(IntroductionTest, FillsInTheRanks) {
  engine::Facts four = facts();
  four.data_parallel_size = 4;
  EXPECT_EQ(introduce(said(), four)->spec.data_parallel_size, 4U);
  Introduction given = said();
  given.asks_data_parallel_size = false;
  EXPECT_EQ(introduce(given, four)->spec.data_parallel_size, 1U);
}

TEST(IntroductionTest, FillsInTheBootstrapPortOnlyWhereOneIsMet) {
  engine::Facts port = facts(Engine::Sglang);
  port.bootstrap_port = 8998;
  EXPECT_EQ(introduce(said(Engine::Sglang, Role::Prefill), port)->spec.bootstrap_port, 8998);
  EXPECT_EQ(introduce(said(Engine::Sglang, Role::Decode), port)->spec.bootstrap_port, std::nullopt);
  port.engine = Engine::Vllm;
  EXPECT_EQ(introduce(said(Engine::Vllm, Role::Prefill), port)->spec.bootstrap_port, std::nullopt);
  Introduction mooncake = said(Engine::Vllm, Role::Prefill);
  mooncake.announcement.spec.handoff = HandoffMode::Mooncake;
  EXPECT_EQ(introduce(mooncake, port)->spec.bootstrap_port, 8998);
}

TEST(IntroductionTest, RefusesWhatTheEngineDenies) {
  engine::Facts decode = facts(Engine::Sglang);
  decode.role = Role::Decode;
  EXPECT_THAT(
      refusal(introduce(said(Engine::Vllm, Role::Prefill), decode)),
      AllOf(HasSubstr("engine is vllm, but the server is sglang"), HasSubstr("role is prefill")));
}

TEST(IntroductionTest, RefusesANameThatNobodyWouldRead) {
  engine::Facts odd;
  odd.models = {{.id = "two\nlines", .parent = "", .max_model_len = {}}};
  EXPECT_THAT(refusal(introduce(said(), odd)),
              AllOf(HasSubstr("what the engine says"), HasSubstr("model")));
}

}  // namespace
}  // namespace baton::sidecar
