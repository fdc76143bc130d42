// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/models.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

namespace baton::config {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

// A model `demo` whose workers are these, one a line from line 5 on.
std::string demo(const std::vector<std::string>& workers) {
  std::string text = "threads: 1\nmodels:\n  - name: demo\n    workers:\n";
  for (const std::string& worker : workers) text += fmt::format("      - {{{}}}\n", worker);
  return text;
}

TEST(Models, AtLeastOneIsNeeded) {
  EXPECT_THAT(refused(""), says("baton.yaml: models", "--worker NAME=URL"));
  EXPECT_THAT(refused("models: []"), says("baton.yaml: models", "at least one"));
}

TEST(Models, NeedANameAndWorkers) {
  EXPECT_THAT(refused("models:\n  - workers: [{url: 'http://h:1'}]"),
              says("baton.yaml:2: models[0]", "has no name"));
  EXPECT_THAT(refused("models:\n  - name: ''\n    workers: [{url: 'http://h:1'}]"),
              says("baton.yaml:2: models[0].name", "must not be empty"));
  EXPECT_THAT(refused("models:\n  - name: demo"),
              says("baton.yaml:2: models[0].workers", "has no workers"));
  EXPECT_THAT(refused("models:\n  - name: demo\n    workers: []"),
              says("baton.yaml:2: models[0].workers", "has no workers"));
  EXPECT_THAT(refused("models:\n  -"), says("baton.yaml:2: models[0]", "is empty"));
}

TEST(Models, NamesAndAliasesMustDiffer) {
  constexpr std::string_view kWorkers = "workers: [{url: 'http://h:1'}]";
  EXPECT_THAT(refused(fmt::format("models:\n  - {{name: a, {0}}}\n  - {{name: a, {0}}}", kWorkers)),
              says("baton.yaml:3: models[1].name", "already a name of models[0]"));
  EXPECT_THAT(
      refused(fmt::format("models:\n  - {{name: a, {0}}}\n  - {{name: b, aliases: [c, a], {0}}}",
                          kWorkers)),
      says("baton.yaml:3: models[1].aliases[1]", "already a name of models[0]"));
  EXPECT_THAT(refused(fmt::format("models:\n  - {{name: a, aliases: [a], {0}}}", kWorkers)),
              says("baton.yaml:2: models[0].aliases[0]", "already a name"));
}

TEST(Models, PoliciesOfALaterVersionAreKnownAndRefused) {
  for (const std::string policy : {"kv", "direct"}) {
    EXPECT_THAT(
        refused("models:\n  - {name: a, policy: " + policy + ", workers: [{url: 'http://h:1'}]}"),
        says("baton.yaml:2: models[0].policy", "not available in this version"));
  }
  EXPECT_THAT(refused("models: [{name: a, decode_policy: randm, workers: [{url: 'http://h:1'}]}]"),
              says("baton.yaml:1: models[0].decode_policy", "did you mean random?"));
}

TEST(Models, OneServerStandsOnceInAModel) {
  EXPECT_THAT(
      refused(demo({"url: 'http://Host:1', role: decode", "url: 'http://host:1/', role: prefill"})),
      says("baton.yaml:6: models[0].workers[1]",
           "host:1 is already a worker of this model at models[0].workers[0] (line 5)"));
  EXPECT_THAT(refused(demo({"url: 'http://[::1]:1'", "url: 'http://[0:0::1]:1'"})),
              says("baton.yaml:6: models[0].workers[1]", "already a worker"));
}

TEST(Models, ModelsShareAServerOnlyUnderTheSameEngineAndRole) {
  const std::string first =
      "models:\n  - {name: a, workers: [{url: 'http://h:1', engine: vllm}]}\n";
  accepted(first + "  - {name: b, workers: [{url: 'http://h:1', engine: vllm}]}\n");
  EXPECT_THAT(refused(first + "  - {name: b, workers: [{url: 'http://h:1', engine: sglang}]}\n"),
              says("baton.yaml:3: models[1].workers[0]", "h:1 is vllm aggregated at models[0]"));
  EXPECT_THAT(refused(first + "  - {name: b, workers: [{url: 'http://h:1', role: decode}]}\n"),
              says("baton.yaml:3: models[1].workers[0]", "one engine and one role"));
}

TEST(Models, SomeWorkerMustDecode) {
  const std::string prefill = "url: 'http://h:1', role: prefill";
  EXPECT_THAT(refused(demo({prefill})),
              says("baton.yaml:3: models[0].workers", "only prefill workers"));
  accepted(demo({prefill, "url: 'http://h:2', role: decode"}));
  accepted(demo({prefill, "url: 'http://h:2', role: aggregated"}));
  accepted(demo({"url: 'http://h:2', role: decode"}));
}

TEST(Models, PrefillAndDecodeRunOneEngine) {
  EXPECT_THAT(refused(demo({"url: 'http://h:1', role: prefill, engine: vllm",
                            "url: 'http://h:2', role: decode, engine: sglang"})),
              says("baton.yaml:6: models[0].workers[1].engine", "must run one engine"));
  accepted(demo({"url: 'http://h:1', role: prefill, engine: vllm",
                 "url: 'http://h:2', role: decode, engine: vllm",
                 "url: 'http://h:3', role: aggregated, engine: sglang"}));
}

TEST(Models, AMisspeltWorkerIsNotAlsoReportedAsMissing) {
  EXPECT_THAT(refused(demo({"url: 'http://h:1', role: prefill", "url: 'http://h:2', role: decod"})),
              says("baton.yaml:6: models[0].workers[1].role", "did you mean decode?"));
}

TEST(Models, WorkersNeedAUrl) {
  EXPECT_THAT(refused(demo({"role: aggregated"})),
              says("baton.yaml:5: models[0].workers[0]", "has no url"));
}

TEST(Models, BootstrapPortsAreForSglangPrefillOnly) {
  EXPECT_THAT(refused(demo({"url: 'http://h:1', bootstrap_port: 8998"})),
              says("baton.yaml:5: models[0].workers[0].bootstrap_port", "only for SGLang prefill"));
  EXPECT_THAT(
      refused(demo({"url: 'http://h:1', engine: sglang, role: prefill, bootstrap_port: 70000",
                    "url: 'http://h:2', engine: sglang, role: decode"})),
      says("baton.yaml:5: models[0].workers[0].bootstrap_port", "1 to 65535"));
}

}  // namespace
}  // namespace baton::config
