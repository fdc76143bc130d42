// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/workers.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::config {
namespace {

// This worker in line 5, and decode workers of every mode of vLLM so that the fleet is right.
std::string with(std::string_view worker) {
  return fmt::format(
      "threads: 1\nmodels:\n  - name: demo\n    workers:\n      - {{url: 'http://h:1', {}}}\n"
      "      - {{url: 'http://h:2', role: decode}}\n"
      "      - {{url: 'http://h:3', role: decode, handoff: nixl_push}}\n"
      "      - {{url: 'http://h:4', role: decode, handoff: mooncake}}\n",
      worker);
}

model::WorkerSpec read_worker(std::string_view worker) {
  const Config config = accepted(with(worker));
  return config.models.empty() ? model::WorkerSpec{} : config.models[0].workers.at(0);
}

TEST(Workers, NeedAUrl) {
  EXPECT_THAT(refused("models:\n  - name: demo\n    workers:\n      - {role: aggregated}"),
              says("baton.yaml:4: models[0].workers[0]", "has no url"));
}

TEST(Workers, SayEverythingOfThemselves) {
  const model::WorkerSpec spec = read_worker(
      "id: p-1, role: prefill, handoff: nixl_push, data_parallel_size: 8, taints: [h200, fast], "
      "topology: [zone=a, rack=r7], transfer_domain: rack, transfer_enforcement: preferred, "
      "transfer_weight: 0.5, nixl: {engine_id: e1, side_channel: '[::1]:5600', "
      "tensor_parallel_size: 4, pipeline_parallel_size: 2}");
  model::WorkerSpec expected = worker_at("h", 1);
  expected.name = "p-1";
  expected.role = model::Role::Prefill;
  expected.handoff = model::HandoffMode::NixlPush;
  expected.data_parallel_size = 8;
  expected.taints = {"h200", "fast"};
  expected.topology = {"zone=a", "rack=r7"};
  expected.transfer_domain = {"rack", "r7", model::Enforcement::Preferred, 0.5};
  expected.nixl = {"e1", {"::1", 5600}, 4, 2};
  EXPECT_EQ(spec, expected);
}

TEST(Workers, ATransferDomainIsRequiredWhereNothingElseIsSaid) {
  const auto domain = read_worker("role: prefill, topology: [rack=a=b], transfer_domain: rack");
  EXPECT_EQ(domain.transfer_domain,
            (model::TransferDomain{"rack", "a=b", model::Enforcement::Required, 0}));
}

TEST(Workers, AreInANamespaceAndMayNameTheirRun) {
  EXPECT_EQ(read_worker("role: aggregated").name_space, "default");
  EXPECT_EQ(read_worker("role: aggregated").instance, "");
  const model::WorkerSpec spec = read_worker("namespace: blue, instance: run-7");
  EXPECT_EQ(spec.name_space, "blue");
  EXPECT_EQ(spec.instance, "run-7");
  for (const std::string key : {"namespace", "instance"}) {
    EXPECT_THAT(refused(with(key + ": 'a b'")),
                says("baton.yaml:5: models[0].workers[0]." + key, "without blanks"));
  }
}

TEST(Workers, IdsStandInHeaders) {
  EXPECT_THAT(refused(with("id: 'a b'")),
              says("baton.yaml:5: models[0].workers[0].id", "without blanks"));
  EXPECT_THAT(refused(with("id: " + std::string(257, 'x'))),
              says("baton.yaml:5: models[0].workers[0].id", "longer than 256"));
}

TEST(Workers, HandOffInAModeOfTheirEngine) {
  EXPECT_THAT(refused(with("role: decode, handoff: bootstrap")),
              says("baton.yaml:5: models[0].workers[0].handoff",
                   "bootstrap is a mode of sglang, but the worker runs vllm; write nixl_pull"));
  EXPECT_THAT(refused(with("role: decode, handoff: nixl_pul")),
              says("baton.yaml:5: models[0].workers[0].handoff", "did you mean nixl_pull?"));
  EXPECT_THAT(refused(with("handoff: nixl_pull")),
              says("baton.yaml:5: models[0].workers[0].handoff", "only for prefill and decode"));
}

TEST(Workers, BootstrapPortsAreForPrefillWorkersThatAreMet) {
  EXPECT_EQ(read_worker("role: prefill, handoff: mooncake, bootstrap_port: 8998").bootstrap_port,
            8998);
  for (const std::string worker :
       {"role: aggregated", "role: prefill", "role: decode, handoff: mooncake"}) {
    EXPECT_THAT(
        refused(with(worker + ", bootstrap_port: 8998")),
        says("baton.yaml:5: models[0].workers[0].bootstrap_port", "only for SGLang prefill"));
  }
  EXPECT_THAT(refused(with("role: prefill, handoff: mooncake, bootstrap_port: 70000")),
              says("baton.yaml:5: models[0].workers[0].bootstrap_port", "1 to 65535"));
}

TEST(Workers, RanksAreBounded) {
  EXPECT_EQ(read_worker("data_parallel_size: 1024").data_parallel_size, 1024U);
  for (const char* size : {"0", "1025", "x"}) {
    EXPECT_THAT(refused(with(fmt::format("data_parallel_size: {}", size))),
                says("baton.yaml:5: models[0].workers[0].data_parallel_size", "1 to 1024"));
  }
}

TEST(Workers, TaintsAndPlacesAreListsOfTheirOwnShape) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  EXPECT_THAT(refused(with("taints: h200")), says(at + ".taints", "must be a list"));
  EXPECT_THAT(refused(with("taints: [a, a]")), says(at + ".taints[1]", "stands twice"));
  EXPECT_THAT(refused(with("taints: [baton.topology/rack=r7]")),
              says(at + ".taints[0]", "is said by topology: [rack=r7]"));
  std::string many = "taints: [";
  for (int i = 0; i < 257; ++i) many += fmt::format("t{},", i);
  EXPECT_THAT(refused(with(many + "]")), says(at + ".taints", "more than 256 entries"));
  for (const char* place : {"rack", "=r7", "rack="}) {
    EXPECT_THAT(refused(with(fmt::format("topology: ['{}']", place))),
                says(at + ".topology[0]", "must be domain=value"));
  }
  EXPECT_THAT(refused(with("topology: [rack=a, rack=b]")),
              says(at + ".topology", "keep rack=a or rack=b"));
}

TEST(Workers, ATransferDomainMakesSense) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  EXPECT_THAT(refused(with("role: prefill, topology: [zone=a], transfer_domain: rack")),
              says(at + ".transfer_domain", "add rack=… to it"));
  EXPECT_THAT(refused(with("role: decode, topology: [rack=a], transfer_domain: rack")),
              says(at + ".transfer_domain", "only for prefill workers"));
  const std::string rack = "role: prefill, topology: [rack=a], transfer_domain: rack, ";
  EXPECT_THAT(refused(with(rack + "transfer_enforcement: preferred")),
              says(at + ".transfer_enforcement", "needs a transfer_weight"));
  EXPECT_THAT(refused(with(rack + "transfer_weight: 1")),
              says(at + ".transfer_weight", "only for transfer_enforcement: preferred"));
  EXPECT_THAT(refused(with("role: prefill, transfer_enforcement: required")),
              says(at + ".transfer_enforcement", "has no transfer_domain"));
  for (const char* weight : {"0", "-1", "101", "nan", "inf", "1e1", "x", "1 "}) {
    EXPECT_THAT(refused(with(fmt::format("{}transfer_enforcement: preferred, transfer_weight: '{}'",
                                         rack, weight))),
                says(at + ".transfer_weight", "above 0 and up to 100"));
  }
}

TEST(Workers, NixlIsForPushOnlyAndWhole) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  const std::string nixl = "nixl: {engine_id: e, side_channel: 'h:5600'}";
  EXPECT_THAT(refused(with("role: prefill, " + nixl)),
              says(at + ".nixl", "only for workers with handoff: nixl_push"));
  const std::string push = "role: prefill, handoff: nixl_push, ";
  EXPECT_EQ(read_worker(push + nixl).nixl, (model::NixlPeer{"e", {"h", 5600}, 1, 1}));
  EXPECT_THAT(refused(with(push + "nixl: {engine_id: e}")),
              says(at + ".nixl", "has no side_channel"));
  EXPECT_THAT(refused(with(push + "nixl: {engine_id: e, side_channel: 'http://h:1'}")),
              says(at + ".nixl.side_channel", "without a scheme"));
  EXPECT_THAT(refused(with(push + "nixl: {engine_id: e, side_channel: 'h:0'}")),
              says(at + ".nixl.side_channel", "from 1 to 65535"));
  EXPECT_THAT(refused(with(push + "nixl: 5600")), says(at + ".nixl", "must be a map"));
}

TEST(Workers, KvEventsNameTheirEndpoints) {
  const model::WorkerSpec spec = read_worker(
      "kv_events: 'tcp://h:5557', kv_replay: 'tcp://[::1]:5657', kv_topic: kv, block_size: 64");
  EXPECT_EQ(spec.kv_feed, (model::KvFeed{"tcp://h:5557", "tcp://[::1]:5657", "kv"}));
  EXPECT_EQ(spec.block_size, 64U);
  for (const std::string_view bound : {"tcp://*:5557", "tcp://0.0.0.0:5557", "ipc:///run/kv"}) {
    EXPECT_EQ(read_worker(fmt::format("kv_events: '{}'", bound)).kv_feed,
              (model::KvFeed{std::string(bound), "", ""}));
  }
}

TEST(Workers, KvEventsCanBeOffOrUnsaid) {
  EXPECT_EQ(read_worker("role: prefill").kv_feed, std::nullopt);
  EXPECT_EQ(read_worker("kv_events: off").kv_feed, model::KvFeed());
}

TEST(Workers, WrongKvEventsAreRefused) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  EXPECT_THAT(refused(with("kv_events: 'h:5557'")),
              says(at + ".kv_events", "write tcp://host:port or ipc:///path"));
  EXPECT_THAT(refused(with("kv_events: 'tcp://h'")), says(at + ".kv_events", "port"));
  EXPECT_THAT(refused(with("kv_events: 'tcp://h:0'")), says(at + ".kv_events", "0"));
  EXPECT_THAT(refused(with("kv_replay: 'tcp://h:1'")), says(at + ".kv_replay", "no kv_events"));
  EXPECT_THAT(refused(with("kv_events: off, kv_topic: x")), says(at + ".kv_topic", "no kv_events"));
  EXPECT_THAT(refused(with("block_size: 0")), says(at + ".block_size", "1"));
  EXPECT_THAT(refused(with("data_parallel_size: 2, kv_events: 'ipc:///x'")),
              says(at + ".kv_events", "several ranks"));
}

TEST(Workers, EachNumberTakesItsEndsAndNothingBeyond) {
  struct Count {
    std::string_view key;
    std::string_view most;
    std::string_view above;
  };
  for (const auto& [key, most, above] :
       {Count{"data_parallel_size", "1024", "1025"}, Count{"block_size", "65536", "65537"},
        Count{"kv_blocks", "1000000000000", "1000000000001"},
        Count{"max_batched_tokens", "1000000000000", "1000000000001"}}) {
    read_worker(fmt::format("{}: 1", key));
    read_worker(fmt::format("{}: {}", key, most));
    for (const std::string_view text : {std::string_view("0"), above, std::string_view("-1")}) {
      EXPECT_THAT(refused(with(fmt::format("{}: {}", key, text))),
                  testing::ElementsAre(
                      fmt::format("baton.yaml:5: models[0].workers[0].{}: '{}' is not a whole "
                                  "number from 1 to {}",
                                  key, text, most)));
    }
  }
}

TEST(Workers, SizesOfCachesAreRead) {
  const model::WorkerSpec spec =
      read_worker("block_size: 32, kv_blocks: 4000, max_batched_tokens: 16384");
  EXPECT_EQ(spec.block_size, 32U);
  EXPECT_EQ(spec.kv_blocks, 4000U);
  EXPECT_EQ(spec.max_batched_tokens, 16384U);
  EXPECT_EQ(read_worker("role: aggregated").kv_blocks, std::nullopt);
}

TEST(Workers, EachModeBelongsToOneEngine) {
  for (const auto& [engine, mode] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"vllm", "nixl_pull"},
                                                                  {"vllm", "nixl_push"},
                                                                  {"vllm", "mooncake"},
                                                                  {"sglang", "bootstrap"},
                                                                  {"trtllm", "context_first"},
                                                                  {"trtllm", "generation_first"}}) {
    for (const std::string_view other : {"vllm", "sglang", "trtllm"}) {
      const std::string text = fmt::format(
          "models: [{{name: a, workers: [{{url: 'http://h:1', role: decode, engine: {}, "
          "handoff: {}}}]}}]",
          other, mode);
      if (other == engine) {
        EXPECT_EQ(to_string(*accepted(text).models.at(0).workers.at(0).handoff), mode);
        continue;
      }
      EXPECT_THAT(refused(text),
                  says("baton.yaml:1: models[0].workers[0].handoff",
                       fmt::format("{} is a mode of {}, but the worker runs {}; write ", mode,
                                   engine, other)));
    }
  }
}

TEST(Workers, RolesAndEnginesAreKnownByName) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  EXPECT_THAT(refused(with("engine: vlm")),
              says(at + ".engine", "unknown 'vlm'; did you mean vllm?"));
  EXPECT_THAT(refused(with("engine: tgi")),
              says(at + ".engine", "unknown 'tgi'; write one of vllm, sglang, trtllm"));
  EXPECT_THAT(refused(with("role: both")),
              says(at + ".role", "unknown 'both'; write one of prefill, decode, aggregated"));
  EXPECT_THAT(
      refused(with("role: prefill, topology: [rack=a], transfer_domain: rack, "
                   "transfer_enforcement: soft")),
      says(at + ".transfer_enforcement", "unknown 'soft'; write one of required, preferred"));
}

TEST(Workers, MayHaveManyTaintsAndPlaces) {
  std::string taints = "taints: [";
  for (int i = 0; i < 256; ++i) taints += fmt::format("t{},", i);
  EXPECT_EQ(read_worker(taints + "]").taints.size(), 256U);
  // A place of two domains is two places; the same twice is reported where it stands.
  EXPECT_THAT(refused(with("topology: [rack=a, zone=b, rack=a]")),
              says("baton.yaml:5: models[0].workers[0].topology[2]", "'rack=a' stands twice"));
  EXPECT_THAT(read_worker("topology: ['rack=a=b', zone=c]").topology,
              testing::ElementsAre("rack=a=b", "zone=c"));
}

TEST(Workers, ATaintIsAName) {
  const std::string at = "baton.yaml:5: models[0].workers[0].taints[0]";
  EXPECT_THAT(refused(with("taints: ['']")), says(at, "must not be empty"));
  EXPECT_THAT(refused(with("taints: [' a']")), says(at, "blanks at its ends"));
  EXPECT_THAT(refused(with("taints: [[a]]")), says(at, "must be a single value"));
  EXPECT_THAT(read_worker("taints: [baton.topology]").taints,
              testing::ElementsAre("baton.topology"));
}

TEST(Workers, FeedsOfSeveralRanksHavePorts) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  EXPECT_EQ(read_worker("data_parallel_size: 2, kv_events: 'tcp://h:1'").data_parallel_size, 2U);
  EXPECT_EQ(read_worker("data_parallel_size: 2, kv_events: off").kv_feed, model::KvFeed());
  EXPECT_THAT(refused(with("data_parallel_size: 2, kv_events: 'tcp://h:1', "
                           "kv_replay: 'ipc:///run/replay'")),
              says(at + ".kv_replay", "cannot be ipc:// for a worker with several ranks"));
}

TEST(Workers, AReplayNeedsEventsThatAreOn) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  for (const std::string events : {"", "kv_events: off, "}) {
    EXPECT_THAT(refused(with(events + "kv_replay: 'tcp://h:1', kv_topic: x")),
                testing::ElementsAre(testing::HasSubstr(at + ".kv_replay: has no kv_events"),
                                     testing::HasSubstr(at + ".kv_topic: has no kv_events")));
  }
}

TEST(Workers, WhatNixlNeedsIsNamedOneByOne) {
  const std::string at = "baton.yaml:5: models[0].workers[0]";
  EXPECT_THAT(refused(with("role: prefill, handoff: nixl_push, nixl: {}")),
              testing::ElementsAre(testing::HasSubstr(at + ".nixl: has no engine_id"),
                                   testing::HasSubstr(at + ".nixl: has no side_channel")));
  for (const std::string_view key : {"tensor_parallel_size", "pipeline_parallel_size"}) {
    const std::string nixl = fmt::format(
        "role: prefill, handoff: nixl_push, nixl: {{engine_id: e, side_channel: 'h:1', "
        "{}: 1025}}",
        key);
    EXPECT_THAT(refused(with(nixl)), says(fmt::format("{}.nixl.{}", at, key),
                                          "'1025' is not a whole number from 1 to "
                                          "1024"));
  }
}

TEST(Workers, AWrongUrlIsNotAlsoAMissingOne) {
  EXPECT_THAT(refused("models: [{name: a, workers: [{url: ''}]}]"),
              says("baton.yaml:1: models[0].workers[0].url", "'' must be http://host:port"));
  EXPECT_THAT(refused("models: [{name: a, workers: [{url: [x]}]}]"),
              says("baton.yaml:1: models[0].workers[0].url", "must be a single value"));
}

}  // namespace
}  // namespace baton::config
