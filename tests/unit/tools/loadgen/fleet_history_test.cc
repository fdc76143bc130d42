// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/fleet_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::loadgen {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(FleetMoment, TakesFromAPageWhatConcernsWorkers) {
  const FleetMoment moment = read_metrics(R"(# HELP baton_worker_in_flight Legs running.
# TYPE baton_worker_in_flight gauge
baton_worker_in_flight{model="demo",worker="10.0.0.1:8000",role="prefill"} 3
baton_worker_in_flight{model="other",worker="10.0.0.1:8000",role="prefill"} 2
baton_worker_in_flight{model="demo",worker="10.0.0.2:8000",role="decode"} 5
baton_worker_changes_total{model="demo",worker="x",role="decode"} 9
baton_workers{model="demo",role="decode"} 1
baton_prompt_tokens_total{model="demo"} 100
baton_prompt_tokens_total{model="other"} 50
baton_kv_reported_tokens{model="demo",worker="10.0.0.1:8000"} 42
baton_nonsense
)",
                                          2.5);
  EXPECT_EQ(moment.at_seconds, 2.5);
  EXPECT_EQ(moment.prompt_tokens, 150);
  EXPECT_EQ(moment.reported_cached, 42);
  ASSERT_EQ(moment.gauges.size(), 1U);
  EXPECT_THAT(moment.gauges.at("in_flight"),
              ElementsAre(Pair(Pair("decode", "10.0.0.2:8000"), 5),
                          Pair(Pair("prefill", "10.0.0.1:8000"), 5)));
}

TEST(Workers, AreThoseOfTheModel) {
  EXPECT_THAT(read_workers(R"({"workers":[{"name":"a","role":"prefill","model":"m"},
                              {"name":"b","role":"aggregated","model":"m"},
                              {"name":"c","role":"decode","model":"other"}, 7]})",
                           "m"),
              ElementsAre(Pair("prefill", "a"), Pair("decode", "b")));
  EXPECT_TRUE(read_workers("no json", "m").empty());
  EXPECT_TRUE(read_workers("{}", "m").empty());
}

TEST(FleetHistory, StaysBoundedAndEvenlySpread) {
  FleetHistory history;
  for (int i = 0; i < 10'000; ++i)
    history.add({.at_seconds = static_cast<double>(i), .gauges = {}});
  const auto& moments = history.moments();
  EXPECT_LT(moments.size(), FleetHistory::kMost);
  EXPECT_GE(moments.size(), FleetHistory::kMost / 2);
  for (std::size_t i = 1; i < moments.size(); ++i) {
    EXPECT_EQ(moments[i].at_seconds - moments[i - 1].at_seconds,
              static_cast<double>(history.stride()));
  }
}

TEST(FleetMoment, OfAnyOtherTextIsEmpty) {
  for (const char* page :
       {"", "\n\n", "<html>not found</html>", "{\"error\": 1}", "baton_worker_in_flight",
        "baton_worker_in_flight{", "# baton_worker_a 1",
        "baton_worker_in_flight{worker=\"a\"} many", "baton_worker_in_flight{role=\"decode\"} 1"}) {
    const FleetMoment moment = read_metrics(page, 1);
    EXPECT_TRUE(moment.gauges.empty()) << page;
    EXPECT_EQ(moment.prompt_tokens, 0) << page;
  }
}

TEST(FleetMoment, NumbersMayBeWrittenInAnyWay) {
  const FleetMoment moment = read_metrics(
      "baton_worker_share{worker=\"a\",role=\"decode\"} 0.125\n"
      "baton_worker_share{worker=\"b\",role=\"decode\"} -3\n"
      "baton_worker_share{worker=\"c\",role=\"decode\"} 1.5e+06\n"
      "baton_prompt_tokens_total 7\r\n",
      0);
  EXPECT_THAT(moment.gauges.at("share"),
              ElementsAre(Pair(Pair("decode", "a"), 0.125), Pair(Pair("decode", "b"), -3),
                          Pair(Pair("decode", "c"), 1.5e6)));
  EXPECT_EQ(moment.prompt_tokens, 7);
}

TEST(FleetMoment, KeepsAFewGaugesOfManyWorkers) {
  std::string page;
  for (int gauge = 0; gauge < 20; ++gauge) {
    page += "baton_worker_g" + std::to_string(10 + gauge) + "{worker=\"w\"} 1\n";
  }
  for (int worker = 0; worker < 2000; ++worker) {
    page += "baton_worker_g10{worker=\"w" + std::to_string(worker) + "\"} 1\n";
  }
  const FleetMoment moment = read_metrics(page, 0);
  EXPECT_EQ(moment.gauges.size(), 8U);
  EXPECT_TRUE(moment.gauges.contains("g10"));
  EXPECT_EQ(moment.gauges.at("g10").size(), 1024U);
}

TEST(Workers, WithoutANameOrOfNoModelAreLeftOut) {
  EXPECT_TRUE(
      read_workers(R"({"workers":[{"role":"prefill","model":"m"},{"name":"a"}]})", "m").empty());
  EXPECT_TRUE(read_workers(R"({"workers":{"name":"a","model":"m"}})", "m").empty());
  EXPECT_TRUE(read_workers(R"({"workers":[{"name":"a","model":"m"})", "m").empty());
  EXPECT_THAT(read_workers(R"({"workers":[{"name":"a","model":"m"}]})", "m"),
              ElementsAre(Pair("decode", "a")));
}

TEST(FleetHistory, KeepsAllOfAShortRun) {
  FleetHistory history;
  for (std::size_t i = 0; i + 1 < FleetHistory::kMost; ++i) {
    history.add({.at_seconds = static_cast<double>(i), .gauges = {}});
  }
  EXPECT_EQ(history.moments().size(), FleetHistory::kMost - 1);
  EXPECT_EQ(history.stride(), 1U);
  history.add({.at_seconds = 1799, .gauges = {}});
  EXPECT_EQ(history.moments().size(), FleetHistory::kMost / 2);
  EXPECT_EQ(history.stride(), 2U);
  EXPECT_EQ(history.moments().back().at_seconds, 1798);
  // The next of the even ones is the next that is kept.
  history.add({.at_seconds = 1800, .gauges = {}});
  EXPECT_EQ(history.moments().back().at_seconds, 1800);
  history.add({.at_seconds = 1801, .gauges = {}});
  EXPECT_EQ(history.moments().back().at_seconds, 1800);
}

}  // namespace
}  // namespace baton::loadgen
