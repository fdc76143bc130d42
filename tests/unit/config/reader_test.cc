// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/reader.h"

#include "unit/config/parsing.h"

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

}  // namespace
}  // namespace baton::config
