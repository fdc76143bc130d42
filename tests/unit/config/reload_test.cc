// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/reload.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace baton::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NeedsRestart, IsNothingWhereNothingElseChanged) {
  const Config before = accepted(kFleet);
  EXPECT_THAT(needs_restart(before, before), IsEmpty());
  EXPECT_THAT(needs_restart(before, accepted("models: [{name: other, retries: 1}]")), IsEmpty());
}

TEST(NeedsRestart, NamesEveryKeyOutsideModels) {
  const TemporaryFile secret("s3cret");
  const TemporaryFile other_secret("an0ther");
  const std::string base = fmt::format(
      "trtllm: {{auth_key_file: {0}}}\nadmin: 127.0.0.1:1\napi_keys: [a]\nadmin_keys: "
      "[a]\ntrust_routing_headers: true\n"
      "tls: {{certificate: a, key: a}}\ncanary: {{idle: 1h}}\nkv_index: {{snapshot: a}}\n"
      "limits: {{client_rate: 1}}\netcd:\n  "
      "endpoints: ['https://h:1']\n"
      "  user: a\n  password_file: {0}\n  certificate: a\n  key: a\n",
      secret.path());
  const Config before = accepted(base);
  // Values unlike the defaults and unlike those above, by type and where that does not do.
  const std::map<std::string_view, std::string> by_type{
      {"address", "127.0.0.1:2"},
      {"string", "/other/"},
      {"integer", "7"},
      {"duration", "7s"},
      {"size", "7KiB"},
      {"number", "7"},
      {"size, auto or none", "7KiB"},
  };
  const std::map<std::string_view, std::string> by_path{
      {"trust_routing_headers", "false"},
      {"response_headers", "false"},
      {"client_handoff_fields", "refuse"},
      {"overload_status", "429"},
      {"log.format", "json"},
      {"log.level", "error"},
      {"log.requests", "false"},
      {"probe.enabled", "false"},
      {"probe.self_test", "true"},
      {"kv_index.source", "events"},
      {"kv_index.blocks", "7000"},
      {"etcd.endpoints", "https://h:2"},
      {"etcd.password_file", other_secret.path()},
      {"trtllm.auth_key_file", other_secret.path()},
      {"trtllm.auth_payload", "params"},
      {"api_keys_file", other_secret.path()},
      {"admin_keys_file", other_secret.path()},
  };
  const std::map<std::string_view, std::string> reported_as{{"api_keys_file", "api_keys"},
                                                            {"admin_keys_file", "admin_keys"}};
  for (const Key& key : keys()) {
    if (key.flag.empty()) continue;
    const auto special = by_path.find(key.path);
    const std::string value = special == by_path.end() ? by_type.at(key.type) : special->second;
    const auto other = reported_as.find(key.path);
    EXPECT_THAT(needs_restart(before, accepted(base, {{std::string(key.path), value}})),
                ElementsAre(other == reported_as.end() ? key.path : other->second));
  }
  // The lists without a flag.
  Config after = before;
  after.api_keys = {"b"};
  after.trust.sources = {*model::parse_network("10.0.0.0/8")};
  after.strip_client_fields = {"priority"};
  after.strip_client_headers = {"x-sglext-*"};
  EXPECT_THAT(
      needs_restart(before, after),
      ElementsAre("api_keys", "trusted_sources", "strip_client_fields", "strip_client_headers"));
}

TEST(NeedsRestart, ASectionThatComesIsNamedByItsKeys) {
  const Config before = accepted(kFleet);
  const Config after = accepted(with_fleet("etcd: {endpoints: ['http://h:1'], linger: 1s}"));
  EXPECT_THAT(needs_restart(before, after), ElementsAre("etcd.endpoints", "etcd.linger"));
  EXPECT_THAT(needs_restart(after, before), ElementsAre("etcd.endpoints", "etcd.linger"));
}

// What a key is set to, so that it differs from its default.
const std::vector<std::pair<std::string_view, std::string_view>>& changes() {
  static const std::vector<std::pair<std::string_view, std::string_view>> all{
      {"listen", "127.0.0.1:7"},
      {"admin", "127.0.0.1:8"},
      {"threads", "7"},
      {"decisions", "7"},
      {"cpu_threads", "7"},
      {"shutdown_grace", "7s"},
      {"restart_timeout", "7s"},
      {"client_handoff_fields", "refuse"},
      {"response_headers", "false"},
      {"overload_status", "503"},
      {"timeouts.connect", "7s"},
      {"timeouts.request", "7s"},
      {"timeouts.client_write", "7s"},
      {"limits.header_bytes", "7KiB"},
      {"limits.memory", "7KiB"},
      {"limits.client_rate", "7"},
      {"log.level", "error"},
      {"health.interval", "7s"},
      {"canary.idle", "7s"},
      {"probe.enabled", "false"},
      {"kv_index.blocks", "7000"},
      {"kv_index.snapshot", "/s"},
  };
  return all;
}

// Any set of changes is reported as that set, whichever side has them.
TEST(NeedsRestart, NamesExactlyWhatDiffers) {
  std::mt19937 random(13);
  for (int round = 0; round < 200; ++round) {
    std::vector<Override> before;
    std::vector<Override> after;
    std::vector<std::string_view> expected;
    for (const auto& [path, value] : changes()) {
      const std::uint32_t sides = random() % 4;  // neither, one, the other, both
      if ((sides & 1U) != 0) before.push_back({std::string(path), std::string(value)});
      if ((sides & 2U) != 0) after.push_back({std::string(path), std::string(value)});
      if (sides == 1 || sides == 2) expected.push_back(path);
    }
    const Config a = accepted(kFleet, before);
    const Config b = accepted(kFleet, after);
    EXPECT_THAT(needs_restart(a, b), testing::UnorderedElementsAreArray(expected));
    EXPECT_EQ(needs_restart(a, b), needs_restart(b, a));
  }
}

TEST(NeedsRestart, IsNothingForAnyChangeOfModels) {
  const Config before = accepted(kFleet);
  for (const char* after : {
           "models: [{name: demo}]\nadmin: 127.0.0.1:1",
           "models: [{name: demo, policy: random, retries: 0, migration: 1}]",
           "models: [{name: demo, affinity: {ttl: 1m}}]",
           "models: [{name: demo, queue: {busy_tokens: 5}, slo: {ttft: 1s}}]",
           "models: [{name: demo, tokenizer: /t}]",
           "models: [{name: a}, {name: b, aliases: [c], adapters: [d]}]",
           "models: [{name: demo, workers: [{url: 'http://other:1', taints: [a]}]}]",
       }) {
    Config changed = accepted(after);
    changed.admin = before.admin;
    EXPECT_THAT(needs_restart(before, changed), IsEmpty()) << after;
  }
}

TEST(NeedsRestart, SpellingIsNoChange) {
  const Config a = accepted(
      with_fleet("listen: LOCALHOST:80\ntimeouts: {idle: 60s}\nlimits: {body_bytes: 1024KiB}\n"
                 "etcd: {endpoints: ['http://H:1/']}"));
  const Config b =
      accepted(with_fleet("listen: localhost:80\ntimeouts: {idle: 1m}\nlimits: {body_bytes: 1MiB}\n"
                          "etcd: {endpoints: ['http://h:1']}"));
  EXPECT_THAT(needs_restart(a, b), IsEmpty());
}

TEST(NeedsRestart, SecretsAreComparedByWhatTheirFilesHold) {
  const TemporaryFile one("s3cret\n");
  const TemporaryFile same("s3cret");
  const TemporaryFile other("an0ther");
  const auto with_password = [](const TemporaryFile& file) {
    return accepted(fmt::format("etcd: {{endpoints: ['http://h:1'], user: u, password_file: {}}}",
                                file.path()));
  };
  EXPECT_THAT(needs_restart(with_password(one), with_password(same)), IsEmpty());
  EXPECT_THAT(needs_restart(with_password(one), with_password(other)),
              ElementsAre("etcd.password_file"));
}

TEST(NeedsRestart, KeysMayMoveBetweenListAndFile) {
  const TemporaryFile file("sk-b\n");
  const Config listed = accepted(with_fleet("api_keys: [sk-a, sk-b]"));
  const Config moved = accepted(with_fleet("api_keys: [sk-a]\napi_keys_file: " + file.path()));
  EXPECT_THAT(needs_restart(listed, moved), IsEmpty());
  EXPECT_THAT(needs_restart(listed, accepted(with_fleet("api_keys: [sk-b, sk-a]"))),
              ElementsAre("api_keys"));
}

TEST(NeedsRestart, TlsThatComesIsNamedByItsFiles) {
  const Config plain = accepted(kFleet);
  const Config tls = accepted(with_fleet("tls: {certificate: c, key: k}"));
  EXPECT_THAT(needs_restart(plain, tls), ElementsAre("tls.certificate", "tls.key"));
  EXPECT_THAT(needs_restart(
                  tls, accepted(with_fleet("tls: {certificate: c, key: k, ciphers: AES128-SHA}"))),
              ElementsAre("tls.ciphers"));
}

}  // namespace
}  // namespace baton::config
