// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/workers.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

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

}  // namespace
}  // namespace baton::config
