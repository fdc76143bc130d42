// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// What may stand in each key, and what its author is told otherwise: at its line of the file, and at
// its flag.
#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace baton::config {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// The key's value in a file, each map on a line of its own, and the line of the value.
struct Placed {
  std::string text;
  int line = 1;
};

Placed placed(std::string_view path, std::string_view value) {
  Placed result;
  for (auto dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
    result.text += fmt::format("{:{}}{}:\n", "", 2 * (result.line - 1), path.substr(0, dot));
    path.remove_prefix(dot + 1);
    ++result.line;
  }
  result.text += fmt::format("{:{}}{}: {}\n", "", 2 * (result.line - 1), path, value);
  return result;
}

std::vector<Key> keys_of_type(std::string_view type) {
  std::vector<Key> found;
  for (const Key& key : keys()) {
    if (key.type == type && key.path.find('[') == key.path.npos) found.push_back(key);
  }
  return found;
}

// The value is refused with this message, alone or beside what the key lacks around it.
void expect_refused(const Key& key, std::string_view value, std::string_view message) {
  const Placed file = placed(key.path, fmt::format("'{}'", value));
  EXPECT_THAT(refused(with_fleet(file.text)),
              testing::Contains(StartsWith(
                  fmt::format("baton.yaml:{}: {}: '{}' {}", file.line, key.path, value, message))));
  EXPECT_THAT(refused(kFleet, {{std::string(key.path), std::string(value)}}),
              testing::Contains(
                  StartsWith(fmt::format("command line: {}: '{}' {}", key.flag, value, message))));
}

TEST(KeyValues, NoDurationIsWithoutUnitNegativeOrLongerThanADay) {
  const std::vector<Key> durations = keys_of_type("duration");
  ASSERT_GT(durations.size(), 15U);
  for (const Key& key : durations) {
    expect_refused(key, "5", "has no unit; write 5ms, 5s or 5m");
    expect_refused(key, "-5s", "must ");
    expect_refused(key, "25h", "is longer than a day");
    expect_refused(key, "soon", "is not a duration");
  }
}

TEST(KeyValues, OnlyDurationsThatCanMeanNothingMayBeZero) {
  std::vector<std::string_view> zero_allowed;
  for (const Key& key : keys_of_type("duration")) {
    const auto config = parse(with_fleet(placed(key.path, "0s").text), "baton.yaml",
                              std::vector<Override>{{"canary.idle", "1s"},
                                                    {"kv_index.snapshot", "/s"},
                                                    {"etcd.endpoints", "http://h:1"},
                                                    {std::string(key.path), "0s"}});
    if (config) {
      zero_allowed.push_back(key.path);
    } else {
      EXPECT_EQ(config.error().at(0).message, "'0s' must be above zero") << key.path;
    }
  }
  EXPECT_THAT(zero_allowed, testing::UnorderedElementsAre("timeouts.request", "etcd.linger",
                                                          "kv_index.prediction_ttl"));
}

TEST(KeyValues, NoSizeIsZeroOrInUnitsOfThousands) {
  std::vector<Key> sizes = keys_of_type("size");
  ASSERT_GT(sizes.size(), 3U);
  for (const Key& key : sizes) {
    expect_refused(key, "0", "must be above zero");
    expect_refused(key, "8MB", "is not a size; write bytes (65536) or 64KiB, 8MiB, 1GiB");
    expect_refused(key, "1025GiB", "is more than 1024GiB");
  }
}

TEST(KeyValues, BooleansAreTrueOrFalse) {
  for (const Key& key : keys_of_type("boolean")) {
    expect_refused(key, "yes", "is neither true nor false");
    expect_refused(key, "1", "is neither true nor false");
  }
}

TEST(KeyValues, AddressesHaveAHostAndAPort) {
  for (const Key& key : keys_of_type("address")) {
    EXPECT_THAT(refused(with_fleet(placed(key.path, "localhost").text)),
                says(fmt::format("baton.yaml:1: {}", key.path), "has no port; write host:port"));
    EXPECT_THAT(refused(with_fleet(placed(key.path, "localhost:65536").text)),
                says(fmt::format("baton.yaml:1: {}", key.path), "port '65536' is not a number"));
  }
}

TEST(KeyValues, EveryKeyNeedsAValueOfItsShape) {
  for (const Key& key : keys()) {
    if (key.path.find('[') != key.path.npos) continue;
    const Placed nothing = placed(key.path, "");
    if (key.path != "models") {
      EXPECT_THAT(refused(with_fleet(nothing.text)),
                  testing::Contains(
                      fmt::format("baton.yaml:{}: {}: has no value; give it one or remove the key",
                                  nothing.line, key.path)));
    }
    if (key.type == "list") continue;
    const Placed map = placed(key.path, "{a: 1}");
    EXPECT_THAT(
        refused(with_fleet(map.text)),
        testing::Contains(fmt::format(
            "baton.yaml:{}: {}: must be a single value, not a list or a map", map.line, key.path)));
  }
}

struct Bounds {
  std::string_view path;
  std::size_t least;
  std::size_t most;
  std::function<std::size_t(const Config&)> value;
};

// By hand, from docs/configuration.md and the limits that the code must hold.
const std::vector<Bounds>& bounds() {
  static const std::vector<Bounds> all{
      {"threads", 0, 1024, [](const Config& c) { return c.threads; }},
      {"cpu_threads", 0, 1024, [](const Config& c) { return c.cpu_threads; }},
      {"decisions", 0, 1'000'000, [](const Config& c) { return c.decisions; }},
      {"limits.connections", 1, 10'000'000, [](const Config& c) { return c.limits.connections; }},
      {"limits.idle_upstreams", 0, 100'000,
       [](const Config& c) { return c.limits.idle_upstreams; }},
      {"limits.client_connections", 0, 1'000'000,
       [](const Config& c) { return c.client_limits.connections; }},
      {"limits.client_requests", 0, 1'000'000,
       [](const Config& c) { return c.client_limits.requests; }},
      {"limits.client_burst", 0, 1'000'000, [](const Config& c) { return c.client_limits.burst; }},
      {"health.failures", 1, 1000, [](const Config& c) { return c.health.failures; }},
      {"canary.failures", 1, 1000, [](const Config& c) { return c.canary.failures; }},
      {"kv_index.blocks", 1000, 1'000'000'000, [](const Config& c) { return c.kv_index.blocks; }},
  };
  return all;
}

TEST(KeyValues, EveryWholeNumberOutsideModelsIsBounded) {
  std::vector<std::string_view> here;
  std::vector<std::string_view> there;
  for (const Bounds& one : bounds()) here.push_back(one.path);
  for (const Key& key : keys_of_type("integer")) there.push_back(key.path);
  EXPECT_THAT(here, testing::UnorderedElementsAreArray(there));
}

TEST(KeyValues, WholeNumbersTakeTheirEndsAndNothingBeyond) {
  const std::vector<Override> around{{"limits.client_rate", "1"}, {"canary.idle", "1s"}};
  for (const auto& [path, least, most, value] : bounds()) {
    for (const std::size_t end : {least, most}) {
      EXPECT_EQ(value(accepted(with_fleet(placed(path, fmt::to_string(end)).text), around)), end)
          << path;
    }
    std::vector<std::string> beyond{fmt::to_string(most + 1), "1.5", "-1", "many"};
    if (least > 0) beyond.push_back(fmt::to_string(least - 1));
    for (const std::string& text : beyond) {
      const Placed file = placed(path, text);
      EXPECT_THAT(refused(with_fleet(file.text), around),
                  ElementsAre(fmt::format("baton.yaml:{}: {}: '{}' is not a whole number from {} "
                                          "to {}",
                                          file.line, path, text, least, most)));
    }
  }
}

TEST(KeyValues, HeadersHaveRoomForOrdinaryOnes) {
  EXPECT_EQ(accepted(with_fleet("limits: {header_bytes: 1024}")).limits.header_bytes, 1024U);
  EXPECT_EQ(accepted(with_fleet("limits: {header_bytes: 16MiB}")).limits.header_bytes, 16U << 20U);
  for (const char* text : {"1023", "16385KiB", "1GiB"}) {
    EXPECT_THAT(refused(with_fleet(fmt::format("limits: {{header_bytes: {}}}", text))),
                ElementsAre(fmt::format(
                    "baton.yaml:1: limits.header_bytes: '{}' is not from 1KiB to 16MiB", text)));
  }
}

TEST(KeyValues, ARateMayBeAMillionASecond) {
  EXPECT_EQ(accepted(with_fleet("limits: {client_rate: 1000000}")).client_limits.rate, 1e6);
  for (const char* text : {"1000001", "-0.5", "fast", "1e3"}) {
    EXPECT_THAT(
        refused(with_fleet(fmt::format("limits: {{client_rate: {}}}", text))),
        ElementsAre(fmt::format(
            "baton.yaml:1: limits.client_rate: '{}' is not a number from 0 to 1000000", text)));
  }
}

TEST(KeyValues, WordsAreNamedWhereAnotherIsWritten) {
  const std::vector<std::array<std::string_view, 3>> all{
      {"client_handoff_fields", "pass", "unknown 'pass'; write strip or refuse"},
      {"overload_status", "502", "unknown '502'; write as_reported, 429 or 503"},
      {"log.format", "text", "unknown 'text'; write json or human"},
      {"log.level", "trace", "unknown 'trace'; write debug, info, warning or error"},
      {"trtllm.auth_payload", "none", "unknown 'none'; write fields or params"},
      {"kv_index.source", "auot", "unknown 'auot'; did you mean auto?"},
      {"kv_index.source", "redis", "unknown 'redis'; write one of auto, events, decisions, off"},
      {"limits.memory", "half",
       "'half' is not a size; write bytes (65536) or 64KiB, 8MiB, 1GiB, or auto or none"},
  };
  for (const auto& [path, value, message] : all) {
    const Placed file = placed(path, value);
    EXPECT_THAT(refused(with_fleet(file.text)),
                ElementsAre(fmt::format("baton.yaml:{}: {}: {}", file.line, path, message)));
  }
}

TEST(KeyValues, WordsMeanTheirValues) {
  EXPECT_EQ(accepted(with_fleet("overload_status: as_reported")).overload_status, 0);
  EXPECT_EQ(accepted(with_fleet("overload_status: 503")).overload_status, 503);
  EXPECT_EQ(accepted(with_fleet("client_handoff_fields: strip")).client_handoff_fields,
            ClientHandoffFields::Strip);
  EXPECT_EQ(accepted(with_fleet("log: {format: human}")).log.format, LogFormat::Human);
  for (const auto& [text, level] : {std::pair{"debug", LogLevel::Debug},
                                    {"info", LogLevel::Info},
                                    {"warning", LogLevel::Warning},
                                    {"error", LogLevel::Error}}) {
    EXPECT_EQ(accepted(with_fleet(fmt::format("log: {{level: {}}}", text))).log.level, level);
  }
  EXPECT_EQ(accepted(with_fleet("limits: {memory: 1KiB}")).limits.memory, 1024U);
}

TEST(KeyValues, AnAdminAddressMayShareThePortOfAnotherHost) {
  EXPECT_EQ(accepted("listen: 127.0.0.1:80\nadmin: 127.0.0.2:80").admin->port, 80);
  EXPECT_EQ(accepted("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0").admin->port, 0);  // any two
  EXPECT_THAT(refused("listen: LOCALHOST:80\nadmin: localhost:80"),
              ElementsAre("baton.yaml:2: admin: is the same address as listen (localhost:80); give "
                          "it a port of its own"));
}

TEST(KeyValues, EveryProblemIsReportedInOneReading) {
  std::string text;
  std::vector<testing::Matcher<std::string>> expected;
  int line = 1;
  for (const std::string_view path : {"threads", "cpu_threads", "decisions", "shutdown_grace",
                                      "response_headers", "listen", "admin"}) {
    text += fmt::format("{}: '?'\n", path);
    expected.push_back(StartsWith(fmt::format("baton.yaml:{}: {}: ", line, path)));
    ++line;
  }
  EXPECT_THAT(refused(with_fleet(text)), testing::ElementsAreArray(expected));
}

TEST(Problem, NamesOnlyWhatIsKnown) {
  EXPECT_EQ((Problem{"f", 3, "a.b", "is odd"}.to_string()), "f:3: a.b: is odd");
  EXPECT_EQ((Problem{"f", 0, "a.b", "is odd"}.to_string()), "f: a.b: is odd");
  EXPECT_EQ((Problem{"f", 3, "", "is odd"}.to_string()), "f:3: is odd");
  EXPECT_EQ((Problem{"f", 0, "", "is odd"}.to_string()), "f: is odd");
}

TEST(ListenKey, CanBeAnyPortOfAnIpv6Address) {
  EXPECT_EQ(accepted(with_fleet("listen: '[0::0]:0'")).listen, (model::Endpoint{"::", 0}));
}

TEST(TrustedSources, AreReadInTheirOrder) {
  const Config config = accepted(
      with_fleet("trust_routing_headers: true\ntrusted_sources: ['::/0', 192.168.0.0/16]"));
  EXPECT_EQ(config.trust.sources,
            (std::vector{*model::parse_network("::/0"), *model::parse_network("192.168.0.0/16")}));
  EXPECT_THAT(refused(with_fleet("trust_routing_headers: true\ntrusted_sources: [[::1]]")),
              says("baton.yaml:2: trusted_sources[0]", "must be a single value"));
}

TEST(TlsKeys, MayNameTheirCiphers) {
  const Config config =
      accepted(with_fleet("tls: {certificate: a, key: b, ciphers: ECDHE+AESGCM}"));
  EXPECT_EQ(config.tls, (Tls{"a", "b", "ECDHE+AESGCM"}));
  EXPECT_THAT(refused(with_fleet("tls: {ciphers: ECDHE+AESGCM}")),
              ElementsAre("baton.yaml:1: tls: has no certificate; TLS needs both certificate and "
                          "key",
                          "baton.yaml:1: tls: has no key; TLS needs both certificate and key"));
  EXPECT_THAT(refused(with_fleet("tls: {certificate: a, key: b, ciphers: ''}")),
              says("baton.yaml:1: tls.ciphers", "must not be empty"));
}

}  // namespace
}  // namespace baton::config
