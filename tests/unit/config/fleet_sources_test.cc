// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/fleet_sources.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

namespace baton::config {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string etcd_with(std::string_view keys, std::string_view url = "https://h:1") {
  return fmt::format("etcd:\n  endpoints: ['{}']\n{}", url, keys);
}

TEST(EtcdKeys, AreAbsentUnlessGiven) {
  EXPECT_EQ(accepted(kFleet).etcd, std::nullopt);
  EXPECT_EQ(accepted(with_fleet("etcd:")).etcd, std::nullopt);
}

TEST(EtcdKeys, ServersAreReadInTheirOrder) {
  const Config config =
      accepted("etcd: {endpoints: ['https://Etcd-1:2379/', 'http://[::0:1]:2379']}");
  EXPECT_EQ(config.etcd->endpoints,
            (std::vector<EtcdServer>{{{"etcd-1", 2379}, true}, {{"::1", 2379}, false}}));
}

TEST(EtcdKeys, NeedAServer) {
  EXPECT_THAT(refused(with_fleet("etcd: {prefix: /a/}")),
              says("baton.yaml:1: etcd.endpoints", "names no etcd server"));
  EXPECT_THAT(refused(with_fleet("etcd: {endpoints: []}")),
              says("baton.yaml:1: etcd.endpoints", "names no etcd server"));
  EXPECT_THAT(refused(with_fleet("etcd: 'http://h:1'")),
              says("baton.yaml:1: etcd", "must be a map"));
}

TEST(EtcdKeys, ServersAreUrlsAndDiffer) {
  for (const char* url : {"h:1", "ftp://h:1", "https://h", "http://h:0", "http://u@h:1",
                          "http://h:1/v3", "http://h:1?a", ""}) {
    EXPECT_THAT(refused(etcd_with("", url)),
                testing::ElementsAre(testing::StartsWith("baton.yaml:2: etcd.endpoints[0]: ")))
        << url;
  }
  EXPECT_THAT(refused("etcd: {endpoints: ['http://h:1', 'https://H:1']}"),
              says("baton.yaml:1: etcd.endpoints[1]", "h:1 stands twice"));
}

TEST(EtcdKeys, APrefixIsAFolder) {
  for (const char* prefix : {"baton/", "/baton", "baton", "''"}) {
    EXPECT_THAT(refused(etcd_with(fmt::format("  prefix: {}", prefix))),
                says("baton.yaml:3: etcd.prefix", "begin and end with '/'"));
  }
}

TEST(EtcdKeys, AUserHasAPasswordWithoutItsNewline) {
  for (const std::string text : {"s3cret word", "s3cret word\n", "s3cret word\r\n"}) {
    const TemporaryFile file(text);
    const Config config = accepted(etcd_with("  user: root\n  password_file: " + file.path()));
    EXPECT_EQ(config.etcd->user, "root");
    EXPECT_EQ(config.etcd->password, "s3cret word");
  }
}

TEST(EtcdKeys, APasswordStandsAloneAndIsNeverShown) {
  for (const std::string text : {"", "\n", "s3cret\n\n", "s3cret\nother\n"}) {
    const TemporaryFile file(text);
    const auto problems = refused(etcd_with("  user: root\n  password_file: " + file.path()));
    EXPECT_THAT(problems, says("baton.yaml:4: etcd.password_file", "password"));
    EXPECT_THAT(problems, Not(Contains(HasSubstr("s3cret"))));
  }
  EXPECT_THAT(refused(etcd_with("  user: root\n  password_file: /nonexistent/file")),
              says("baton.yaml:4: etcd.password_file", "cannot read '/nonexistent/file'"));
}

TEST(EtcdKeys, WhatBelongsTogetherStandsTogether) {
  const TemporaryFile password("s3cret");
  EXPECT_THAT(refused(etcd_with("  user: root")),
              says("baton.yaml:3: etcd.user", "needs etcd.password_file"));
  EXPECT_THAT(refused(etcd_with("  password_file: " + password.path())),
              says("baton.yaml:3: etcd.password_file", "needs etcd.user"));
  EXPECT_THAT(refused(etcd_with("  certificate: c.pem")),
              says("baton.yaml:3: etcd.certificate", "needs etcd.key"));
  EXPECT_THAT(refused(etcd_with("  key: k.pem")),
              says("baton.yaml:3: etcd.key", "needs etcd.certificate"));
  const Config config = accepted(etcd_with("  certificate: c.pem\n  key: k.pem\n  ca: a.pem"));
  EXPECT_EQ(config.etcd->certificate, "c.pem");
  EXPECT_EQ(config.etcd->key, "k.pem");
  EXPECT_EQ(config.etcd->ca, "a.pem");
}

TEST(EtcdKeys, FilesOfTlsNeedAnHttpsServer) {
  EXPECT_THAT(refused(etcd_with("  ca: a.pem", "http://h:1")),
              says("baton.yaml:3: etcd.ca", "without an https:// endpoint"));
  // A server that cannot be read may have been meant as https.
  EXPECT_THAT(refused(etcd_with("  ca: a.pem", "htps://h:1")),
              says("baton.yaml:2: etcd.endpoints[0]", "must be"));
  accepted("etcd: {ca: a.pem, endpoints: ['http://h:1', 'https://h:2']}");
}

TEST(EtcdKeys, OnlyLingerMayBeZero) {
  EXPECT_EQ(accepted(etcd_with("  linger: 0s")).etcd->linger.count(), 0);
  EXPECT_THAT(refused(etcd_with("  timeout: 0s")),
              says("baton.yaml:3: etcd.timeout", "must be above zero"));
}

TEST(HealthKeys, BackoffGrowsToItsMost) {
  accepted(with_fleet("health: {backoff: 2s, backoff_max: 2s}"));
  EXPECT_THAT(
      refused(with_fleet("health: {backoff: 31s}")),
      says("baton.yaml:1: health.backoff", "(31000ms) is longer than backoff_max (30000ms)"));
  EXPECT_THAT(refused(with_fleet("health: {backoff_max: 500ms}")),
              says("baton.yaml:1: health.backoff_max", "backoff (1000ms) is longer"));
  EXPECT_THAT(refused(with_fleet("health: {failures: 0}")),
              says("baton.yaml:1: health.failures", "1 to 1000"));
}

TEST(CanaryKeys, MeanNothingWithoutIdle) {
  EXPECT_EQ(accepted(kFleet).canary.idle.count(), 0);
  for (const std::string key : {"timeout: 1s", "failures: 2"}) {
    const std::string name = key.substr(0, key.find(':'));
    EXPECT_THAT(refused(with_fleet("canary: {" + key + "}")),
                says("baton.yaml:1: canary." + name, "without canary.idle"));
  }
  EXPECT_THAT(refused(with_fleet("canary: {idle: 0s}")),
              says("baton.yaml:1: canary.idle", "above zero"));
}

TEST(ProbeKeys, ASelfTestIsPartOfTheProbe) {
  EXPECT_FALSE(accepted(with_fleet("probe: {enabled: false}")).probe.enabled);
  EXPECT_THAT(refused(with_fleet("probe: {enabled: false, self_test: true}")),
              says("baton.yaml:1: probe.self_test", "needs probe.enabled: true"));
}

TEST(KvIndexKeys, AreRead) {
  EXPECT_EQ(accepted(kFleet).kv_index, KvIndex());
  const KvIndex index =
      accepted(with_fleet("kv_index: {source: decisions, blocks: 5000, decision_ttl: 1m, "
                          "prediction_ttl: 0s, silence: 2s, snapshot: /s, snapshot_interval: 3s}"))
          .kv_index;
  EXPECT_EQ(index, (KvIndex{.source = IndexSource::Decisions,
                            .blocks = 5000,
                            .decision_ttl = std::chrono::minutes(1),
                            .prediction_ttl = std::chrono::seconds(0),
                            .silence = std::chrono::seconds(2),
                            .snapshot = "/s",
                            .snapshot_interval = std::chrono::seconds(3)}));
  for (const auto& [text, source] : {std::pair{"auto", IndexSource::Auto},
                                     {"events", IndexSource::Events},
                                     {"off", IndexSource::Off}}) {
    EXPECT_EQ(accepted(with_fleet(fmt::format("kv_index: {{source: {}}}", text))).kv_index.source,
              source);
  }
}

TEST(KvIndexKeys, WrongOnesAreRefused) {
  EXPECT_THAT(refused(with_fleet("kv_index: {source: event}")),
              says("baton.yaml:1: kv_index.source", "did you mean events?"));
  EXPECT_THAT(refused(with_fleet("kv_index: {blocks: 10}")),
              says("baton.yaml:1: kv_index.blocks", "1000"));
  EXPECT_THAT(refused(with_fleet("kv_index: {snapshot_interval: 1s}")),
              says("baton.yaml:1: kv_index.snapshot_interval", "without kv_index.snapshot"));
}

TEST(EtcdKeys, HaveDefaultsBesidesTheirServers) {
  Etcd expected;
  expected.endpoints = {{{"h", 1}, true}};
  EXPECT_EQ(accepted(etcd_with("")).etcd, expected);
  EXPECT_EQ(expected.prefix, "/baton/workers/");
}

TEST(EtcdKeys, APasswordMayHoldAnythingButALineEnd) {
  const TemporaryFile blanks("  s3cret\tword  \n");
  EXPECT_EQ(accepted(etcd_with("  user: root\n  password_file: " + blanks.path())).etcd->password,
            "  s3cret\tword  ");
  const TemporaryFile crs("s3cret\r\r\n");
  EXPECT_EQ(accepted(etcd_with("  user: root\n  password_file: " + crs.path())).etcd->password,
            "s3cret\r");
  const TemporaryFile cr_alone("\r\n");
  EXPECT_THAT(refused(etcd_with("  user: root\n  password_file: " + cr_alone.path())),
              says("baton.yaml:4: etcd.password_file", "a file without a password"));
}

TEST(EtcdKeys, EveryMistakeOfThePairIsNamed) {
  EXPECT_THAT(refused(etcd_with("  certificate: ''\n  key: k.pem")),
              says("baton.yaml:3: etcd.certificate", "must name a file"));
  EXPECT_THAT(refused(etcd_with("  key: k.pem\n  ca: a.pem", "http://h:1")),
              testing::UnorderedElementsAre(
                  testing::HasSubstr("baton.yaml:3: etcd.key: needs etcd.certificate"),
                  testing::HasSubstr("baton.yaml:3: etcd.key: has no effect without an https://"),
                  testing::HasSubstr("baton.yaml:4: etcd.ca: has no effect without an https://")));
}

TEST(EtcdKeys, APrefixMayBeTheRoot) {
  EXPECT_EQ(accepted(etcd_with("  prefix: /")).etcd->prefix, "/");
  EXPECT_THAT(refused(etcd_with("  prefix: \"/a\\tb/\"")),
              says("baton.yaml:3: etcd.prefix", "must not have control characters"));
}

TEST(EtcdKeys, ServersMayDifferByPortAlone) {
  EXPECT_EQ(accepted("etcd: {endpoints: ['http://h:1', 'http://h:2']}").etcd->endpoints.size(), 2U);
  EXPECT_THAT(refused("etcd: {endpoints: ['http://[::1]:1', 'http://[0::1]:1']}"),
              says("baton.yaml:1: etcd.endpoints[1]", "[::1]:1 stands twice; remove one"));
  EXPECT_THAT(refused("etcd: {endpoints: 'http://h:1'}"),
              says("baton.yaml:1: etcd.endpoints", "must be a list"));
}

TEST(HealthKeys, AreRead) {
  EXPECT_EQ(accepted(with_fleet("health: {interval: 1ms, timeout: 24h, failures: 1000, "
                                "backoff: 1s, backoff_max: 1m}"))
                .health,
            (Health{std::chrono::milliseconds(1), std::chrono::hours(24), 1000,
                    std::chrono::seconds(1), std::chrono::minutes(1)}));
  EXPECT_EQ(accepted(kFleet).health, Health());
}

TEST(HealthKeys, AWrongWaitIsNotComparedWithAnother) {
  EXPECT_THAT(refused(with_fleet("health: {backoff: 2h, backoff_max: soon}")),
              says("baton.yaml:1: health.backoff_max", "is not a duration"));
}

TEST(HealthKeys, BothWaitsAreComparedWhereBothAreGiven) {
  EXPECT_THAT(refused(with_fleet("health:\n  backoff: 3s\n  backoff_max: 2s")),
              testing::ElementsAre("baton.yaml:2: health.backoff: backoff (3000ms) is longer than "
                                   "backoff_max (2000ms); change one of them"));
}

TEST(CanaryKeys, AreRead) {
  EXPECT_EQ(accepted(with_fleet("canary: {idle: 1m}")).canary,
            (Canary{std::chrono::minutes(1), std::chrono::seconds(3), 3}));
  EXPECT_THAT(refused(with_fleet("canary: {timeout: 1s, failures: 2}")), testing::SizeIs(2));
  EXPECT_THAT(refused(with_fleet("canary: 1m")), says("baton.yaml:1: canary", "must be a map"));
}

TEST(ProbeKeys, AreOnWithoutASelfTest) {
  EXPECT_EQ(accepted(kFleet).probe, (Probe{true, false}));
  EXPECT_EQ(accepted(with_fleet("probe: {self_test: true}")).probe, (Probe{true, true}));
}

TEST(KvIndexKeys, ASnapshotMayBeWrittenOften) {
  EXPECT_EQ(accepted(with_fleet("kv_index: {snapshot: /s, snapshot_interval: 1ms}"))
                .kv_index.snapshot_interval,
            std::chrono::milliseconds(1));
  EXPECT_THAT(refused(with_fleet("kv_index: {snapshot: ''}")),
              says("baton.yaml:1: kv_index.snapshot", "must name a file"));
  EXPECT_THAT(refused(with_fleet("kv_index: {prediction_ttl: 25h}")),
              says("baton.yaml:1: kv_index.prediction_ttl", "longer than a day"));
}

}  // namespace
}  // namespace baton::config
