// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feed_plan.h"

#include <gtest/gtest.h>

namespace baton::kvcache {
namespace {

using model::Engine;
using model::Role;
using Way = FeedPlan::Way;

model::WorkerSpec worker(Engine engine = Engine::Vllm, Role role = Role::Aggregated) {
  model::WorkerSpec spec;
  spec.endpoint = {"10.0.0.1", 8000};
  spec.engine = engine;
  spec.role = role;
  return spec;
}

engine::Facts publishing(std::string host, std::uint16_t port, std::string topic = {}) {
  engine::Facts facts;
  facts.kv_events = {
      .publisher = "zmq", .endpoint = {std::move(host), port}, .topic = std::move(topic)};
  return facts;
}

TEST(FeedPlanTest, WhatWasSaidCounts) {
  model::WorkerSpec spec = worker();
  spec.kv_feed = {.events = "tcp://10.0.0.1:5557", .replay = "tcp://10.0.0.1:5657", .topic = "kv"};
  spec.block_size = 32;
  const engine::Facts other = publishing("10.0.0.9", 9);
  const FeedPlan plan = plan_feed(spec, &other, 0);
  EXPECT_EQ(plan.way, Way::Subscribe);
  EXPECT_EQ(plan.events, "tcp://10.0.0.1:5557");
  EXPECT_EQ(plan.replay, "tcp://10.0.0.1:5657");
  EXPECT_EQ(plan.topic, "kv");
  EXPECT_EQ(plan.block_size, 32U);
}

TEST(FeedPlanTest, EachRankHasTheNextPort) {
  model::WorkerSpec spec = worker();
  spec.kv_feed = {.events = "tcp://[fd00::1]:5557", .replay = "tcp://*:5657", .topic = {}};
  EXPECT_EQ(plan_feed(spec, nullptr, 3).events, "tcp://[fd00::1]:5560");
  EXPECT_EQ(plan_feed(spec, nullptr, 3).replay, "tcp://*:5660");
  spec.kv_feed->replay.clear();
  EXPECT_EQ(plan_feed(spec, nullptr, 3).replay, "");
  EXPECT_EQ(endpoint_of_rank("ipc:///run/events", 0), "ipc:///run/events");
}

TEST(FeedPlanTest, OffIsOffWhateverTheEngineSays) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    model::WorkerSpec spec = worker(engine);
    spec.kv_feed = model::KvFeed{};
    const engine::Facts facts = publishing("", 5557);
    EXPECT_EQ(plan_feed(spec, &facts, 0), FeedPlan()) << to_string(engine);
  }
}

TEST(FeedPlanTest, WithoutAWordThereIsNoFeed) {
  EXPECT_EQ(plan_feed(worker(), nullptr, 0), FeedPlan());
  const engine::Facts silent;
  EXPECT_EQ(plan_feed(worker(), &silent, 0), FeedPlan());
  EXPECT_EQ(plan_feed(worker(Engine::Sglang), &silent, 0), FeedPlan());
}

TEST(FeedPlanTest, SglangSaysWhereItPublishes) {
  const engine::Facts own = publishing("", 5557, "topic");
  const FeedPlan plan = plan_feed(worker(Engine::Sglang), &own, 1);
  EXPECT_EQ(plan.way, Way::Subscribe);
  EXPECT_EQ(plan.events, "tcp://10.0.0.1:5558");
  EXPECT_EQ(plan.replay, "");
  EXPECT_EQ(plan.topic, "topic");
  const engine::Facts elsewhere = publishing("10.0.0.7", 5557);
  EXPECT_EQ(plan_feed(worker(Engine::Sglang), &elsewhere, 0).events, "tcp://10.0.0.7:5557");
}

TEST(FeedPlanTest, SglangSaysWhereItRepeats) {
  engine::Facts own = publishing("", 5557);
  own.kv_events->replay_port = 5657;
  EXPECT_EQ(plan_feed(worker(Engine::Sglang), &own, 0).replay, "tcp://10.0.0.1:5657");
  EXPECT_EQ(plan_feed(worker(Engine::Sglang), &own, 2).replay, "tcp://10.0.0.1:5659");
  engine::Facts elsewhere = publishing("10.0.0.7", 5557);
  elsewhere.kv_events->replay_port = 5657;
  EXPECT_EQ(plan_feed(worker(Engine::Sglang), &elsewhere, 0).replay, "tcp://10.0.0.7:5657");
}

TEST(FeedPlanTest, AddressesOfIpv6AreInBrackets) {
  model::WorkerSpec spec = worker(Engine::Sglang);
  spec.endpoint.host = "fd00::1";
  const engine::Facts own = publishing("", 5557);
  EXPECT_EQ(plan_feed(spec, &own, 0).events, "tcp://[fd00::1]:5557");
  EXPECT_EQ(plan_feed(spec, &own, 2).events, "tcp://[fd00::1]:5559");
}

TEST(FeedPlanTest, SglangsDecodeWorkersHaveNoCacheUnlessSomebodySaysSo) {
  model::WorkerSpec spec = worker(Engine::Sglang, Role::Decode);
  const engine::Facts facts = publishing("", 5557);
  EXPECT_EQ(plan_feed(spec, &facts, 0), FeedPlan());
  spec.kv_feed = {.events = "tcp://10.0.0.1:5557", .replay = {}, .topic = {}};
  EXPECT_EQ(plan_feed(spec, &facts, 0).way, Way::Subscribe);
  EXPECT_EQ(plan_feed(worker(Engine::Sglang, Role::Prefill), &facts, 0).way, Way::Subscribe);
}

TEST(FeedPlanTest, TensorRtLlmIsAsked) {
  EXPECT_EQ(plan_feed(worker(Engine::Trtllm), nullptr, 0).way, Way::Poll);
  EXPECT_EQ(plan_feed(worker(Engine::Trtllm, Role::Prefill), nullptr, 5).way, Way::Poll);
  EXPECT_EQ(plan_feed(worker(Engine::Trtllm, Role::Decode), nullptr, 0).way, Way::None);
}

TEST(FeedPlanTest, BlocksAreAsSaidThenAsToldThenAsUsual) {
  model::WorkerSpec spec = worker();
  engine::Facts facts;
  EXPECT_EQ(block_shape(spec, nullptr).size, 16U);
  EXPECT_EQ(block_shape(spec, &facts).size, 16U);
  facts.block_size = 0;
  EXPECT_EQ(block_shape(spec, &facts).size, 16U);
  facts.block_size = 64;
  EXPECT_EQ(block_shape(spec, &facts).size, 64U);
  spec.block_size = 32;
  EXPECT_EQ(block_shape(spec, &facts).size, 32U);
  EXPECT_FALSE(block_shape(spec, &facts).bigram);
}

engine::Facts listing(Engine engine, std::vector<engine::Facts::Card> cards) {
  engine::Facts facts;
  facts.engine = engine;
  facts.models = std::move(cards);
  return facts;
}

TEST(FeedPlanTest, TellsWhichAdapterAModelIs) {
  const std::vector<engine::Facts::Card> cards{
      {.id = "demo", .parent = {}, .max_model_len = {}},
      {.id = "sql", .parent = "demo", .max_model_len = {}}};
  const engine::Facts vllm = listing(Engine::Vllm, cards);
  const engine::Facts sglang = listing(Engine::Sglang, cards);
  EXPECT_EQ(adapter_of(nullptr, "sql"), "");
  EXPECT_EQ(adapter_of(&vllm, "demo"), "");
  EXPECT_EQ(adapter_of(&vllm, "sql"), "sql");
  EXPECT_EQ(adapter_of(&vllm, "demo:sql"), "");
  EXPECT_EQ(adapter_of(&sglang, "demo"), "");
  EXPECT_EQ(adapter_of(&sglang, "demo:sql"), "sql");
  EXPECT_EQ(adapter_of(&sglang, "other:sql"), "");
  EXPECT_EQ(adapter_of(&sglang, "demo:tex"), "");
  EXPECT_TRUE(serves_adapters(sglang));
  EXPECT_FALSE(serves_adapters(listing(Engine::Sglang, {cards[0]})));
}

TEST(FeedPlanTest, OldReleasesAndSglangHideWhatSetsBlocksApart) {
  using model::Version;
  const auto hidden = [](Engine engine, std::optional<Version> version) {
    return hidden_by(engine, version);
  };
  EXPECT_EQ(hidden(Engine::Vllm, Version{0, 14, 1}), (Hidden{.salts = true}));
  EXPECT_EQ(hidden(Engine::Vllm, Version{0, 17, 0}), Hidden{});
  EXPECT_EQ(hidden(Engine::Vllm, {}), Hidden{});
  EXPECT_EQ(hidden(Engine::Sglang, Version{0, 5, 17}),
            (Hidden{.salts = true, .adapters = true, .keys = true}));
  EXPECT_EQ(hidden(Engine::Sglang, Version{0, 5, 18}), (Hidden{.adapters = true, .keys = true}));
  EXPECT_EQ(hidden(Engine::Sglang, Version{0, 5, 23}), (Hidden{.keys = true}));
  EXPECT_EQ(hidden(Engine::Sglang, {}), (Hidden{.keys = true}));
  EXPECT_EQ(hidden(Engine::Trtllm, Version{1, 0, 0}), Hidden{});
}

}  // namespace
}  // namespace baton::kvcache
