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

}  // namespace
}  // namespace baton::loadgen
