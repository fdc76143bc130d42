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
threads: 4
shutdown_grace: 5s
timeouts:
  connect: 500ms
  first_byte: 1m
  idle: 2m
  client_header: 3s
  client_body: 4s
  client_idle: 1h
  client_write: 6s
  handoff_grace: 7s
limits:
  header_bytes: 32KiB
  body_bytes: 8MiB
  response_bytes: 1GiB
  connections: 100
  idle_upstreams: 0
log: {format: json, level: warning, requests: false}
models:
  - name: demo
    aliases: [small, demo-7b]
    policy: random
    prefill_policy: power_of_two
    decode_policy: least_loaded
    workers:
      - {url: "http://p1:9001", engine: sglang, role: prefill, bootstrap_port: 8998}
      - {url: "http://[::1]:9002/", engine: sglang, role: decode}
)");
  Config expected;
  expected.listen = {"0.0.0.0", 0};
  expected.admin = {"::1", 8081};
  expected.tls = {"/etc/baton/tls.crt", "/etc/baton/tls.key"};
  expected.api_keys = {"sk-one", "sk-two"};
  expected.threads = 4;
  expected.shutdown_grace = 5s;
  expected.timeouts = {500ms, 1min, 2min, 3s, 4s, 1h, 7s, 6s};
  expected.limits = {32 << 10, 8 << 20, 1 << 30, 100, 0};
  expected.log = {LogFormat::Json, LogLevel::Warning, false};
  expected.models = {
      {.name = "demo",
       .aliases = {"small", "demo-7b"},
       .policy = model::Policy::Random,
       .prefill_policy = model::Policy::PowerOfTwo,
       .decode_policy = model::Policy::LeastLoaded,
       .workers = {{{"p1", 9001}, model::Engine::Sglang, model::Role::Prefill, 8998},
                   {{"::1", 9002}, model::Engine::Sglang, model::Role::Decode, {}}}}};
  EXPECT_EQ(config, expected);
}

TEST(Parse, LeavesOutKeysAtTheirDefaults) {
  Config expected;
  expected.models = {model_with("demo", {worker_at("127.0.0.1", 9001)})};
  EXPECT_EQ(accepted(kFleet), expected);
  EXPECT_EQ(accepted(with_fleet("timeouts:\nlog: {}\n")), expected);  // sections without keys
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
  const auto directory = load(testing::TempDir(), {});
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().at(0).message, HasSubstr("directory"));
}

}  // namespace
}  // namespace baton::config
