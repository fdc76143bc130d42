// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/reader.h"

#include "config/document.h"
#include "config/values.h"
#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace baton::config {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

TEST(Reader, ReportsAllProblemsInOrderOfLine) {
  const auto problems = refused(R"(listen: 127.0.0.1
thread: 4
timeouts:
  connect: 5
models:
  - name: demo
    workers:
      - {url: "https://h:1", role: both}
)");
  EXPECT_THAT(problems,
              ElementsAre(StartsWith("baton.yaml:1: listen: "),
                          StartsWith("baton.yaml:2: unknown key 'thread'; did you mean threads?"),
                          StartsWith("baton.yaml:4: timeouts.connect: "),
                          StartsWith("baton.yaml:8: models[0].workers[0].url: "),
                          StartsWith("baton.yaml:8: models[0].workers[0].role: ")));
}

TEST(Reader, UnknownKeysComeWithASuggestion) {
  EXPECT_THAT(refused(with_fleet("shutdown-grace: 1s")),
              says("baton.yaml:1", "did you mean shutdown_grace?"));
  EXPECT_THAT(refused(with_fleet("log:\n  formt: json")),
              says("baton.yaml:2: log", "unknown key 'formt'; did you mean format?"));
  EXPECT_THAT(refused(with_fleet("first_byte: 1s")),
              says("baton.yaml:1", "did you mean timeouts.first_byte?"));
  EXPECT_THAT(refused(with_fleet("tls: {certificate: a, key: b, zzzzzz: c}")),
              says("baton.yaml:1: tls", "known here: certificate, key"));
  EXPECT_THAT(refused("models: [{name: a, workers: [{url: 'http://h:1', roles: decode}]}]"),
              says("baton.yaml:1: models[0].workers[0]", "did you mean role?"));
}

TEST(Reader, AKeyThatStandsTwiceIsRefused) {
  EXPECT_THAT(refused(with_fleet("threads: 1\nthreads: 2")),
              says("baton.yaml:2: threads", "stands twice, first in line 1"));
  EXPECT_THAT(refused(with_fleet("log: {level: info, level: debug}")),
              says("baton.yaml:1: log.level", "stands twice"));
}

TEST(Reader, AValueOfAnotherShapeIsRefused) {
  EXPECT_THAT(refused(with_fleet("threads: [1]")), says("baton.yaml:1: threads", "single value"));
  EXPECT_THAT(refused(with_fleet("timeouts: 5s")), says("baton.yaml:1: timeouts", "must be a map"));
  EXPECT_THAT(refused("models: {name: demo}"), says("baton.yaml:1: models", "must be a list"));
  EXPECT_THAT(refused("models: [demo]"), says("baton.yaml:1: models[0]", "must be a map"));
  EXPECT_THAT(refused("[a, b]"), says("baton.yaml:1", "must be a map"));
  EXPECT_THAT(refused(with_fleet("threads:")), says("baton.yaml:1: threads", "has no value"));
  EXPECT_THAT(refused(with_fleet("threads: many")), says("baton.yaml:1: threads", "whole number"));
  EXPECT_THAT(refused(with_fleet("log: {requests: yes}")),
              says("baton.yaml:1: log.requests", "neither true nor false"));
}

Node tree_of(std::string_view yaml) {
  auto root = read_document(yaml, "f");
  if (root) return *std::move(root);
  ADD_FAILURE() << root.error().to_string();
  return {};
}

std::vector<std::string> shown_of(Problems& problems) {
  std::vector<std::string> texts;
  for (const Problem& problem : problems.take()) texts.push_back(problem.to_string());
  return texts;
}

TEST(Problems, StandInOrderOfLineAndThenAsTheyCame) {
  Problems problems("f");
  problems.add(Node{.line = 5}, "e", "one");
  problems.add(Node{.line = 2}, "b", "two");
  problems.add(Node{.line = 5}, "f", "three");
  problems.add(Node{.flag = "--flag"}, "a", "four");
  problems.add(Node{.line = 2}, "c", "five");
  EXPECT_EQ(problems.count(), 5U);
  EXPECT_THAT(shown_of(problems), ElementsAre("command line: --flag: four", "f:2: b: two",
                                              "f:2: c: five", "f:5: e: one", "f:5: f: three"));
}

TEST(Section, ReadsWhatIsThereAndLeavesTheRest) {
  Problems problems("f");
  const Node root = tree_of("threads: 3\ncpu_threads: many\n");
  const Section section(root, "", "", problems);
  std::size_t threads = 1;
  std::size_t cpu_threads = 2;
  std::size_t decisions = 7;
  section.read("threads", threads, number_within<0, 10>);
  section.read("cpu_threads", cpu_threads, number_within<0, 10>);
  section.read("decisions", decisions, number_within<0, 10>);
  EXPECT_EQ(threads, 3U);
  EXPECT_EQ(cpu_threads, 2U);
  EXPECT_EQ(decisions, 7U);
  EXPECT_THAT(shown_of(problems),
              ElementsAre("f:2: cpu_threads: 'many' is not a whole number from 0 to 10"));
}

TEST(Section, ThatIsAbsentIsAnEmptyMap) {
  Problems problems("f");
  const Node root = tree_of("threads: 3\n");
  const Section log = Section(root, "", "", problems).section("log");
  EXPECT_TRUE(log.is_map());
  EXPECT_EQ(log.path(), "log");
  EXPECT_EQ(log.path_of("level"), "log.level");
  EXPECT_EQ(log.find("level"), nullptr);
  EXPECT_TRUE(log.list("level").empty());
  EXPECT_EQ(problems.count(), 0U);
}

TEST(Section, OfAnotherShapeSaysSoOnce) {
  Problems problems("f");
  const Node root = tree_of("log: [info]\n");
  const Section log = Section(root, "", "", problems).section("log");
  EXPECT_FALSE(log.is_map());
  EXPECT_EQ(log.find("level"), nullptr);
  EXPECT_THAT(shown_of(problems), ElementsAre(StartsWith("f:1: log: must be a map of keys")));
}

TEST(Section, OfAListIsNamedByItsPlace) {
  Problems problems("f");
  const Node root = tree_of("- {url: 'http://h:1', roel: decode}\n");
  const Section section(root.items.at(0), "models[2].workers[0]", "models[].workers[]", problems);
  EXPECT_EQ(section.path_of("url"), "models[2].workers[0].url");
  EXPECT_THAT(shown_of(problems),
              ElementsAre("f:1: models[2].workers[0]: unknown key 'roel'; did you mean role?"));
}

TEST(Section, MayKnowFurtherKeys) {
  constexpr std::array<std::string_view, 1> kAlso{"draining"};
  Problems problems("f");
  const Node root = tree_of("draining: true\ntaint: a\n");
  const Section section(root, "", "models[].workers[]", problems, kAlso);
  EXPECT_THAT(shown_of(problems), ElementsAre("f:2: unknown key 'taint'; did you mean taints?"));
}

TEST(Section, AKeyOfAnotherPlaceIsShownThere) {
  const std::vector<std::pair<std::string_view, std::string_view>> all{
      {"level", "log.level"},
      {"snapshot", "kv_index.snapshot"},
      {"backoff_max", "health.backoff_max"},
      {"url", "models[].workers[].url"},
      {"retries", "models[].retries"}};
  for (const auto& [key, place] : all) {
    EXPECT_THAT(
        refused(with_fleet(fmt::format("{}: 1", key))),
        ElementsAre(fmt::format("baton.yaml:1: unknown key '{}'; did you mean {}?", key, place)));
  }
}

TEST(Section, AKeyLikeNoOtherGetsTheListOfThose) {
  EXPECT_THAT(refused(with_fleet("probe:\n  xyzzyx: 1")),
              ElementsAre("baton.yaml:2: probe: unknown key 'xyzzyx'; known here: enabled, "
                          "self_test"));
  EXPECT_THAT(refused(with_fleet("log:\n  '': 1")),
              ElementsAre(StartsWith("baton.yaml:2: log: unknown key ''; ")));
}

TEST(Section, AKeyThatStandsThriceIsReportedTwice) {
  EXPECT_THAT(refused(with_fleet("threads: 1\nthreads: 2\n\nthreads: 3")),
              ElementsAre("baton.yaml:2: threads: stands twice, first in line 1; remove one",
                          "baton.yaml:4: threads: stands twice, first in line 1; remove one"));
}

TEST(Section, AFlagWithTheKeyOfTheFileIsNoSecondKey) {
  EXPECT_EQ(accepted(with_fleet("threads: 1"), {{"threads", "2"}}).threads, 2U);
}

}  // namespace
}  // namespace baton::config
