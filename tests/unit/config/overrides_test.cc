// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/overrides.h"

#include "unit/config/parsing.h"

#include <chrono>

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

}  // namespace
}  // namespace baton::config
