// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/result.h"

#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

// So many requests, each a millisecond slower than the one before, all at once.
Outcome counted_outcome(int count) {
  Tally tally({}, 10, 1);
  for (int i = 1; i <= count; ++i) {
    RequestRecord request;
    request.first_token = milliseconds(i);
    request.last_token = milliseconds(3 * i);
    request.ended = milliseconds(3 * i);
    request.ending = Ending::Completed;
    request.events = 3;
    request.output_tokens = 3;
    request.prompt_tokens = 10;
    tally.sent(request.sent, std::chrono::microseconds(i), true);
    tally.first_token(*request.first_token, milliseconds(i), true);
    tally.next_token(milliseconds(2 * i), milliseconds(i), true);
    tally.next_token(milliseconds(3 * i), milliseconds(i), true);
    tally.ended(request);
  }
  return {.tally = std::move(tally), .fleet = {}, .known_workers = {}, .model = "m"};
}

TEST(Result, DurationsOfKnownRequestsAreTheirPercentiles) {
  const OrderedJson summary = result_json(some_plan(), counted_outcome(100))["summary"];
  // 1, 2 … 100 ms: a histogram of 128 buckets a doubling is off by less than a part in 128.
  const OrderedJson& ttft = summary["ttft_ms"];
  EXPECT_EQ(ttft["count"], 100);
  EXPECT_EQ(ttft["mean"], 50.5);
  EXPECT_EQ(ttft["min"], 1.0);
  EXPECT_EQ(ttft["max"], 100.0);
  EXPECT_NEAR(ttft["p50"].get<double>(), 50, 50.0 / 128);
  EXPECT_NEAR(ttft["p90"].get<double>(), 90, 90.0 / 128);
  EXPECT_NEAR(ttft["p99"].get<double>(), 99, 99.0 / 128);
  EXPECT_EQ(summary["itl_ms"]["count"], 200);
  EXPECT_EQ(summary["total_ms"]["max"], 300.0);
  EXPECT_EQ(summary["total_ms"]["mean"], 151.5);
  EXPECT_EQ(summary["send_lateness_ms"]["max"], 0.1);
  EXPECT_EQ(summary["refused_ms"], OrderedJson::parse(R"({"count":0})"));
  // 100 answers, 300 tokens in the 0.3 s to the end of the last.
  EXPECT_EQ(summary["measured_s"], 0.3);
  EXPECT_EQ(summary["requests_per_s"], 333.333);
  EXPECT_EQ(summary["output_tokens_per_s"], 1000.0);
  EXPECT_EQ(summary["prompt_tokens_per_s"], 3333.333);
}

TEST(Result, OfNothingHasNoRatesAndNoShares) {
  const Outcome nothing{.tally = Tally({}, 5, 1), .fleet = {}, .known_workers = {}, .model = "m"};
  Plan plan = some_plan();
  plan.options.label = "";
  const OrderedJson result = result_json(plan, nothing);
  EXPECT_EQ(result["label"], "shared-prefix");
  const OrderedJson& summary = result["summary"];
  EXPECT_EQ(summary["requests_per_s"], 0);
  EXPECT_TRUE(summary["hit_rate"].is_null());
  EXPECT_TRUE(summary["cached_tokens"].is_null());
  EXPECT_TRUE(summary["goodput"].is_null());
  EXPECT_EQ(summary["errors"], OrderedJson::object());
  EXPECT_EQ(result["workers"], OrderedJson::array());
  EXPECT_EQ(result["balance"], OrderedJson::object());
  EXPECT_EQ(result["series"]["points"], OrderedJson::array());
  EXPECT_EQ(result["samples"], OrderedJson::array());
  EXPECT_TRUE(result["fleet"].is_null());
}

TEST(Result, NothingThatWasCachedIsNotTheSameAsNothingTold) {
  Tally tally({}, 5, 1);
  RequestRecord request;
  request.ending = Ending::Completed;
  request.prompt_tokens = 50;
  tally.ended(request);
  Outcome outcome{.tally = tally, .fleet = {}, .known_workers = {}, .model = "m"};
  EXPECT_TRUE(result_json(some_plan(), outcome)["summary"]["hit_rate"].is_null());
  request.cached_tokens = 0;
  outcome.tally.ended(request);
  const OrderedJson summary = result_json(some_plan(), outcome)["summary"];
  EXPECT_EQ(summary["hit_rate"], 0.0);
  EXPECT_EQ(summary["cached_tokens"], 0);
}

TEST(Result, RequestsThatWereNotGoodAreAllThatWereWanted) {
  // One good, one late, one refused, one failed, two not sent: a sixth.
  Tally tally({.ttft_ms = 10, .itl_ms = {}}, 5, 1);
  for (const int ttft : {5, 50}) {
    RequestRecord request;
    request.ending = Ending::Completed;
    request.first_token = milliseconds(ttft);
    request.ended = milliseconds(100);
    tally.ended(request);
  }
  for (const Ending ending : {Ending::Refused, Ending::Failed, Ending::Cut}) {
    RequestRecord request;
    request.ending = ending;
    request.error = "x";
    tally.ended(request);
  }
  tally.not_sent();
  tally.not_sent();
  const OrderedJson goodput = result_json(
      some_plan(),
      {.tally = tally, .fleet = {}, .known_workers = {}, .model = "m"})["summary"]["goodput"];
  EXPECT_EQ(goodput["good"], 1);
  EXPECT_EQ(goodput["share"], 0.166667);
  EXPECT_EQ(goodput["requests_per_s"], 10.0);  // in 0.1 s
}

TEST(Result, BalanceIsTheBusiestAgainstTheMean) {
  Tally tally({}, 0, 1);
  const auto serve = [&tally](const char* prefill, const char* decode, std::uint64_t output) {
    RequestRecord request;
    request.ending = Ending::Completed;
    request.prefill_worker = prefill;
    request.decode_worker = decode;
    request.prompt_tokens = 100;
    request.cached_tokens = 25;
    request.output_tokens = output;
    tally.ended(request);
  };
  serve("p1", "d1", 10);
  serve("p1", "d2", 20);
  serve("p2", "d1", 30);
  const OrderedJson result = result_json(
      some_plan(),
      {.tally = tally, .fleet = {}, .known_workers = {{"decode", "idle"}}, .model = "m"});
  const OrderedJson& balance = result["balance"];
  EXPECT_EQ(balance["prefill"]["requests"],
            (OrderedJson{{"max", 2.0}, {"mean", 1.5}, {"max_over_mean", 1.333}}));
  EXPECT_EQ(balance["prefill"]["computed_tokens"],
            (OrderedJson{{"max", 150.0}, {"mean", 112.5}, {"max_over_mean", 1.333}}));
  EXPECT_FALSE(balance["prefill"].contains("output_tokens"));  // prefill workers answer nothing
  EXPECT_EQ(balance["decode"]["output_tokens"],
            (OrderedJson{{"max", 40.0}, {"mean", 20.0}, {"max_over_mean", 2.0}}));
}

TEST(Result, EachWorkloadSaysItsOwnOptions) {
  const auto said = [](WorkloadKind kind) {
    Options options;
    options.url = "http://127.0.0.1:1";
    options.workload.kind = kind;
    const OrderedJson workload =
        result_json(*make_plan(options), {.tally = Tally({}, 0, 1),
                                          .fleet = {},
                                          .known_workers = {},
                                          .model = "m"})["configuration"]["workload"];
    std::vector<std::string> keys;
    for (const auto& [key, value] : workload.items()) keys.push_back(key);
    return keys;
  };
  using testing::ElementsAre;
  EXPECT_THAT(said(WorkloadKind::Distinct),
              ElementsAre("kind", "seed", "input_tokens", "output_tokens", "spread"));
  EXPECT_THAT(said(WorkloadKind::SharedPrefix),
              ElementsAre("kind", "seed", "prefix_tokens", "groups", "input_tokens",
                          "output_tokens", "spread"));
  EXPECT_THAT(said(WorkloadKind::MultiTurn),
              ElementsAre("kind", "seed", "prefix_tokens", "turns", "think_time_s", "input_tokens",
                          "output_tokens", "spread"));
  EXPECT_THAT(said(WorkloadKind::HotDocument),
              ElementsAre("kind", "seed", "document_tokens", "hot_share", "other_tokens",
                          "input_tokens", "output_tokens", "spread"));
  EXPECT_THAT(said(WorkloadKind::LongShort),
              ElementsAre("kind", "seed", "long_tokens", "short_tokens", "long_share",
                          "output_tokens", "spread"));
  EXPECT_THAT(said(WorkloadKind::Trace), ElementsAre("kind", "seed", "trace", "time_scale"));
}

TEST(Result, ACounterThatStartsAnewIsNoHit) {
  Outcome outcome = some_outcome();
  const auto moment = [](double at, double prompt, double cached) {
    return FleetMoment{
        .at_seconds = at, .gauges = {}, .prompt_tokens = prompt, .reported_cached = cached};
  };
  outcome.fleet.add(moment(0, 1000, 500));
  outcome.fleet.add(moment(1, 1100, 550));
  outcome.fleet.add(moment(2, 10, 5));  // the router was restarted
  outcome.fleet.add(moment(3, 10, 5));  // nothing came
  outcome.fleet.add(moment(4, 5000, 1000));
  const OrderedJson fleet = result_json(some_plan(), outcome)["fleet"];
  EXPECT_EQ(fleet["hit_rate"], OrderedJson({nullptr, 0.5, nullptr, nullptr, 0.199399}));
}

TEST(Result, WithoutReportsThereAreNoHitRates) {
  Outcome outcome = some_outcome();
  for (int i = 0; i < 3; ++i) {
    outcome.fleet.add(
        {.at_seconds = static_cast<double>(i), .gauges = {}, .prompt_tokens = 100.0 * i});
  }
  EXPECT_EQ(result_json(some_plan(), outcome)["fleet"]["hit_rate"],
            OrderedJson({nullptr, nullptr, nullptr}));
}

TEST(Result, FilesOfOthersAreRefused) {
  const test::TemporaryDirectory directory;
  for (const std::string text : {"", "{", "null", "7", "{}", R"({"format":7})",
                                 R"({"format":"baton"})", R"({"version":1})"}) {
    const std::string path = directory.write("other.json", text);
    EXPECT_EQ(read_result(path).error().message(),
              path + " is no result of baton bench; make one with --output FILE.json")
        << text;
  }
  for (const std::string version : {"0", "2", "null", "\"1\""}) {
    const std::string path =
        directory.write("other.json", R"({"format":"baton-bench","version":)" + version + "}");
    EXPECT_EQ(read_result(path).error().message(),
              path + " was written by another version of baton bench; run it again");
  }
}

}  // namespace
}  // namespace baton::loadgen
