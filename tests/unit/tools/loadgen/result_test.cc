// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/result.h"

#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace baton::loadgen {
namespace {

using OrderedJson = nlohmann::ordered_json;
using std::chrono::milliseconds;
using testing::HasSubstr;

Plan some_plan() {
  Options options;
  options.url = "http://127.0.0.1:8080";
  options.rate = 20;
  options.slo_ttft_ms = 25;
  options.label = "mine";
  options.workload.kind = WorkloadKind::SharedPrefix;
  return *make_plan(options);
}

// Ten answers, one each 100 ms from 1 s on; TTFT 11, 12 … 30 ms; and one that was refused.
Outcome some_outcome() {
  Tally tally({.ttft_ms = 25, .itl_ms = {}}, 5, 1);
  for (int i = 0; i < 20; ++i) {
    RequestRecord request;
    request.sent = milliseconds(1000 + 100 * i);
    request.first_token = request.sent + milliseconds(11 + i);
    request.last_token = *request.first_token;
    request.ended = request.sent + milliseconds(100);
    request.ending = Ending::Completed;
    request.events = 1;
    request.output_tokens = 4;
    request.prompt_tokens = 100;
    request.cached_tokens = i < 10 ? 0 : 50;
    request.prefill_worker = i % 4 == 0 ? "p2" : "p1";
    request.decode_worker = "d1";
    tally.sent(request.sent, milliseconds(0), true);
    tally.first_token(*request.first_token, *request.ttft(), true);
    tally.ended(request);
  }
  RequestRecord refused;
  refused.sent = milliseconds(2000);
  refused.ended = milliseconds(2004);
  refused.ending = Ending::Refused;
  refused.error = "http_429 engine_overloaded";
  tally.sent(refused.sent, milliseconds(1), true);
  tally.ended(refused);
  return {.tally = std::move(tally),
          .fleet = {},
          .known_workers = {{"decode", "d1"}, {"decode", "d2"}},
          .model = "demo",
          .started_at = std::chrono::system_clock::from_time_t(0),
          .elapsed = milliseconds(3200)};
}

TEST(Result, HasTheFiguresOfTheRun) {
  const OrderedJson result = result_json(some_plan(), some_outcome());
  EXPECT_EQ(result["format"], "baton-bench");
  EXPECT_EQ(result["version"], 1);
  EXPECT_EQ(result["label"], "mine");
  EXPECT_EQ(result["started_at"], "1970-01-01T00:00:00Z");
  const OrderedJson& summary = result["summary"];
  EXPECT_EQ(summary["measured_from_s"], 1.0);
  EXPECT_EQ(summary["measured_s"], 2.0);  // from 1 s to 3 s
  EXPECT_EQ(summary["requests"]["completed"], 20);
  EXPECT_EQ(summary["requests"]["refused"], 1);
  EXPECT_EQ(summary["requests_per_s"], 10.0);
  EXPECT_EQ(summary["output_tokens_per_s"], 40.0);
  EXPECT_EQ(summary["hit_rate"], 0.25);
  EXPECT_EQ(summary["goodput"]["good"], 15);
  EXPECT_EQ(summary["goodput"]["requests_per_s"], 7.5);
  EXPECT_NEAR(summary["goodput"]["share"].get<double>(), 15.0 / 21, 1e-6);
  EXPECT_NEAR(summary["ttft_ms"]["p50"].get<double>(), 20, 0.2);
  EXPECT_EQ(summary["ttft_ms"]["max"], 30.0);
  EXPECT_EQ(summary["itl_ms"]["count"], 0);
  EXPECT_EQ(summary["refused_ms"]["max"], 4.0);
  EXPECT_EQ(summary["errors"]["http_429 engine_overloaded"], 1);
}

TEST(Result, TellsHowEvenTheLoadWasAndCountsWhoGotNothing) {
  const OrderedJson result = result_json(some_plan(), some_outcome());
  // p1 served 15 of 20, d1 all of them and d2 none.
  EXPECT_EQ(result["balance"]["prefill"]["requests"]["max_over_mean"], 1.5);
  EXPECT_EQ(result["balance"]["decode"]["requests"]["max_over_mean"], 2.0);
  ASSERT_EQ(result["workers"].size(), 4U);
  for (const OrderedJson& worker : result["workers"]) {
    if (worker["name"] == "p2") {
      EXPECT_EQ(worker["prompt_tokens"], 500);
      EXPECT_EQ(worker["computed_tokens"], 500 - worker["cached_tokens"].get<int>());
    }
    if (worker["name"] == "d2") EXPECT_EQ(worker["requests"], 0);
  }
}

TEST(Result, HasASeriesAHistogramAndSomeSamplesInOrder) {
  const OrderedJson result = result_json(some_plan(), some_outcome());
  const OrderedJson& points = result["series"]["points"];
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[0]["sent"], 0);
  EXPECT_FALSE(points[0].contains("ttft_p50"));
  EXPECT_EQ(points[1]["sent"], 10);
  EXPECT_EQ(points[2]["refused"], 1);
  std::uint64_t counted = 0;
  for (const OrderedJson& bucket : result["histograms"]["ttft_ms"])
    counted += bucket[1].get<std::uint64_t>();
  EXPECT_EQ(counted, 20U);
  const OrderedJson& samples = result["samples"];
  ASSERT_EQ(samples.size(), 5U);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_LE(samples[i - 1]["t"], samples[i]["t"]);
}

TEST(Result, SaysWhatWasAskedFor) {
  const OrderedJson configuration = result_json(some_plan(), some_outcome())["configuration"];
  EXPECT_EQ(configuration["loop"], "open");
  EXPECT_EQ(configuration["rate"], 20.0);
  EXPECT_TRUE(configuration["concurrency"].is_null());
  EXPECT_EQ(configuration["workload"]["kind"], "shared-prefix");
  EXPECT_EQ(configuration["workload"]["prefix_tokens"], 2048);
  EXPECT_EQ(configuration["slo_ttft_ms"], 25.0);
}

TEST(Result, HasWhatTheRouterToldInColumns) {
  Outcome outcome = some_outcome();
  outcome.fleet.add({.at_seconds = 0, .gauges = {{"in_flight", {{{"decode", "d1"}, 1}}}}});
  outcome.fleet.add({.at_seconds = 1,
                     .gauges = {{"in_flight", {{{"decode", "d1"}, 2}, {{"decode", "d2"}, 4}}}},
                     .prompt_tokens = 100,
                     .reported_cached = 40});
  const OrderedJson fleet = result_json(some_plan(), outcome)["fleet"];
  EXPECT_EQ(fleet["t"], OrderedJson({0.0, 1.0}));
  EXPECT_EQ(fleet["hit_rate"], OrderedJson({nullptr, 0.4}));
  const OrderedJson& columns = fleet["gauges"]["in_flight"];
  EXPECT_EQ(columns[0]["values"], OrderedJson({1.0, 2.0}));
  EXPECT_EQ(columns[1]["values"], OrderedJson({nullptr, 4.0}));
}

TEST(Result, ComesBackFromItsFile) {
  const test::TemporaryDirectory directory;
  const OrderedJson result = result_json(some_plan(), some_outcome());
  const std::string path = directory.write("result.json", result.dump());
  const auto read = read_result(path);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, result);

  directory.write("result.json", R"({"format":"baton-bench","version":99})");
  EXPECT_THAT(read_result(path).error().message(), HasSubstr("another version"));
  directory.write("result.json", "[]");
  EXPECT_THAT(read_result(path).error().message(), HasSubstr("--output FILE.json"));
  directory.remove("result.json");
  EXPECT_THAT(read_result(path).error().message(), HasSubstr("cannot read"));
}

TEST(Summary, TellsAPersonWhatMatters) {
  const std::string text = summary_text(result_json(some_plan(), some_outcome()));
  EXPECT_THAT(text, HasSubstr("20 completed, 1 refused, 0 failed of 21 sent"));
  EXPECT_THAT(text, HasSubstr("1 × http_429 engine_overloaded"));
  EXPECT_THAT(text, HasSubstr("10.00 requests/s"));
  EXPECT_THAT(text, HasSubstr("25.0 %"));
  EXPECT_THAT(text, HasSubstr("7.50 requests/s   71.4 % met the target"));
  EXPECT_THAT(text, HasSubstr("requests 1.50"));
}

TEST(Summary, DoesNotNeedAnyAnswer) {
  Outcome nothing{.tally = Tally({}, 5, 1), .fleet = {}, .known_workers = {}, .model = "m"};
  const std::string text = summary_text(result_json(some_plan(), nothing));
  EXPECT_THAT(text, HasSubstr("0 completed"));
  EXPECT_THAT(text, HasSubstr("not told"));
}

}  // namespace
}  // namespace baton::loadgen
