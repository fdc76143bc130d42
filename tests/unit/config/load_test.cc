// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/load.h"

#include "unit/config/parsing.h"

#include <chrono>

namespace baton::config {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Parse, ReadsEveryKey) {
  const Config config = accepted(R"(
listen: 0.0.0.0:0
admin: "[::1]:8081"
tls: {certificate: /etc/baton/tls.crt, key: /etc/baton/tls.key}
api_keys: [sk-one, "sk-two"]
admin_keys: [sk-admin]
trust_routing_headers: true
trusted_sources: [10.0.0.0/8, "::1"]
client_handoff_fields: refuse
strip_client_fields: [priority]
strip_client_headers: [X-SGLExt-*, x-smg-routing-key]
response_headers: false
overload_status: 429
threads: 4
cpu_threads: 3
decisions: 7
shutdown_grace: 5s
restart_timeout: 6s
timeouts:
  connect: 500ms
  first_byte: 1m
  idle: 2m
  request: 8s
  client_header: 3s
  client_body: 4s
  client_idle: 1h
  client_write: 6s
  handoff_grace: 7s
limits:
  header_bytes: 32KiB
  body_bytes: 8MiB
  response_bytes: 1GiB
  memory: 512MiB
  connections: 100
  client_connections: 10
  client_requests: 20
  client_rate: 2.5
  client_burst: 30
  idle_upstreams: 0
  token_cache_bytes: 1MiB
log: {format: json, level: warning, requests: false}
etcd: {endpoints: ["http://e1:2379"], prefix: /fleet/, timeout: 1s, linger: 2s}
health: {interval: 1s, timeout: 2s, failures: 4, backoff: 5s, backoff_max: 6s}
canary: {idle: 8s, timeout: 9s, failures: 10}
probe: {enabled: true, self_test: true}
models:
  - name: demo
    aliases: [small, demo-7b]
    policy: random
    prefill_policy: power_of_two
    decode_policy: least_loaded
    disaggregation: required
    on_prefill_failure: fallback
    retries: 10
    migration: 3
    affinity: {ttl: 10m, sessions: 500, body_fields: [session_id, user]}
    tokenizer: /models/demo
    chat_template: /models/demo.jinja
    tokenize: engine
    send_token_ids: never
    workers:
      - {url: "http://p1:9001", engine: sglang, role: prefill, bootstrap_port: 8998}
      - {url: "http://[::1]:9002/", engine: sglang, role: decode}
)");
  Config expected;
  expected.listen = {"0.0.0.0", 0};
  expected.admin = {"::1", 8081};
  expected.tls = {"/etc/baton/tls.crt", "/etc/baton/tls.key"};
  expected.api_keys = {"sk-one", "sk-two"};
  expected.admin_keys = {"sk-admin"};
  expected.trust = {true, {*model::parse_network("10.0.0.0/8"), *model::parse_network("::1")}};
  expected.client_handoff_fields = ClientHandoffFields::Refuse;
  expected.strip_client_fields = {"priority"};
  expected.strip_client_headers = {"x-sglext-*", "x-smg-routing-key"};
  expected.response_headers = false;
  expected.overload_status = 429;
  expected.threads = 4;
  expected.cpu_threads = 3;
  expected.decisions = 7;
  expected.shutdown_grace = 5s;
  expected.restart_timeout = 6s;
  expected.timeouts = {500ms, 1min, 2min, 8s, 3s, 4s, 1h, 7s, 6s};
  expected.limits = {32 << 10, 8 << 20, 1 << 30, 100, 0, std::size_t{512} << 20U, 1 << 20};
  expected.client_limits = {10, 20, 2.5, 30};
  expected.log = {LogFormat::Json, LogLevel::Warning, false};
  Etcd& etcd = expected.etcd.emplace();
  etcd.endpoints = {{{"e1", 2379}, false}};
  etcd.prefix = "/fleet/";
  etcd.timeout = 1s;
  etcd.linger = 2s;
  expected.health = {1s, 2s, 4, 5s, 6s};
  expected.canary = {8s, 9s, 10};
  expected.probe = {true, true};
  Model& demo = expected.models.emplace_back();
  demo.name = "demo";
  demo.aliases = {"small", "demo-7b"};
  demo.policy = model::Policy::Random;
  demo.prefill_policy = model::Policy::PowerOfTwo;
  demo.decode_policy = model::Policy::LeastLoaded;
  demo.disaggregation = model::Disaggregation::Required;
  demo.on_prefill_failure = model::OnPrefillFailure::Fallback;
  demo.retries = 10;
  demo.migration = 3;
  demo.affinity = {10min, 500, {"session_id", "user"}};
  demo.tokens = {model::Tokenize::Engine, "/models/demo", "/models/demo.jinja",
                 model::SendTokenIds::Never};
  demo.workers = {worker_at("p1", 9001), worker_at("::1", 9002)};
  demo.workers[0].engine = demo.workers[1].engine = model::Engine::Sglang;
  demo.workers[0].role = model::Role::Prefill;
  demo.workers[0].bootstrap_port = 8998;
  demo.workers[1].role = model::Role::Decode;
  EXPECT_EQ(config, expected);
}

TEST(Parse, LeavesOutKeysAtTheirDefaults) {
  Config expected;
  expected.models = {model_with("demo", {worker_at("127.0.0.1", 9001)})};
  EXPECT_EQ(accepted(kFleet), expected);
  EXPECT_EQ(accepted(with_fleet("timeouts:\nlog: {}\n")), expected);  // sections without keys
}

TEST(Parse, WorkersMustComeFromSomewhere) {
  EXPECT_THAT(refused(""), says("baton.yaml: models", "use --worker NAME=URL"));
  EXPECT_THAT(refused("models: []"), says("baton.yaml: models", "nothing to serve"));
  EXPECT_TRUE(accepted("admin: 127.0.0.1:8081").models.empty());
  EXPECT_TRUE(accepted("models: []\netcd: {endpoints: ['http://h:1']}").models.empty());
  EXPECT_EQ(accepted("", {{"etcd.endpoints", "http://h:1"}}).etcd->endpoints.size(), 1U);
}

TEST(Parse, AWrongSourceIsNotAlsoReportedAsMissing) {
  EXPECT_THAT(refused("admin: 8081"), says("baton.yaml:1: admin", "has no port"));
  EXPECT_THAT(refused("models: demo"), says("baton.yaml:1: models", "must be a list"));
}

TEST(Parse, AdminKeysNeedAnAdminAddress) {
  EXPECT_THAT(refused(with_fleet("admin_keys: [sk-a]")),
              says("baton.yaml:1: admin_keys", "without an admin address"));
}

TEST(Parse, ImpossibleValuesAreRefused) {
  EXPECT_THAT(refused(with_fleet("threads: 5000")), says("baton.yaml:1: threads", "0 to 1024"));
  EXPECT_THAT(refused(with_fleet("limits: {header_bytes: 10}")),
              says("baton.yaml:1: limits.header_bytes", "1KiB to 16MiB"));
  EXPECT_THAT(refused(with_fleet("limits: {connections: 0}")),
              says("baton.yaml:1: limits.connections", "from 1"));
  EXPECT_THAT(refused(with_fleet("log: {format: xml}")),
              says("baton.yaml:1: log.format", "json or human"));
  EXPECT_THAT(refused(with_fleet("log: {level: loud}")),
              says("baton.yaml:1: log.level", "debug, info, warning or error"));
  EXPECT_THAT(refused(with_fleet("admin: 127.0.0.1:8080")),
              says("baton.yaml:1: admin", "same address as listen"));
}

TEST(Parse, ARateOfClientsIsNoneOrCanBeMet) {
  EXPECT_EQ(accepted(kFleet).limits.memory, std::nullopt);
  EXPECT_EQ(accepted(with_fleet("limits: {memory: auto}")).limits.memory, std::nullopt);
  EXPECT_EQ(accepted(with_fleet("limits: {memory: none}")).limits.memory, 0U);
  EXPECT_THAT(refused(with_fleet("limits: {memory: 8GB}")),
              says("baton.yaml:1: limits.memory", "or auto or none"));
  EXPECT_FALSE(accepted(kFleet).client_limits.any());
  EXPECT_FALSE(accepted(with_fleet("limits: {client_rate: 0}")).client_limits.any());
  EXPECT_TRUE(accepted(with_fleet("limits: {client_rate: 0.001}")).client_limits.any());
  EXPECT_THAT(refused(with_fleet("limits: {client_rate: 0.0009}")),
              says("baton.yaml:1: limits.client_rate", "neither 0 nor at least 0.001"));
  EXPECT_THAT(refused(with_fleet("limits: {client_rate: -1}")),
              says("baton.yaml:1: limits.client_rate", "from 0 to"));
  EXPECT_THAT(refused(with_fleet("limits: {client_burst: 5}")),
              says("baton.yaml:1: limits.client_burst", "without limits.client_rate"));
}

TEST(Parse, WhatClientsMayDoIsOneOfAFewWords) {
  EXPECT_THAT(refused(with_fleet("client_handoff_fields: keep")),
              says("baton.yaml:1: client_handoff_fields", "strip or refuse"));
  EXPECT_THAT(refused(with_fleet("overload_status: 500")),
              says("baton.yaml:1: overload_status", "as_reported, 429 or 503"));
  EXPECT_THAT(refused(with_fleet("trust_routing_headers: maybe")),
              says("baton.yaml:1: trust_routing_headers", "neither true nor false"));
  EXPECT_EQ(accepted(kFleet, {{"overload_status", "503"}}).overload_status, 503);
}

TEST(Parse, TrustedSourcesAreNetworksThatMeanSomething) {
  const std::string trust = "trust_routing_headers: true\n";
  EXPECT_THAT(refused(with_fleet(trust + "trusted_sources: [10.0.0.0/8, 10.0.0.1/8]")),
              says("baton.yaml:2: trusted_sources[1]", "without bits after the prefix"));
  EXPECT_THAT(refused(with_fleet(trust + "trusted_sources: [gateway]")),
              says("baton.yaml:2: trusted_sources[0]", "is not an address or a network"));
  EXPECT_THAT(refused(with_fleet(trust + "trusted_sources: []")),
              says("baton.yaml:2: trusted_sources", "is empty"));
  EXPECT_THAT(refused(with_fleet("trusted_sources: [10.0.0.1]")),
              says("baton.yaml:1: trusted_sources", "without trust_routing_headers: true"));
}

TEST(Parse, TlsNeedsBothItsFiles) {
  EXPECT_THAT(refused(with_fleet("tls: {certificate: a}")),
              says("baton.yaml:1: tls", "has no key"));
  EXPECT_THAT(refused(with_fleet("tls: {key: a}")),
              says("baton.yaml:1: tls", "has no certificate"));
  EXPECT_THAT(refused(with_fleet("tls: {key: '', certificate: a}")),
              says("baton.yaml:1: tls.key", "must name a file"));
}

TEST(Load, ReadsAFile) {
  const TemporaryFile file(kFleet);
  const auto config = load(file.path(), {});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->models.at(0).name, "demo");
}

TEST(Load, NamesTheFileInEachProblem) {
  const TemporaryFile file(with_fleet("threads: x"));
  const auto config = load(file.path(), {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().at(0).file, file.path());
  EXPECT_EQ(config.error().at(0).line, 1);
  EXPECT_EQ(config.error().at(0).path, "threads");
}

TEST(Load, SaysWhyAFileCannotBeRead) {
  const auto missing = load("/nonexistent/baton.yaml", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(
      missing.error().at(0).to_string(),
      "/nonexistent/baton.yaml: cannot be read: No such file or directory; check the path given "
      "to --config");
  const auto directory = load(test::TemporaryDirectory().path(), {});
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().at(0).message, HasSubstr("directory"));
}

}  // namespace
}  // namespace baton::config
