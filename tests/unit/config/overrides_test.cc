// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/overrides.h"

#include "unit/config/parsing.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::config {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::StartsWith;

TEST(Overrides, WinOverTheFile) {
  const Config config =
      accepted("threads: 2\ntimeouts: {idle: 1s}" + std::string(kFleet),
               {{"threads", "8"}, {"timeouts.idle", "3s"}, {"log.format", "json"}});
  EXPECT_EQ(config.threads, 8u);
  EXPECT_EQ(config.timeouts.idle, 3s);
  EXPECT_EQ(config.log.format, LogFormat::Json);
}

TEST(Overrides, ReplaceAValueThatIsWrongInTheFile) {
  EXPECT_EQ(accepted("threads: many\ntimeouts:" + std::string(kFleet),
                     {{"threads", "8"}, {"timeouts.connect", "1s"}})
                .threads,
            8u);
}

TEST(Overrides, TheLastOfSeveralWins) {
  EXPECT_EQ(accepted(kFleet, {{"threads", "1"}, {"threads", "2"}}).threads, 2u);
}

TEST(Overrides, AreCheckedLikeTheFileAndReportedAtTheirFlag) {
  EXPECT_THAT(refused(kFleet, {{"timeouts.first_byte", "5"}}),
              says("command line: --timeouts.first-byte", "has no unit"));
  EXPECT_THAT(refused(kFleet, {{"tls.key", "k.pem"}}),
              says("command line: --tls.key", "has no certificate"));
  EXPECT_THAT(refused("timeouts: 5s" + std::string(kFleet), {{"timeouts.idle", "1s"}}),
              says("baton.yaml:1: timeouts", "must be a map"));
}

TEST(Overrides, KeysWithoutAFlagAreRefused) {
  EXPECT_THAT(
      refused(kFleet, {{"api_keys", "sk-a"}}),
      ElementsAre("command line: api_keys: cannot be set on the command line; set it in the file"));
  EXPECT_THAT(refused(kFleet, {{"nonsense", "1"}}),
              ElementsAre(StartsWith("command line: nonsense")));
}

TEST(Overrides, AListIsWrittenWithCommas) {
  const Config config = accepted("etcd: {endpoints: ['http://old:1']}",
                                 {{"etcd.endpoints", "http://a:1,https://b:2"}});
  EXPECT_EQ(config.etcd->endpoints, (std::vector<EtcdServer>{{{"a", 1}, false}, {{"b", 2}, true}}));
  EXPECT_THAT(refused("", {{"etcd.endpoints", "http://a:1,"}}),
              says("command line: --etcd", "must be http://host:port or https://host:port"));
}

TEST(WorkerFlag, MakesAFleetWithoutAFile) {
  const auto config =
      parse("", "command line",
            std::vector<Override>{{"worker",
                                   "demo=http://127.0.0.1:9001,engine=sglang,role=prefill,"
                                   "bootstrap_port=8998"},
                                  {"worker", "demo=http://[::1]:9002,role=decode,engine=sglang"},
                                  {"worker", "other=http://h:1"}});
  ASSERT_TRUE(config) << config.error().at(0).to_string();
  model::WorkerSpec prefill = worker_at("127.0.0.1", 9001);
  model::WorkerSpec decode = worker_at("::1", 9002);
  prefill.engine = decode.engine = model::Engine::Sglang;
  prefill.role = model::Role::Prefill;
  prefill.bootstrap_port = 8998;
  decode.role = model::Role::Decode;
  EXPECT_THAT(config->models, ElementsAre(model_with("demo", {prefill, decode}),
                                          model_with("other", {worker_at("h", 1)})));
}

TEST(WorkerFlag, AddsToAModelOfTheFile) {
  const Config config = accepted(kFleet, {{"worker", "demo=http://h:2"}});
  ASSERT_EQ(config.models.size(), 1u);
  EXPECT_EQ(config.models[0].workers.size(), 2u);
}

TEST(PolicyFlag, IsForModelsThatDoNotSayItThemselves) {
  const Config config =
      accepted("models:\n  - {name: said, policy: random, workers: [{url: \"http://h:1\"}]}\n",
               {{"policy", "least_loaded"}, {"worker", "made=http://h:2"}});
  ASSERT_EQ(config.models.size(), 2u);
  EXPECT_EQ(config.models[0].policy, model::Policy::Random);
  EXPECT_EQ(config.models[1].policy, model::Policy::LeastLoaded);
  EXPECT_THAT(refused("", {{"policy", "best"}, {"worker", "made=http://h:2"}}),
              says("command line: --policy", "best"));
}

TEST(WorkerFlag, IsCheckedLikeTheFile) {
  EXPECT_THAT(refused(kFleet, {{"worker", "http://h:2"}}),
              says("command line: --worker", "NAME=URL"));
  EXPECT_THAT(refused(kFleet, {{"worker", "=http://h:2"}}),
              says("command line: --worker", "NAME=URL"));
  EXPECT_THAT(refused(kFleet, {{"worker", "demo=http://h"}}),
              says("command line: --worker demo", "has no port"));
  EXPECT_THAT(refused(kFleet, {{"worker", "demo=http://h:2,prefill"}}),
              says("command line: --worker demo", "'prefill' must be a key and a value"));
  EXPECT_THAT(refused(kFleet, {{"worker", "demo=http://h:2,roll=decode"}}),
              says("command line: --worker demo", "unknown key 'roll'; did you mean role?"));
  EXPECT_THAT(refused(kFleet, {{"worker", "demo=http://127.0.0.1:9001"}}),
              says("command line: --worker demo", "already a worker"));
}

TEST(WorkerFlag, DoesNotHideAFileOfTheWrongShape) {
  EXPECT_THAT(refused("models: 7", {{"worker", "demo=http://h:1"}}),
              says("baton.yaml:1: models", "must be a list"));
  EXPECT_THAT(refused("- a", {{"worker", "demo=http://h:1"}}),
              says("baton.yaml:1", "must be a map"));
}

TEST(Overrides, LeaveTheRestOfASectionAsItIs) {
  const Config config = accepted(with_fleet("timeouts: {idle: 1s, connect: 2s}"),
                                 {{"timeouts.connect", "9s"}, {"timeouts.first_byte", "8s"}});
  EXPECT_EQ(config.timeouts.idle, 1s);
  EXPECT_EQ(config.timeouts.connect, 9s);
  EXPECT_EQ(config.timeouts.first_byte, 8s);
}

TEST(Overrides, MakeASectionThatIsAbsentOrEmpty) {
  for (const char* file : {"", "log:\n", "log: {}\n", "log: ~\n"}) {
    EXPECT_EQ(accepted(with_fleet(file), {{"log.level", "error"}}).log.level, LogLevel::Error)
        << file;
  }
}

TEST(Overrides, ReplaceAListOrAMapOfTheFile) {
  EXPECT_EQ(accepted(with_fleet("threads: [1, 2]"), {{"threads", "3"}}).threads, 3U);
  EXPECT_EQ(accepted(with_fleet("listen: {host: a}"), {{"listen", "h:1"}}).listen,
            (model::Endpoint{"h", 1}));
}

TEST(Overrides, DoNotMendAKeyThatStandsTwice) {
  EXPECT_THAT(refused(with_fleet("threads: 1\nthreads: 2"), {{"threads", "3"}}),
              ElementsAre("baton.yaml:2: threads: stands twice; remove one"));
}

TEST(Overrides, AnEmptyValueIsAValue) {
  EXPECT_THAT(refused(kFleet, {{"threads", ""}}),
              ElementsAre("command line: --threads: '' is not a whole number from 0 to 1024"));
  EXPECT_THAT(
      refused(kFleet, {{"etcd.endpoints", ""}}),
      ElementsAre(
          "command line: --etcd: names no etcd server; write endpoints: [\"http://host:2379\"]"));
}

TEST(Overrides, AValueIsTextAndNoYaml) {
  EXPECT_THAT(refused(kFleet, {{"threads", "[1]"}}), says("command line: --threads", "'[1]'"));
  EXPECT_EQ(accepted(kFleet, {{"kv_index.snapshot", "a: #b"}}).kv_index.snapshot, "a: #b");
  EXPECT_EQ(accepted(kFleet, {{"kv_index.snapshot", "null"}}).kv_index.snapshot, "null");
}

TEST(Overrides, ProblemsOfFlagsComeBeforeThoseOfTheFile) {
  EXPECT_THAT(refused(with_fleet("threads: x"), {{"decisions", "y"}}),
              ElementsAre(StartsWith("command line: --decisions: 'y'"),
                          StartsWith("baton.yaml:1: threads: 'x'")));
}

TEST(Overrides, KeysOfModelsHaveNoFlag) {
  for (const Key& key : keys()) {
    if (!key.flag.empty()) continue;
    EXPECT_THAT(refused(kFleet, {{std::string(key.path), "1"}}),
                ElementsAre(std::string("command line: ") + std::string(key.path) +
                            ": cannot be set on the command line; set it in the file"));
  }
}

TEST(WorkerFlag, TakesAnyKeyOfAWorkerThatIsOneValue) {
  const Config config = accepted(
      "", {{"worker",
            "demo=http://h:1,role=prefill,handoff=mooncake,bootstrap_port=99,id=p-1,namespace=blue,"
            "instance=r1,data_parallel_size=2,kv_events=tcp://h:5557,block_size=16,kv_blocks=100,"
            "max_batched_tokens=512"}});
  model::WorkerSpec expected = worker_at("h", 1);
  expected.role = model::Role::Prefill;
  expected.handoff = model::HandoffMode::Mooncake;
  expected.bootstrap_port = 99;
  expected.name = "p-1";
  expected.name_space = "blue";
  expected.instance = "r1";
  expected.data_parallel_size = 2;
  expected.kv_feed = {"tcp://h:5557", "", ""};
  expected.block_size = 16;
  expected.kv_blocks = 100;
  expected.max_batched_tokens = 512;
  EXPECT_THAT(config.models, ElementsAre(model_with("demo", {expected})));
}

TEST(WorkerFlag, ANameEndsAtTheFirstEqualsSign) {
  const Config config = accepted("", {{"worker", "org/model 7B=http://h:1"}});
  EXPECT_EQ(config.models.at(0).name, "org/model 7B");
  EXPECT_THAT(refused("", {{"worker", "demo="}}),
              says("command line: --worker demo", "'' must be http://host:port"));
  EXPECT_THAT(refused("", {{"worker", "demo=http://h:1,"}}),
              says("command line: --worker demo", "'' must be a key and a value"));
  EXPECT_THAT(refused("", {{"worker", "demo=http://h:1,id=a,id=b"}}),
              says("command line: --worker demo", "stands twice; remove one"));
}

TEST(WorkerFlag, OfTheSameServerIsNamedByItsFlag) {
  EXPECT_THAT(refused("", {{"worker", "a=http://h:1"}, {"worker", "a=http://h:1"}}),
              says("command line: --worker a",
                   "h:1 is already a worker of this model at --worker a; remove one"));
}

TEST(WorkerFlag, FindsAModelByItsNameAndNotByAnAlias) {
  const Config config = accepted("models: [{name: demo}]", {{"worker", "demo=http://h:1"}});
  EXPECT_EQ(config.models.at(0).workers.size(), 1U);
  EXPECT_THAT(refused("models: [{name: demo, aliases: [d]}]", {{"worker", "d=http://h:1"}}),
              testing::Contains(testing::HasSubstr("already a name of models[0]")));
}

TEST(PolicyFlag, AppliesToEveryModelWhereverItStandsAmongTheFlags) {
  const Config config =
      accepted("models: [{name: a}, {name: b, policy: kv}]",
               {{"worker", "c=http://h:1"}, {"policy", "random"}, {"worker", "d=http://h:2"}});
  std::vector<model::Policy> policies;
  for (const Model& model : config.models) policies.push_back(model.policy);
  EXPECT_THAT(policies, ElementsAre(model::Policy::Random, model::Policy::Kv, model::Policy::Random,
                                    model::Policy::Random));
}

TEST(PolicyFlag, LeavesPoliciesOfRolesAlone) {
  const Model model =
      accepted("models: [{name: a, decode_policy: direct}]", {{"policy", "random"}}).models.at(0);
  EXPECT_EQ(model.policy, model::Policy::Random);
  EXPECT_EQ(model.decode_policy, model::Policy::Direct);
  EXPECT_EQ(model.prefill_policy, std::nullopt);
}

}  // namespace
}  // namespace baton::config
