// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/models.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

namespace baton::config {
namespace {

// A model `demo` whose workers are these, one a line from line 5 on.
std::string demo(const std::vector<std::string>& workers) {
  std::string text = "threads: 1\nmodels:\n  - name: demo\n    workers:\n";
  for (const std::string& worker : workers) text += fmt::format("      - {{{}}}\n", worker);
  return text;
}

// The model `demo` with a key in line 4, then its workers from line 6 on.
std::string demo_with(const std::string& key, const std::vector<std::string>& workers) {
  std::string text = demo(workers);
  text.insert(text.find("    workers:"), "    " + key + "\n");
  return text;
}

TEST(Models, NeedAName) {
  EXPECT_THAT(refused("models:\n  - workers: [{url: 'http://h:1'}]"),
              says("baton.yaml:2: models[0]", "has no name"));
  EXPECT_THAT(refused("models:\n  - name: ''\n    workers: [{url: 'http://h:1'}]"),
              says("baton.yaml:2: models[0].name", "must not be empty"));
  EXPECT_THAT(refused("models:\n  -"), says("baton.yaml:2: models[0]", "is empty"));
}

TEST(Models, MayWaitForTheirWorkers) {
  EXPECT_EQ(accepted("models:\n  - name: demo").models, (std::vector{model_with("demo", {})}));
  EXPECT_EQ(accepted("models:\n  - name: demo\n    workers: []").models,
            (std::vector{model_with("demo", {})}));
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

TEST(Models, PoliciesAreKnownByName) {
  for (const std::string name : {"round_robin", "random", "power_of_two", "least_loaded", "direct",
                                 "kv", "load_aware", "ttft"}) {
    const Config config = accepted("models:\n  - {name: a, policy: " + name + "}");
    EXPECT_EQ(to_string(config.models.at(0).policy), name);
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

// Regression: a file from which the last decode worker was taken is the state of a fleet, not a
// broken file.
TEST(Models, MayLackARoleForAWhile) {
  const std::string prefill = "url: 'http://h:1', role: prefill";
  const std::string push = "url: 'http://h:2', role: prefill, handoff: nixl_push";
  const std::string decode = "url: 'http://h:3', role: decode";
  const std::string aggregated = "url: 'http://h:4', role: aggregated";
  for (const auto& workers : std::vector<std::vector<std::string>>{
           {prefill}, {decode}, {prefill, aggregated}, {prefill, push, decode}}) {
    for (const std::string key : {"auto", "required", "off"}) {
      const Config config = accepted(demo_with("disaggregation: " + key, workers));
      EXPECT_EQ(config.models.at(0).workers.size(), workers.size());
    }
  }
  EXPECT_THAT(refused(demo_with("disaggregation: of", {decode})),
              says("baton.yaml:4: models[0].disaggregation", "did you mean off?"));
}

TEST(Models, PrefillAndDecodeRunOneEngine) {
  EXPECT_THAT(refused(demo({"url: 'http://h:1', role: prefill, engine: vllm",
                            "url: 'http://h:2', role: decode, engine: sglang"})),
              says("baton.yaml:6: models[0].workers[1].engine", "must run one engine"));
  accepted(demo({"url: 'http://h:1', role: prefill, engine: vllm",
                 "url: 'http://h:2', role: decode, engine: vllm",
                 "url: 'http://h:3', role: aggregated, engine: sglang"}));
  accepted(demo({"url: 'http://h:1', role: prefill, engine: vllm",
                 "url: 'http://h:2', role: decode, engine: sglang, namespace: other"}));
}

TEST(Models, AMisspeltWorkerIsNotAlsoReportedAsMissing) {
  EXPECT_THAT(refused(demo({"url: 'http://h:1', role: prefill", "url: 'http://h:2', role: decod"})),
              says("baton.yaml:6: models[0].workers[1].role", "did you mean decode?"));
}

TEST(Models, DirectIsAPolicyForEachRole) {
  const Config config =
      accepted(demo_with("decode_policy: direct", {"url: 'http://h:1', role: decode"}));
  EXPECT_EQ(config.models.at(0).decode_policy, model::Policy::Direct);
}

TEST(Models, AttemptsAreFew) {
  for (const std::string key : {"retries", "migration"}) {
    EXPECT_THAT(refused(demo_with(key + ": 11", {"url: 'http://h:1'"})),
                says("baton.yaml:4: models[0]." + key, "0 to 10"));
  }
  EXPECT_THAT(refused(demo_with("on_prefill_failure: ignore", {"url: 'http://h:1'"})),
              says("baton.yaml:4: models[0].on_prefill_failure", "retry, fallback, fail"));
}

TEST(Models, ATokenizerIsUsedWhereNothingElseIsSaid) {
  const std::vector<std::string> worker{"url: 'http://h:1'"};
  const auto by = [&](const std::string& lines) {
    return accepted(demo_with(lines, worker)).models.at(0).tokens.by;
  };
  EXPECT_EQ(by("tokenizer: /m"), model::Tokenize::Local);
  EXPECT_EQ(by("retries: 1"), model::Tokenize::Off);
  EXPECT_EQ(by("tokenize: engine"), model::Tokenize::Engine);
  EXPECT_EQ(by("tokenizer: /m\n    tokenize: off"), model::Tokenize::Off);
}

TEST(Models, TokenizingNeedsATokenizer) {
  const std::vector<std::string> worker{"url: 'http://h:1'"};
  EXPECT_THAT(refused(demo_with("tokenize: local", worker)),
              says("baton.yaml:4: models[0].tokenize", "write tokenizer: FOLDER"));
  EXPECT_THAT(refused(demo_with("chat_template: /m.jinja", worker)),
              says("baton.yaml:4: models[0].chat_template", "no effect without a tokenizer"));
  EXPECT_THAT(refused(demo_with("tokenize: locally", worker)),
              says("baton.yaml:4: models[0].tokenize", "did you mean local?"));
  EXPECT_THAT(refused(demo_with("send_token_ids: yes", worker)),
              says("baton.yaml:4: models[0].send_token_ids", "auto, always, never"));
}

TEST(Models, AffinityNeedsATtl) {
  const std::vector<std::string> worker{"url: 'http://h:1'"};
  EXPECT_THAT(refused(demo_with("affinity: {sessions: 10}", worker)),
              says("baton.yaml:4: models[0].affinity", "has no ttl"));
  EXPECT_THAT(refused(demo_with("affinity: {ttl: 0s}", worker)),
              says("baton.yaml:4: models[0].affinity.ttl", "above zero"));
  EXPECT_THAT(refused(demo_with("affinity: {ttl: 1m, sessions: 0}", worker)),
              says("baton.yaml:4: models[0].affinity.sessions", "from 1"));
  EXPECT_THAT(refused(demo_with("affinity: {ttl: 1m, body_fields: [user, seed]}", worker)),
              says("baton.yaml:4: models[0].affinity.body_fields[1]", "session_id or user"));
}

TEST(Models, IdsOfOneModelDiffer) {
  EXPECT_THAT(refused(demo({"url: 'http://h:1', id: w", "url: 'http://h:2', id: w"})),
              says("baton.yaml:6: models[0].workers[1].id",
                   "'w' already means models[0].workers[0] (line 5)"));
  EXPECT_THAT(refused(demo({"url: 'http://h:1'", "url: 'http://h:2', id: 'h:1'"})),
              says("baton.yaml:6: models[0].workers[1].id", "already means"));
  EXPECT_THAT(refused(demo({"url: 'http://h:1', id: 'h:2'", "url: 'http://h:2'"})),
              says("baton.yaml:5: models[0].workers[0].id", "already means"));
  accepted(demo({"url: 'http://h:1', id: 'h:1'", "url: 'http://h:2', id: w"}));
  accepted(
      "models:\n"
      "  - {name: a, workers: [{url: 'http://h:1', id: w}]}\n"
      "  - {name: b, workers: [{url: 'http://h:2', id: w}]}\n");
}

}  // namespace
}  // namespace baton::config
