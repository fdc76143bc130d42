// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace baton::loadgen {
namespace {

using testing::HasSubstr;

Options some() {
  Options options;
  options.url = "http://127.0.0.1:8080";
  return options;
}

// What is said about options that differ from good ones by `change`.
std::string complaint(const std::function<void(Options&)>& change) {
  Options options = some();
  change(options);
  const auto plan = make_plan(options);
  return plan ? "accepted" : plan.error().message();
}

TEST(Plan, IsAClosedLoopOfBoundedLengthWhereNothingIsSaid) {
  const auto plan = make_plan(some());
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->open_loop);
  EXPECT_EQ(plan->options.concurrency, kDefaultConcurrency);
  EXPECT_EQ(plan->requests, kDefaultRequests);
  EXPECT_EQ(plan->prompt, PromptKind::Tokens);
}

TEST(Plan, IsBoundedByTheDurationAloneWhereOnlyThatIsGiven) {
  Options options = some();
  options.duration = std::chrono::seconds(5);
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->requests);
  EXPECT_EQ(plan->duration, std::chrono::seconds(5));
}

TEST(Plan, ReplaysAllOfATraceInAnOpenLoop) {
  Options options = some();
  options.workload.kind = WorkloadKind::Trace;
  options.workload.trace_file = "trace.jsonl";
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->open_loop);
  EXPECT_FALSE(plan->requests);
}

TEST(Plan, BoundsATraceThatIsMadeUp) {
  Options options = some();
  options.workload.kind = WorkloadKind::Trace;
  EXPECT_EQ(make_plan(options)->requests, kDefaultRequests);
}

TEST(Plan, SpeaksTextWhereTheAnswerIsPartOfTheNextPrompt) {
  Options options = some();
  options.workload.kind = WorkloadKind::MultiTurn;
  EXPECT_EQ(make_plan(options)->prompt, PromptKind::Text);
  options.prompt = PromptKind::Tokens;
  EXPECT_EQ(make_plan(options)->prompt, PromptKind::Tokens);
}

TEST(Plan, TakesAWarmUpAsTimeOrAsRequests) {
  Options options = some();
  options.warmup = "3s";
  EXPECT_EQ(make_plan(options)->warmup_time, std::chrono::seconds(3));
  options.warmup = "20";
  EXPECT_EQ(make_plan(options)->warmup_requests, 20U);
}

TEST(Plan, SaysWhatToDoWhereFlagsMakeNoSense) {
  EXPECT_THAT(complaint([](Options& o) { o.url = ""; }), HasSubstr("--url http://HOST:PORT"));
  EXPECT_THAT(complaint([](Options& o) { o.url = "ftp://x"; }), HasSubstr("--url"));
  EXPECT_THAT(complaint([](Options& o) {
                o.rate = 1;
                o.concurrency = 1;
              }),
              HasSubstr("give one"));
  EXPECT_THAT(complaint([](Options& o) { o.rate = 0; }), HasSubstr("--rate must be above 0"));
  EXPECT_THAT(complaint([](Options& o) { o.concurrency = 0; }), HasSubstr("from 1"));
  EXPECT_THAT(complaint([](Options& o) { o.requests = 0; }), HasSubstr("--requests"));
  EXPECT_THAT(complaint([](Options& o) {
                o.api = Api::Chat;
                o.prompt = PromptKind::Tokens;
              }),
              HasSubstr("use --api completions"));
  EXPECT_THAT(complaint([](Options& o) { o.workload.trace_file = "x"; }),
              HasSubstr("--workload trace"));
  EXPECT_THAT(complaint([](Options& o) {
                o.workload.kind = WorkloadKind::Trace;
                o.rate = 3;
              }),
              HasSubstr("--time-scale"));
  EXPECT_THAT(complaint([](Options& o) { o.workload.time_scale = 0; }), HasSubstr("above 0"));
  EXPECT_THAT(complaint([](Options& o) { o.workload.hot_share = 2; }), HasSubstr("from 0 to 1"));
  EXPECT_THAT(complaint([](Options& o) { o.workload.input_tokens = 0; }),
              HasSubstr("--input-tokens"));
  EXPECT_THAT(complaint([](Options& o) { o.workload.turns = 0; }), HasSubstr("--turns"));
  EXPECT_THAT(complaint([](Options& o) { o.workload.groups = 0; }), HasSubstr("--groups"));
  EXPECT_THAT(complaint([](Options& o) { o.warmup = "1000"; }), HasSubstr("raise --requests"));
  EXPECT_THAT(complaint([](Options& o) { o.warmup = "soon"; }), HasSubstr("number of requests"));
  EXPECT_THAT(complaint([](Options& o) {
                o.duration = std::chrono::seconds(2);
                o.warmup = "2s";
              }),
              HasSubstr("raise --duration"));
  EXPECT_THAT(complaint([](Options& o) { o.headers = {"no colon"}; }), HasSubstr("Name: value"));
  EXPECT_THAT(complaint([](Options& o) { o.headers = {"A: b\r\nC: d"}; }),
              HasSubstr("Name: value"));
  EXPECT_THAT(complaint([](Options& o) { o.vocabulary = 5; }), HasSubstr("--vocabulary"));
  EXPECT_THAT(complaint([](Options& o) { o.threads = 0; }), HasSubstr("--threads"));
  EXPECT_THAT(complaint([](Options& o) { o.slo_itl_ms = 0; }), HasSubstr("--slo-itl"));
  EXPECT_THAT(complaint([](Options& o) { o.admin = "https://x:1"; }), HasSubstr("--admin"));
}

TEST(Workloads, HaveNamesThatCanBeReadBack) {
  for (const auto kind :
       {WorkloadKind::Distinct, WorkloadKind::SharedPrefix, WorkloadKind::MultiTurn,
        WorkloadKind::HotDocument, WorkloadKind::LongShort, WorkloadKind::Trace})
    EXPECT_EQ(parse_workload(to_string(kind)), kind);
  EXPECT_FALSE(parse_workload("everything"));
}

}  // namespace
}  // namespace baton::loadgen
