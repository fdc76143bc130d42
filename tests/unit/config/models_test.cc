// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/models.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

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

TEST(Models, AdaptersAreNamesToo) {
  const Config config = accepted("models: [{name: a, aliases: [b], adapters: [c, d e]}]");
  EXPECT_THAT(config.models.at(0).adapters, testing::ElementsAre("c", "d e"));
  EXPECT_THAT(refused("models:\n  - {name: a, adapters: [c]}\n  - {name: c}\n"),
              says("baton.yaml:3: models[1].name",
                   "'c' is already a name of models[0]; names, aliases and adapters must differ"));
  EXPECT_THAT(refused("models: [{name: a, adapters: [c, c]}]"),
              says("baton.yaml:1: models[0].adapters[1]", "already a name of models[0]"));
  EXPECT_THAT(refused("models: [{name: a, adapters: ['', [x]]}]"),
              testing::ElementsAre(
                  "baton.yaml:1: models[0].adapters[0]: must not be empty",
                  "baton.yaml:1: models[0].adapters[1]: must be a single value, not a list or a "
                  "map"));
}

TEST(Models, NamesOfDifferentCaseDiffer) {
  EXPECT_EQ(accepted("models: [{name: a}, {name: A}]").models.size(), 2U);
}

TEST(Models, KeepTheirOrder) {
  std::string text = "models:\n";
  for (int i = 9; i >= 0; --i) text += fmt::format("  - name: m{}\n", i);
  const Config config = accepted(text);
  ASSERT_EQ(config.models.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(config.models[i].name, fmt::format("m{}", 9 - i));
}

// A model with every key wrong, each in a line of its own.
TEST(Models, NameEachWrongKeyAtItsLine) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"policy: best", "unknown 'best'; write one of "},
      {"prefill_policy: 7", "unknown '7'; write one of "},
      {"decode_policy: kvv", "unknown 'kvv'; did you mean kv?"},
      {"disaggregation: never", "unknown 'never'; write one of auto, required, off"},
      {"on_prefill_failure: retyr", "unknown 'retyr'; did you mean retry?"},
      {"retries: -1", "'-1' is not a whole number from 0 to 10"},
      {"migration: 11", "'11' is not a whole number from 0 to 10"},
      {"tokenizer: ''", "must name a file"},
      {"send_token_ids: allways", "unknown 'allways'; did you mean always?"},
      {"aliases: b", "must be a list, as in [a, b] or lines that begin with '-'"},
  };
  std::string text = "models:\n  - name: demo\n";
  std::vector<testing::Matcher<std::string>> expected;
  int line = 3;
  for (const auto& [key, message] : all) {
    text += "    " + key + "\n";
    expected.push_back(testing::StartsWith(fmt::format("baton.yaml:{}: models[0].{}: {}", line,
                                                       key.substr(0, key.find(':')), message)));
    ++line;
  }
  EXPECT_THAT(refused(text), testing::ElementsAreArray(expected));
}

TEST(Models, AttemptsHaveBothTheirEnds) {
  for (const int attempts : {0, 10}) {
    const Config config =
        accepted(fmt::format("models: [{{name: a, retries: {0}, migration: {0}}}]", attempts));
    EXPECT_EQ(config.models.at(0).retries, attempts);
    EXPECT_EQ(config.models.at(0).migration, attempts);
  }
}

TEST(Models, AffinityHasDefaultsBesidesItsTtl) {
  EXPECT_EQ(accepted("models: [{name: a, affinity: {ttl: 1m}}]").models.at(0).affinity,
            (Affinity{std::chrono::minutes(1), 100'000, {}}));
  EXPECT_EQ(accepted("models: [{name: a, affinity: {ttl: 1s, sessions: 10000000}}]")
                .models.at(0)
                .affinity.sessions,
            10'000'000U);
  EXPECT_EQ(accepted("models: [{name: a, affinity: }]").models.at(0).affinity, Affinity{});
  EXPECT_THAT(refused("models: [{name: a, affinity: {ttl: 1s, sessions: 10000001}}]"),
              says("baton.yaml:1: models[0].affinity.sessions", "from 1 to 10000000"));
  EXPECT_THAT(refused("models: [{name: a, affinity: 1m}]"),
              says("baton.yaml:1: models[0].affinity", "must be a map"));
}

TEST(Models, ThreeCopiesOfAServerAreTwoMistakes) {
  EXPECT_THAT(refused(demo({"url: 'http://h:1'", "url: 'http://h:1'", "url: 'http://h:1'"})),
              testing::ElementsAre(
                  testing::HasSubstr("baton.yaml:6: models[0].workers[1]: h:1 is already a worker "
                                     "of this model at models[0].workers[0] (line 5)"),
                  testing::HasSubstr("baton.yaml:7: models[0].workers[2]: h:1 is already a worker "
                                     "of this model at models[0].workers[0] (line 5)")));
}

TEST(Models, EnginesMayDifferBetweenNamespacesButNotWithinOne) {
  const std::string vllm = "role: prefill, engine: vllm, namespace: ";
  const std::string sglang = "role: decode, engine: sglang, namespace: ";
  accepted(demo({"url: 'http://h:1', " + vllm + "a", "url: 'http://h:2', " + sglang + "b"}));
  EXPECT_THAT(refused(demo({"url: 'http://h:1', " + vllm + "a", "url: 'http://h:2', " + vllm + "b",
                            "url: 'http://h:3', " + sglang + "b"})),
              says("baton.yaml:7: models[0].workers[2].engine",
                   "is sglang, but models[0].workers[1] (line 6) is vllm"));
}

TEST(Models, AreReportedByTheirPlaceAndNotByTheirName) {
  EXPECT_THAT(refused("models:\n  - name: fine\n  - name: wrong\n    workers: [{url: x}]\n"),
              says("baton.yaml:4: models[1].workers[0].url", "'x' must be http://host:port"));
}

TEST(Models, ALongTokenizerPathIsKeptAsItStands) {
  const Tokens tokens =
      accepted("models: [{name: a, tokenizer: ' /m odels/ä/ ', chat_template: x}]")
          .models.at(0)
          .tokens;
  // Plain text ends at its last letter; quotes keep blanks.
  EXPECT_EQ(tokens.tokenizer, " /m odels/ä/ ");
  EXPECT_EQ(tokens.chat_template, "x");
  EXPECT_EQ(tokens.send, model::SendTokenIds::Auto);
}

}  // namespace
}  // namespace baton::config
