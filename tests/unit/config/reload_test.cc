// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/reload.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <map>

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

}  // namespace
}  // namespace baton::config
