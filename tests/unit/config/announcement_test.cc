// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/announcement.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace baton::config {
namespace {

using model::Announcement;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Announcement read(std::string_view text) {
  auto announcement = parse_announcement(text, "etcd");
  if (announcement) return *std::move(announcement);
  for (const Problem& problem : announcement.error()) ADD_FAILURE() << problem.to_string();
  return {};
}

std::vector<std::string> refusals(std::string_view text) {
  const auto announcement = parse_announcement(text, "etcd");
  std::vector<std::string> shown;
  if (announcement) ADD_FAILURE() << "accepted: " << text;
  if (announcement) return shown;
  for (const Problem& problem : announcement.error()) shown.push_back(problem.to_string());
  return shown;
}

Announcement plain() { return {"demo", worker_at("h", 1), false}; }

TEST(Announcement, NeedsAModelAndAUrlOnly) {
  EXPECT_EQ(read(R"({"model": "demo", "url": "http://h:1"})"), plain());
  EXPECT_EQ(read("model: demo\nurl: http://h:1\n"), plain());
  EXPECT_THAT(refusals("{}"), ElementsAre(HasSubstr("has no model"), HasSubstr("has no url")));
  EXPECT_THAT(refusals(""), ElementsAre(HasSubstr("has no model"), HasSubstr("has no url")));
}

// Every field, with values that need care: an IPv6 address, quotes, text beyond ASCII, a weight
// that is written with an exponent.
TEST(Announcement, ComesBackAsItWent) {
  Announcement prefill{"org/mödel \"7B\" 😀", worker_at("::1", 9001), true};
  prefill.spec.engine = model::Engine::Vllm;
  prefill.spec.role = model::Role::Prefill;
  prefill.spec.name = "p-1";
  prefill.spec.name_space = "blue";
  prefill.spec.instance = "run-7";
  prefill.spec.handoff = model::HandoffMode::NixlPush;
  prefill.spec.nixl = {"e\\1", {"10.0.0.1", 5600}, 4, 2};
  prefill.spec.kv_feed = {"tcp://10.0.0.1:5557", "tcp://10.0.0.1:5657", "kv"};
  prefill.spec.block_size = 32;
  prefill.spec.data_parallel_size = 8;
  prefill.spec.taints = {"h200", "true", "1.0", "null"};
  prefill.spec.topology = {"zone=a", "rack=r=7"};
  prefill.spec.transfer_domain = {"rack", "r=7", model::Enforcement::Preferred, 0.00001};
  EXPECT_EQ(read(to_json(prefill)), prefill);

  prefill.spec.transfer_domain = {"zone", "a", model::Enforcement::Required, 0};
  EXPECT_EQ(read(to_json(prefill)), prefill);
  prefill.spec.transfer_domain = {"zone", "a", model::Enforcement::Preferred,
                                  std::nextafter(0.1, 1)};
  EXPECT_EQ(read(to_json(prefill)), prefill);

  Announcement bootstrap{"demo", worker_at("h", 1), false};
  bootstrap.spec.engine = model::Engine::Sglang;
  bootstrap.spec.role = model::Role::Prefill;
  bootstrap.spec.bootstrap_port = 8998;
  EXPECT_EQ(read(to_json(bootstrap)), bootstrap);

  EXPECT_EQ(read(to_json(plain())), plain());
}

TEST(Announcement, IsWrittenInTheKeysOfTheConfiguration) {
  EXPECT_EQ(to_json(plain()),
            R"({"model":"demo","url":"http://h:1","engine":"vllm","role":"aggregated",)"
            R"("namespace":"default","data_parallel_size":1,"draining":false})");
}

TEST(Announcement, ThatIsNotUtf8IsStillWritten) {
  Announcement odd = plain();
  odd.model = "a\xff";
  EXPECT_EQ(read(to_json(odd)).model, "a\xef\xbf\xbd");
  EXPECT_THAT(refusals("model: a\xff\nurl: http://h:1"), ElementsAre(HasSubstr("not UTF-8")));
}

TEST(Announcement, MayBeJsonThatIsNoYaml) {
  EXPECT_EQ(read("{\n\t\"url\":\"http:\\/\\/h:1\",\n\t\"model\":\"\\ud83d\\ude00\"\n}").model,
            "😀");
}

TEST(Announcement, EveryProblemIsNamed) {
  EXPECT_THAT(
      refusals(R"({"modell": "a", "url": "h:1", "role": "decod", "draining": "perhaps"})"),
      testing::UnorderedElementsAre(
          AllOf(StartsWith("etcd: "), HasSubstr("unknown key 'modell'; did you mean model?")),
          HasSubstr("has no model"), StartsWith("etcd: url: "),
          AllOf(StartsWith("etcd: role: "), HasSubstr("did you mean decode?")),
          AllOf(StartsWith("etcd: draining: "), HasSubstr("neither true nor false"))));
  EXPECT_THAT(refusals("model: a\nurl: http://h:1\nrole: decod"),
              ElementsAre(StartsWith("etcd:3: role: ")));
  // A key of the configuration that is not one of a worker.
  EXPECT_THAT(refusals("{\"model\": \"a\", \"url\": \"http://h:1\", \"listen\": \"h:1\"}"),
              ElementsAre(HasSubstr("unknown key 'listen'; known here: model, draining, url")));
  EXPECT_THAT(refusals(R"({"model": "a", "model": "b", "url": "http://h:1"})"),
              ElementsAre(HasSubstr("stands twice")));
  EXPECT_THAT(refusals(R"({"model": null, "url": "http://h:1"})"),
              ElementsAre(HasSubstr("has no value")));
}

TEST(Announcement, IsCheckedLikeAWorkerOfTheFile) {
  EXPECT_THAT(
      refusals("{model: a, url: 'http://h:1', role: decode, handoff: bootstrap}"),
      ElementsAre(AllOf(StartsWith("etcd:1: handoff: "), HasSubstr("is a mode of sglang"))));
}

TEST(Announcement, OfAnyOtherShapeIsRefused) {
  for (const std::string text : {"[]", "7", "\"a\"", "{", "{\"a\":", "a: b: c", "\x01", "*a"}) {
    EXPECT_THAT(refusals(text), ElementsAre(StartsWith("etcd"))) << text;
  }
  EXPECT_THAT(refusals(std::string(100, '[') + std::string(100, ']')),
              ElementsAre(HasSubstr("nested too deeply")));
  EXPECT_THAT(refusals(std::string(kMaxAnnouncementBytes + 1, ' ')),
              ElementsAre(HasSubstr("larger than 64 KiB")));
}

std::vector<std::string> refused_patch(std::string_view patch) {
  model::Announcement before;
  before.model = "m";
  before.spec.endpoint = {"127.0.0.1", 1};
  const auto after = amend_announcement(before, patch, "worker");
  std::vector<std::string> shown;
  if (after) ADD_FAILURE() << "accepted: " << patch;
  if (!after) {
    for (const Problem& problem : after.error()) shown.push_back(problem.to_string());
  }
  return shown;
}

TEST(AmendAnnouncement, ChangesWhatThePatchNames) {
  model::Announcement before;
  before.model = "m";
  before.spec.endpoint = {"127.0.0.1", 1};
  before.spec.block_size = 16;
  before.spec.kv_blocks = 100;
  const auto after =
      amend_announcement(before, R"({"kv_blocks":null,"block_size":32,"draining":true})", "worker");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->spec.block_size, 32u);
  EXPECT_EQ(after->spec.kv_blocks, std::nullopt);
  EXPECT_TRUE(after->draining);
  EXPECT_EQ(after->model, "m");
}

TEST(AmendAnnouncement, RefusesWhatCannotBeReadByItsKey) {
  for (const char* number : {"1e999", "-1e999", "[1, 2e400]"}) {
    const std::string patch = fmt::format(R"({{"draining":true,"kv_blocks":{}}})", number);
    EXPECT_THAT(refused_patch(patch), says("worker: kv_blocks", "cannot be read")) << number;
  }
  EXPECT_THAT(refused_patch(R"({"kv_blocks":9999999999999999999999})"),
              says("worker: kv_blocks", ""));
  EXPECT_THAT(refused_patch(R"({"kv_blocks":true})"), says("worker: kv_blocks", ""));
  EXPECT_THAT(refused_patch(R"({"kv_blocks":)"), says("worker: kv_blocks", "cannot be read"));
  EXPECT_THAT(refused_patch("[]"), says("worker", "no JSON object"));
  EXPECT_THAT(refused_patch(""), says("worker", "cannot be read"));
}

TEST(AmendAnnouncement, RefusesWhatIsNestedDeeply) {
  const std::string deep = std::string(30'000, '[') + std::string(30'000, ']');
  EXPECT_THAT(refused_patch(R"({"topology":)" + deep + "}"), says("worker: topology", "deep"));
}

// A worker by chance, of what may stand together.
class RandomWorkers {
 public:
  explicit RandomWorkers(std::uint32_t seed) : random_(seed) {}

  Announcement next() {
    Announcement worker{text(), worker_at(host(), port()), chance()};
    model::WorkerSpec& spec = worker.spec;
    constexpr std::array kEngines{model::Engine::Vllm, model::Engine::Sglang,
                                  model::Engine::Trtllm};
    constexpr std::array kRoles{model::Role::Prefill, model::Role::Decode, model::Role::Aggregated};
    spec.engine = kEngines[below(kEngines.size())];
    spec.role = kRoles[below(kRoles.size())];
    const bool disaggregated = spec.role != model::Role::Aggregated;
    if (chance()) spec.name = "id-" + fmt::to_string(below(1000));
    if (chance()) spec.name_space = "ns-" + fmt::to_string(below(1000));
    if (chance()) spec.instance = "run-" + fmt::to_string(below(1000));
    if (disaggregated && chance()) spec.handoff = model::default_mode(spec.engine);
    if (disaggregated && spec.engine == model::Engine::Vllm && chance()) {
      spec.handoff = model::HandoffMode::NixlPush;
      if (chance()) spec.nixl = {text(), {host(), port()}, count(), count()};
    }
    if (spec.engine == model::Engine::Sglang && spec.role == model::Role::Prefill && chance()) {
      spec.bootstrap_port = port();
    }
    spec.data_parallel_size = count();
    for (std::size_t n = below(4); n > 0; --n) {
      spec.taints.push_back(fmt::format("{} {}", text(), n));
      spec.topology.push_back(fmt::format("domain{}={}", n, text()));
    }
    if (!spec.topology.empty() && spec.role == model::Role::Prefill && chance()) {
      const std::string& place = spec.topology.front();
      const auto equals = place.find('=');
      const bool prefers = chance();
      spec.transfer_domain = {
          place.substr(0, equals), place.substr(equals + 1),
          prefers ? model::Enforcement::Preferred : model::Enforcement::Required,
          prefers ? static_cast<double>(1 + below(1'000'000)) / 12'345 : 0};
    }
    if (chance()) {
      spec.kv_feed = model::KvFeed{};
      if (chance()) spec.kv_feed = {"tcp://h:5557", chance() ? "tcp://h:5657" : "", text()};
    }
    if (chance()) spec.block_size = count();
    if (chance()) spec.kv_blocks = 1 + below(1'000'000);
    if (chance()) spec.max_batched_tokens = 1 + below(1'000'000);
    return worker;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  bool chance() { return below(2) == 0; }
  std::uint16_t port() { return static_cast<std::uint16_t>(1 + below(65535)); }
  std::uint32_t count() { return static_cast<std::uint32_t>(1 + below(1024)); }
  std::string host() { return chance() ? "10.0.0." + fmt::to_string(below(256)) : "fd00::1"; }
  // Visible, and as awkward as it may be.
  std::string text() {
    constexpr std::array<std::string_view, 12> kParts{"a", "true", "null", "1.0", "\"", "\\",
                                                      "ä", "😀",   ": ",   "#b",  "{",  "'"};
    std::string result = "x";
    for (std::size_t n = below(5); n > 0; --n) result += kParts[below(kParts.size())];
    return result + "y";
  }

  std::mt19937 random_;
};

TEST(Announcement, AnyWorkerComesBackAsItWent) {
  RandomWorkers workers(17);
  for (int round = 0; round < 400; ++round) {
    const Announcement worker = workers.next();
    const std::string json = to_json(worker);
    EXPECT_EQ(read(json), worker) << json;
    EXPECT_EQ(to_json(read(json)), json);
  }
}

TEST(Announcement, CutAtAnyByteIsRefused) {
  const std::string json = to_json(RandomWorkers(19).next());
  for (std::size_t size = 0; size < json.size(); ++size) {
    const auto read = parse_announcement(std::string_view(json).substr(0, size), "etcd");
    ASSERT_FALSE(read) << size;
    EXPECT_FALSE(read.error().empty());
  }
}

TEST(Announcement, MayBeSixtyFourKibibytes) {
  std::string text = R"({"model": "demo", "url": "http://h:1"})";
  text.append(kMaxAnnouncementBytes - text.size(), ' ');
  EXPECT_EQ(read(text), plain());
  EXPECT_THAT(refusals(text + " "),
              ElementsAre("etcd: is larger than 64 KiB; a worker needs far less"));
}

TEST(Announcement, SaysWhetherItDrains) {
  EXPECT_TRUE(read("{model: demo, url: 'http://h:1', draining: true}").draining);
  EXPECT_FALSE(read("{model: demo, url: 'http://h:1', draining: false}").draining);
  EXPECT_THAT(refusals("{model: demo, url: 'http://h:1', draining: 1}"),
              ElementsAre("etcd:1: draining: '1' is neither true nor false"));
}

TEST(AmendAnnouncement, WithNothingChangesNothing) {
  RandomWorkers workers(23);
  for (int round = 0; round < 100; ++round) {
    const Announcement before = workers.next();
    EXPECT_EQ(amend_announcement(before, "{}", "worker"), before);
    EXPECT_EQ(amend_announcement(before, to_json(before), "worker"), before);
  }
}

TEST(AmendAnnouncement, TakesKeysAwayAndMergesMaps) {
  Announcement before = plain();
  before.spec.role = model::Role::Prefill;
  before.spec.handoff = model::HandoffMode::NixlPush;
  before.spec.nixl = {"e1", {"h", 5600}, 4, 2};
  before.spec.taints = {"a", "b"};
  const auto merged = amend_announcement(
      before, R"({"nixl":{"engine_id":"e2","tensor_parallel_size":null},"taints":["c"]})",
      "worker");
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->spec.nixl, (model::NixlPeer{"e2", {"h", 5600}, 1, 2}));
  EXPECT_THAT(merged->spec.taints, ElementsAre("c"));  // a list is replaced as a whole
  const auto without = amend_announcement(before, R"({"nixl":null,"taints":null})", "worker");
  ASSERT_TRUE(without);
  EXPECT_EQ(without->spec.nixl, std::nullopt);
  EXPECT_THAT(without->spec.taints, IsEmpty());
}

TEST(AmendAnnouncement, ChecksTheWholeAndNotTheChangeAlone) {
  EXPECT_THAT(refused_patch(R"({"url":null})"), says("worker", "has no url"));
  EXPECT_THAT(refused_patch(R"({"model":null})"), says("worker", "has no model"));
  EXPECT_THAT(refused_patch(R"({"engine":"sglang","role":"decode","handoff":"nixl_pull"})"),
              says("worker: handoff", "is a mode of vllm, but the worker runs sglang"));
  EXPECT_THAT(refused_patch(R"({"kv_block":1})"), says("worker", "did you mean kv_blocks?"));
}

TEST(AmendAnnouncement, LeavesTheOriginalAsItWas) {
  const Announcement before = plain();
  EXPECT_FALSE(amend_announcement(before, R"({"role":"both"})", "worker"));
  EXPECT_EQ(before, plain());
}

TEST(AmendAnnouncement, APatchThatIsNoObjectIsRefused) {
  for (const char* patch : {"null", "1", "\"a\"", "true", "[{}]"}) {
    EXPECT_THAT(refused_patch(patch),
                ElementsAre("worker: is no JSON object; write the keys that change"))
        << patch;
  }
  for (const char* patch : {"{", "{\"draining\":true", "draining: true", "{}{}", "{'a':1}"}) {
    EXPECT_THAT(refused_patch(patch), ElementsAre(HasSubstr("cannot be read: is it JSON")))
        << patch;
  }
}

}  // namespace
}  // namespace baton::config
