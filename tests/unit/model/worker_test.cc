// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/worker.h"

#include <gtest/gtest.h>

namespace baton::model {
namespace {

TEST(Worker, EveryNameIsReadBackAsItself) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    EXPECT_EQ(parse_engine(to_string(engine)), engine);
  }
  for (const Role role : {Role::Prefill, Role::Decode, Role::Aggregated}) {
    EXPECT_EQ(parse_role(to_string(role)), role);
  }
  for (const Policy policy : {Policy::RoundRobin, Policy::Random, Policy::PowerOfTwo,
                              Policy::LeastLoaded, Policy::Direct}) {
    EXPECT_EQ(parse_policy(to_string(policy)), policy);
  }
  for (const HandoffMode mode :
       {HandoffMode::NixlPull, HandoffMode::NixlPush, HandoffMode::Mooncake, HandoffMode::Bootstrap,
        HandoffMode::ContextFirst, HandoffMode::GenerationFirst}) {
    EXPECT_EQ(parse_handoff_mode(to_string(mode)), mode);
  }
  for (const Disaggregation one :
       {Disaggregation::Auto, Disaggregation::Required, Disaggregation::Off}) {
    EXPECT_EQ(parse_disaggregation(to_string(one)), one);
  }
}

TEST(Worker, NamesAreThoseOfTheConfiguration) {
  EXPECT_EQ(parse_engine("trtllm"), Engine::Trtllm);
  EXPECT_EQ(parse_role("aggregated"), Role::Aggregated);
  EXPECT_EQ(parse_policy("power_of_two"), Policy::PowerOfTwo);
}

TEST(Worker, OtherNamesAreRefusedAlsoInAnotherCase) {
  EXPECT_EQ(parse_engine("VLLM"), std::nullopt);
  EXPECT_EQ(parse_role("prefil"), std::nullopt);
  EXPECT_EQ(parse_policy(""), std::nullopt);
}

TEST(Worker, HandsOffInAModeOfItsEngine) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    EXPECT_EQ(engine_of(default_mode(engine)), engine);
    WorkerSpec spec;
    spec.engine = engine;
    EXPECT_EQ(spec.mode(), default_mode(engine));
  }
  EXPECT_EQ(engine_of(HandoffMode::Mooncake), Engine::Vllm);
  EXPECT_EQ(engine_of(HandoffMode::GenerationFirst), Engine::Trtllm);
  WorkerSpec pushing;
  pushing.handoff = HandoffMode::NixlPush;
  EXPECT_EQ(pushing.mode(), HandoffMode::NixlPush);
}

TEST(Endpoint, NamesAndIpv4AddressesStandBare) {
  EXPECT_EQ((Endpoint{"gpu-1.example", 9001}).to_string(), "gpu-1.example:9001");
  EXPECT_EQ((Endpoint{"127.0.0.1", 80}).to_string(), "127.0.0.1:80");
}

TEST(Endpoint, Ipv6AddressesStandInBrackets) {
  EXPECT_EQ((Endpoint{"::1", 9001}).to_string(), "[::1]:9001");
}

}  // namespace
}  // namespace baton::model
