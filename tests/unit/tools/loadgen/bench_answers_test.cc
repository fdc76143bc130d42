// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// What a run makes of answers that are cut, garbled or end in another way than they should.
#include "support/fake_engine.h"
#include "support/temporary_directory.h"
#include "tools/loadgen/bench.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::loadgen {
namespace {

using test::FakeEngine;
using test::FakePeer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::string_view kEventStream = "Content-Type: text/event-stream\r\n";

std::string event_of(std::string_view json) { return fmt::format("data: {}\n\n", json); }
std::string word_event(std::string_view word) {
  return event_of(fmt::format(R"({{"choices":[{{"text":"{}"}}]}})", word));
}
const std::string kDone = "data: [DONE]\n\n";

std::string streamed(std::string_view events) { return test::response(200, events, kEventStream); }

Options one_request_to(const FakeEngine& engine) {
  Options options;
  options.url = "http://" + engine.endpoint().to_string();
  options.model = "demo";
  options.concurrency = 1;
  options.requests = 1;
  options.workload.input_tokens = 4;
  options.timeout = std::chrono::seconds(5);
  return options;
}

Tally tally_of(const Options& options) {
  const auto plan = make_plan(options);
  EXPECT_TRUE(plan) << plan.error().message();
  auto outcome = run_bench(*plan, Progress::Style::Quiet, 0, [](std::string_view) {});
  EXPECT_TRUE(outcome) << outcome.error().message();
  return outcome->tally;
}

// The tally of one request that gets these bytes, after which the connection closes.
Tally after(const std::string& bytes) {
  FakeEngine engine([&bytes](FakePeer& peer) {
    if (peer.read_request()) peer.write(bytes);
  });
  return tally_of(one_request_to(engine));
}

TEST(BenchAnswers, AWholeStreamIsAnAnswer) {
  const Tally tally = after(streamed(word_event("a") + word_event("b") + kDone));
  EXPECT_EQ(tally.completed, 1U);
  EXPECT_EQ(tally.output_tokens, 2U);  // without usage, an event is a token
  EXPECT_EQ(tally.prompt_tokens, 4U);  // what was sent
  EXPECT_EQ(tally.with_cached, 0U);
  EXPECT_TRUE(tally.errors.empty());
}

// Cut at any place: in the head, in an event, between events, before the end was said.
TEST(BenchAnswers, AStreamCutAnywhereIsNoAnswer) {
  const std::string whole = streamed(word_event("a") + word_event("b") + kDone);
  const std::size_t body = whole.find("\r\n\r\n") + 4;
  std::vector<std::size_t> cuts{1, 20, body - 2, body, body + 3, whole.size() - 1};
  cuts.push_back(whole.find("\n\n", body) + 2);
  cuts.push_back(whole.find("[DONE]"));
  for (const std::size_t cut : cuts) {
    const Tally tally = after(whole.substr(0, cut));
    EXPECT_EQ(tally.completed, 0U) << cut;
    EXPECT_EQ(tally.failed, 1U) << cut;
    EXPECT_EQ(tally.output_tokens, 0U) << cut;
    ASSERT_EQ(tally.errors.size(), 1U) << cut;
    EXPECT_EQ(tally.errors.begin()->first, "broken") << cut;
  }
}

TEST(BenchAnswers, WhatCameOfACutStreamIsInTheSeriesAndInTheTimes) {
  const std::string whole = streamed(word_event("a") + word_event("b") + kDone);
  const Tally tally = after(whole.substr(0, whole.find("[DONE]")));
  EXPECT_EQ(tally.ttft.count(), 1U);
  EXPECT_EQ(tally.itl.count(), 1U);
  std::uint64_t tokens = 0;
  for (const Moment& moment : tally.series.moments()) tokens += moment.output_tokens;
  EXPECT_EQ(tokens, 2U);
}

TEST(BenchAnswers, AStreamThatEndsWithoutSayingSoIsNoAnswer) {
  const Tally tally = after(streamed(word_event("a")));
  EXPECT_EQ(tally.completed, 0U);
  EXPECT_THAT(tally.errors, ElementsAre(Pair("unfinished", 1)));
}

TEST(BenchAnswers, AnErrorInTheStreamIsItsError) {
  const Tally tally =
      after(streamed(word_event("a") + event_of(R"({"error":{"code":"kv_lost"}})") + kDone));
  EXPECT_EQ(tally.failed, 1U);
  EXPECT_THAT(tally.errors, ElementsAre(Pair("kv_lost", 1)));
}

TEST(BenchAnswers, AnEventThatIsNoJsonIsAnError) {
  EXPECT_THAT(after(streamed("data: {nonsense\n\n" + kDone)).errors,
              ElementsAre(Pair("bad_event", 1)));
}

TEST(BenchAnswers, AnAnswerThatIsNotStreamedIsAnError) {
  EXPECT_THAT(after(test::response(200, R"({"choices":[{"text":"a"}]})",
                                   "Content-Type: application/json\r\n"))
                  .errors,
              ElementsAre(Pair("not_a_stream", 1)));
}

TEST(BenchAnswers, UsageCountsInsteadOfEvents) {
  const Tally tally =
      after(streamed(word_event("two words") +
                     event_of(R"({"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":7,)"
                              R"("prompt_tokens_details":{"cached_tokens":32}}})") +
                     kDone));
  EXPECT_EQ(tally.completed, 1U);
  EXPECT_EQ(tally.output_tokens, 7U);
  EXPECT_EQ(tally.prompt_tokens, 40U);
  EXPECT_EQ(tally.cached_tokens, 32U);
  EXPECT_EQ(tally.cacheable_tokens, 40U);
}

TEST(BenchAnswers, AStatusThatIsNoRefusalIsAFailure) {
  for (const int status : {400, 401, 404, 500, 502, 504}) {
    const Tally tally = after(test::response(status, "{}"));
    EXPECT_EQ(tally.failed, 1U) << status;
    EXPECT_EQ(tally.refused, 0U) << status;
    EXPECT_THAT(tally.errors, ElementsAre(Pair(fmt::format("http_{}", status), 1)));
  }
  for (const int status : {429, 503}) {
    const Tally tally = after(test::response(status, "{}", "Retry-After: 0\r\n"));
    EXPECT_EQ(tally.refused, 1U) << status;
    EXPECT_EQ(tally.refused_with_retry_after, 1U) << status;
    EXPECT_EQ(tally.failed, 0U) << status;
  }
}

TEST(BenchAnswers, AStreamThatStallsIsGivenUpAfterItsTimeout) {
  FakeEngine engine([](FakePeer& peer) {
    if (!peer.read_request()) return;
    const std::string whole = streamed(word_event("a") + word_event("b") + kDone);
    peer.write(whole.substr(0, whole.find("\n\n", whole.find("data:")) + 2));
    peer.wait_for_drop();
  });
  Options options = one_request_to(engine);
  options.timeout = std::chrono::milliseconds(200);
  const Tally tally = tally_of(options);
  EXPECT_THAT(tally.errors, ElementsAre(Pair("timeout", 1)));
  EXPECT_EQ(tally.completed, 0U);
  EXPECT_TRUE(engine.wait_for_drops(1));
}

// A conversation whose answer failed does not go on as if it had been said.
TEST(BenchAnswers, AConversationEndsWithItsFirstFailure) {
  FakeEngine engine(test::always(test::response(500, "{}")));
  Options options = one_request_to(engine);
  options.workload.kind = WorkloadKind::MultiTurn;
  options.workload.turns = 5;
  options.workload.prefix_tokens = 0;
  options.workload.think_time = std::chrono::milliseconds(1);
  options.requests = 2;
  const Tally tally = tally_of(options);
  EXPECT_EQ(tally.failed, 2U);
  const auto seen = engine.requests();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_NE(seen[0].body, seen[1].body);  // the first turns of two conversations
}

TEST(BenchAnswers, EachTraceRequestIsSentOnceWithItsLengths) {
  const test::TemporaryDirectory directory;
  const std::string trace = directory.write(
      "trace.jsonl", R"({"timestamp":0,"input_length":40,"output_length":3,"hash_ids":[1,2,3]})"
                     "\n"
                     R"({"timestamp":4,"input_length":20,"output_length":5,"hash_ids":[1,2]})"
                     "\n");
  FakeEngine engine(test::always(streamed(word_event("a") + kDone)));
  Options options = one_request_to(engine);
  options.concurrency = {};
  options.requests = {};
  options.workload.kind = WorkloadKind::Trace;
  options.workload.trace_file = trace;
  options.workload.trace_block = 16;
  options.workload.time_scale = 4;
  const Tally tally = tally_of(options);
  EXPECT_EQ(tally.completed, 2U);
  EXPECT_EQ(tally.prompt_tokens, 60U);
  using Json = nlohmann::json;
  std::vector<Json> bodies;
  for (const auto& request : engine.requests()) bodies.push_back(Json::parse(request.body));
  ASSERT_EQ(bodies.size(), 2U);
  if (bodies[0]["prompt"].size() == 20U) std::swap(bodies[0], bodies[1]);  // two connections
  EXPECT_EQ(bodies[0]["prompt"].size(), 40U);
  EXPECT_EQ(bodies[1]["prompt"].size(), 20U);
  EXPECT_EQ(bodies[0]["max_tokens"], 3);
  EXPECT_EQ(bodies[1]["max_tokens"], 5);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(bodies[0]["prompt"][i], bodies[1]["prompt"][i]);
}

TEST(BenchAnswers, ATraceThatCannotBeReadEndsTheRunWithItsLine) {
  const test::TemporaryDirectory directory;
  FakeEngine engine(test::always(streamed(kDone)));
  Options options = one_request_to(engine);
  options.concurrency = {};
  options.workload.kind = WorkloadKind::Trace;
  options.workload.trace_file = directory.write("trace.jsonl", "\n{}\n");
  const auto outcome =
      run_bench(*make_plan(options), Progress::Style::Quiet, 0, [](std::string_view) {});
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("trace.jsonl: line 2: 'timestamp'"));
  EXPECT_TRUE(engine.requests().empty());
}

}  // namespace
}  // namespace baton::loadgen
