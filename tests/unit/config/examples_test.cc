// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/config/parsing.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace baton::config {
namespace {

using model::Engine;
using model::HandoffMode;
using model::Role;
using model::WorkerSpec;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

const std::filesystem::path kFolder = BATON_SOURCE_DIR "/examples";

// An example names the operator's file of API keys, which is read at once, so a file of ours takes its
// place. Tokenizers and certificates are read by those who use them, not here.
Config load_example(const std::string& name) {
  std::ifstream in(kFolder / name);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const TemporaryFile key_file("sk-example\n");
  std::vector<Override> overrides;
  if (text.find("\napi_keys_file: ") != text.npos) {
    overrides.push_back({"api_keys_file", key_file.path()});
  }
  return accepted(text, overrides);
}

auto workers_of(const Model& owner, Engine engine, Role role) {
  return std::ranges::count_if(owner.workers, [&](const WorkerSpec& worker) {
    return worker.engine == engine && worker.role == role;
  });
}

// Two workers of each of the two roles, all of them of this engine and mode.
void expect_two_and_two(const Model& owner, Engine engine, HandoffMode mode) {
  EXPECT_EQ(owner.workers.size(), 4U);
  EXPECT_EQ(workers_of(owner, engine, Role::Prefill), 2);
  EXPECT_EQ(workers_of(owner, engine, Role::Decode), 2);
  for (const WorkerSpec& worker : owner.workers) EXPECT_EQ(worker.handoff, mode) << worker.name;
  EXPECT_EQ(owner.tokens.by, model::Tokenize::Local);
}

TEST(Examples, AreAllTestedHere) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, UnorderedElementsAre("vllm.yaml", "sglang.yaml", "mixed.yaml"));
}

TEST(Examples, VllmPullsThroughNixlAndTellsOfItsCaches) {
  const Config config = load_example("vllm.yaml");
  ASSERT_EQ(config.models.size(), 1U);
  expect_two_and_two(config.models[0], Engine::Vllm, HandoffMode::NixlPull);
  for (const WorkerSpec& worker : config.models[0].workers) {
    if (worker.role != Role::Prefill) continue;
    ASSERT_TRUE(worker.kv_feed) << worker.name;
    EXPECT_EQ(worker.kv_feed->events, "tcp://" + worker.endpoint.host + ":5557");
    EXPECT_EQ(worker.kv_feed->replay, "tcp://" + worker.endpoint.host + ":5657");
  }
}

TEST(Examples, SglangMeetsAtTheBootstrapPort) {
  const Config config = load_example("sglang.yaml");
  ASSERT_EQ(config.models.size(), 1U);
  expect_two_and_two(config.models[0], Engine::Sglang, HandoffMode::Bootstrap);
  for (const WorkerSpec& worker : config.models[0].workers) {
    EXPECT_EQ(worker.bootstrap_port.has_value(), worker.role == Role::Prefill) << worker.name;
  }
}

TEST(Examples, MixedHasAModelForEachEngine) {
  const Config config = load_example("mixed.yaml");
  ASSERT_EQ(config.models.size(), 3U);
  const Model& vllm = config.models[0];
  EXPECT_EQ(workers_of(vllm, Engine::Vllm, Role::Prefill), 1);
  EXPECT_EQ(workers_of(vllm, Engine::Vllm, Role::Decode), 2);
  EXPECT_EQ(vllm.workers.size(), 3U);
  const Model& sglang = config.models[1];
  EXPECT_EQ(workers_of(sglang, Engine::Sglang, Role::Prefill), 1);
  EXPECT_EQ(workers_of(sglang, Engine::Sglang, Role::Decode), 1);
  EXPECT_EQ(workers_of(sglang, Engine::Sglang, Role::Aggregated), 1);
  EXPECT_EQ(sglang.workers.size(), 3U);
  const Model& trtllm = config.models[2];
  EXPECT_EQ(workers_of(trtllm, Engine::Trtllm, Role::Aggregated), 2);
  EXPECT_EQ(trtllm.workers.size(), 2U);
}

TEST(Examples, MixedQueuesByClassAndKeepsAnObjective) {
  const Config config = load_example("mixed.yaml");
  ASSERT_FALSE(config.models.empty());
  const Routing& routing = config.models[0].routing;
  std::vector<std::string> classes;
  for (const QueueClass& one : routing.queue.classes) {
    EXPECT_TRUE(one.queues()) << one.name;
    classes.push_back(one.name);
  }
  ASSERT_THAT(classes, ElementsAre("chat-short", "chat-long", "batch"));
  ASSERT_TRUE(routing.slo);
  EXPECT_TRUE(routing.slo->ttft && routing.slo->itl);
  EXPECT_FALSE(routing.slo->queue_late);
  const QueueClass& batch = routing.queue.classes[2];
  ASSERT_TRUE(batch.slo);
  EXPECT_TRUE(batch.slo->queue_late);
  // Late requests of this class wait behind all others, so they must be allowed to wait for so long.
  ASSERT_TRUE(batch.slo->ttft);
  EXPECT_GT(routing.queue.patience, *batch.slo->ttft);
}

TEST(Examples, MixedAsksClientsForKeysOverTlsAndLimitsThem) {
  const Config config = load_example("mixed.yaml");
  EXPECT_TRUE(config.tls);
  EXPECT_THAT(config.api_keys, ElementsAre("sk-example"));
  EXPECT_TRUE(config.client_limits.requests > 0 && config.client_limits.rate > 0);
  EXPECT_TRUE(config.trust.routing_headers);
  EXPECT_FALSE(config.trust.sources.empty());
}

}  // namespace
}  // namespace baton::config
