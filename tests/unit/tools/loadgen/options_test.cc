// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

TEST(Plan, EachNumberTakesItsEndsAndNothingBeyond) {
  struct Bound {
    std::string_view message;
    std::function<void(Options&, double)> set;
    double least;
    double most;
    double below;
    double above;
  };
  const auto tokens = [](auto member) {
    return [member](Options& o, double value) {
      o.workload.*member = static_cast<std::uint32_t>(value);
    };
  };
  const std::vector<Bound> all{
      {"--input-tokens must be from 1 to 10000000, not ", tokens(&WorkloadOptions::input_tokens), 1,
       1e7, 0, 1e7 + 1},
      {"--output-tokens must be from 1 to 10000000, not ", tokens(&WorkloadOptions::output_tokens),
       1, 1e7, 0, 1e7 + 1},
      {"--prefix-tokens must be from 0 to 10000000, not ", tokens(&WorkloadOptions::prefix_tokens),
       0, 1e7, 1e7 + 2, 1e7 + 1},
      {"--document-tokens must be from 1 to 10000000, not ",
       tokens(&WorkloadOptions::document_tokens), 1, 1e7, 0, 1e7 + 1},
      {"--other-tokens must be from 1 to 10000000, not ", tokens(&WorkloadOptions::other_tokens), 1,
       1e7, 0, 1e7 + 1},
      {"--long-tokens must be from 1 to 10000000, not ", tokens(&WorkloadOptions::long_tokens), 1,
       1e7, 0, 1e7 + 1},
      {"--short-tokens must be from 1 to 10000000, not ", tokens(&WorkloadOptions::short_tokens), 1,
       1e7, 0, 1e7 + 1},
      {"--turns must be from 1 to 1000", tokens(&WorkloadOptions::turns), 1, 1000, 0, 1001},
      {"--spread is a share: give a number from 0 to 1, not ",
       [](Options& o, double value) { o.workload.spread = value; }, 0, 1, -0.01, 1.01},
      {"--hot-share is a share: give a number from 0 to 1, not ",
       [](Options& o, double value) { o.workload.hot_share = value; }, 0, 1, -0.01, 1.01},
      {"--long-share is a share: give a number from 0 to 1, not ",
       [](Options& o, double value) { o.workload.long_share = value; }, 0, 1, -0.01, 1.01},
      {"--rate must be above 0 and at most 1000000 requests a second",
       [](Options& o, double value) { o.rate = value; }, 1e-9, 1e6, 0, 1e6 + 1},
      {"--concurrency must be from 1 to 100000",
       [](Options& o, double value) { o.concurrency = static_cast<std::uint32_t>(value); }, 1, 1e5,
       0, 1e5 + 1},
      {"--vocabulary must be from 1000 to 10000000",
       [](Options& o, double value) { o.vocabulary = static_cast<std::uint32_t>(value); }, 1000,
       1e7, 999, 1e7 + 1},
      {"--threads must be from 1 to 256",
       [](Options& o, double value) { o.threads = static_cast<std::uint32_t>(value); }, 1, 256, 0,
       257},
  };
  for (const auto& [message, set, least, most, below, above] : all) {
    for (const double good : {least, most}) {
      EXPECT_EQ(complaint([&](Options& o) { set(o, good); }), "accepted") << message << good;
    }
    for (const double bad : {below, above}) {
      EXPECT_THAT(complaint([&](Options& o) { set(o, bad); }),
                  testing::StartsWith(std::string(message)));
    }
  }
}

TEST(Plan, NoNumberIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(complaint([&](Options& o) { o.rate = nan; }), HasSubstr("--rate"));
  EXPECT_THAT(complaint([&](Options& o) { o.rate = infinite; }), HasSubstr("--rate"));
  EXPECT_THAT(complaint([&](Options& o) { o.workload.spread = nan; }), HasSubstr("--spread"));
  for (const double scale : {nan, infinite, -1.0}) {
    EXPECT_THAT(complaint([&](Options& o) { o.workload.time_scale = scale; }),
                HasSubstr("--time-scale must be above 0"));
  }
  EXPECT_THAT(complaint([&](Options& o) { o.slo_ttft_ms = nan; }),
              HasSubstr("--slo-ttft must be above 0 milliseconds"));
  EXPECT_THAT(complaint([&](Options& o) { o.slo_itl_ms = -1; }), HasSubstr("--slo-itl"));
}

TEST(Plan, AWarmUpOfEachKindLeavesSomethingToMeasure) {
  const auto with = [](std::string warmup, std::optional<std::uint64_t> requests,
                       std::optional<std::chrono::milliseconds> duration) {
    return complaint([&](Options& o) {
      o.warmup = std::move(warmup);
      o.requests = requests;
      o.duration = duration;
    });
  };
  using std::chrono::seconds;
  EXPECT_EQ(with("9", 10, {}), "accepted");
  EXPECT_EQ(with("10", 10, {}),
            "--warmup 10 leaves nothing to measure of 10 requests; raise --requests");
  EXPECT_EQ(with("1999ms", {}, seconds(2)), "accepted");
  EXPECT_EQ(with("2s", {}, seconds(2)), "--warmup 2s leaves nothing to measure; raise --duration");
  // A number of requests says nothing of a duration, and the other way round.
  EXPECT_EQ(with("5000", {}, seconds(2)), "accepted");
  EXPECT_EQ(with("1h", 10, {}), "accepted");
  EXPECT_EQ(with("0", 1, {}), "accepted");
  EXPECT_EQ(with("0s", 1, {}), "accepted");
  EXPECT_THAT(with("1000000001", {}, seconds(2)),
              testing::StartsWith("--warmup: '1000000001' is not a whole number"));
  EXPECT_THAT(with("-1s", {}, {}), HasSubstr("; or give a number of requests"));
}

TEST(Plan, KeepsTheRequestsAndTheDurationThatAreGiven) {
  Options options = some();
  options.requests = 7;
  options.duration = std::chrono::seconds(3);
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->requests, 7U);
  EXPECT_EQ(plan->duration, std::chrono::seconds(3));
  options.rate = 5;
  EXPECT_TRUE(make_plan(options)->open_loop);
  EXPECT_EQ(make_plan(options)->options.concurrency, std::nullopt);
}

TEST(Plan, AHeaderHasANameAndAValue) {
  for (const std::string header : {"A: b", "A:", "A: b: c"}) {
    EXPECT_EQ(complaint([&](Options& o) { o.headers = {header}; }), "accepted") << header;
  }
  for (const std::string header : {"", "A", ": b", "A: b\n", "A: b\r"}) {
    EXPECT_EQ(complaint([&](Options& o) { o.headers = {"Good: one", header}; }),
              "--header '" + header + "' is not of the form 'Name: value'");
  }
}

TEST(Plan, ChatIsTextAndSaysSo) {
  Options options = some();
  options.api = Api::Chat;
  EXPECT_EQ(make_plan(options)->prompt, PromptKind::Text);
  options.prompt = PromptKind::Text;
  EXPECT_EQ(make_plan(options)->prompt, PromptKind::Text);
  options.api = Api::Completions;
  EXPECT_EQ(make_plan(options)->prompt, PromptKind::Text);
}

TEST(Plan, UrlsAreCheckedByTheirFlag) {
  EXPECT_EQ(complaint([](Options& o) { o.url = "https://h:1/"; }), "accepted");
  EXPECT_THAT(complaint([](Options& o) { o.url = "h:1"; }), testing::StartsWith("--url: 'h:1' "));
  EXPECT_THAT(complaint([](Options& o) { o.url = "http://h:1/v1"; }), testing::StartsWith("--url"));
  EXPECT_THAT(complaint([](Options& o) { o.admin = "h:1"; }),
              testing::StartsWith("--admin: 'h:1'"));
}

TEST(Plan, LimitsOfTheRunAreChecked) {
  EXPECT_EQ(complaint([](Options& o) { o.max_in_flight = 0; }),
            "--max-in-flight must be at least 1");
  EXPECT_EQ(complaint([](Options& o) { o.samples = 1'000'001; }),
            "--samples must be at most 1000000");
  EXPECT_EQ(complaint([](Options& o) { o.samples = 0; }), "accepted");
}

TEST(Workloads, EveryEnumHasItsWord) {
  EXPECT_EQ(to_string(Api::Chat), "chat");
  EXPECT_EQ(to_string(Api::Completions), "completions");
  EXPECT_EQ(to_string(PromptKind::Text), "text");
  EXPECT_EQ(to_string(PromptKind::Tokens), "tokens");
  EXPECT_EQ(to_string(Arrivals::Even), "even");
  EXPECT_EQ(to_string(Arrivals::Poisson), "poisson");
  EXPECT_EQ(parse_workload("multi-turn"), WorkloadKind::MultiTurn);
  EXPECT_EQ(parse_workload("Trace"), std::nullopt);
  EXPECT_EQ(parse_workload(""), std::nullopt);
}

}  // namespace
}  // namespace baton::loadgen
