// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace baton::loadgen {
namespace {

using testing::HasSubstr;
using testing::Not;
using OrderedJson = nlohmann::ordered_json;

OrderedJson no_durations() { return {{"count", 0}}; }

// A result as a file may have it: the summary depends on nothing else.
OrderedJson plain_result() {
  return {{"configuration", {{"loop", "closed"}}},
          {"balance", OrderedJson::object()},
          {"summary",
           {{"elapsed_s", 12.34},
            {"requests",
             {{"sent", 100},
              {"warmup", 0},
              {"completed", 90},
              {"refused", 0},
              {"refused_with_retry_after", 0},
              {"failed", 0},
              {"cut", 0},
              {"not_sent", 0}}},
            {"requests_per_s", 7.456},
            {"output_tokens_per_s", 954.6},
            {"prompt_tokens_per_s", 3817.4},
            {"hit_rate", nullptr},
            {"ttft_ms",
             {{"count", 90},
              {"mean", 21.05},
              {"p50", 20.0},
              {"p90", 29.96},
              {"p99", 31.0},
              {"max", 31.24}}},
            {"itl_ms", no_durations()},
            {"total_ms", no_durations()},
            {"refused_ms", no_durations()},
            {"send_lateness_ms", no_durations()},
            {"goodput", nullptr},
            {"errors", OrderedJson::object()}}}};
}

TEST(SummaryText, IsARowForEachFigure) {
  EXPECT_EQ(summary_text(plain_result()),
            "requests          90 completed, 0 refused, 0 failed of 100 sent in 12.3 s\n"
            "throughput        7.46 requests/s   955 output tokens/s   3817 prompt tokens/s\n"
            "TTFT              p50 20.0   p90 30.0   p99 31.0   mean 21.1   max 31.2 ms\n"
            "ITL               -\n"
            "total             -\n"
            "cache hits        not told\n");
}

TEST(SummaryText, SaysWhatDidNotCount) {
  OrderedJson result = plain_result();
  OrderedJson& requests = result["summary"]["requests"];
  requests["warmup"] = 5;
  requests["cut"] = 2;
  requests["not_sent"] = 3;
  result["summary"]["errors"] = {{"http_500", 4}, {"timeout", 1}};
  EXPECT_THAT(summary_text(result),
              HasSubstr("                  5 not counted: warm-up\n"
                        "                  2 cut short at the end\n"
                        "                  3 not sent: --max-in-flight reached\n"
                        "                  4 × http_500\n"
                        "                  1 × timeout\n"));
}

TEST(SummaryText, SaysHowFastRefusalsCameWhereThereWereAny) {
  OrderedJson result = plain_result();
  EXPECT_THAT(summary_text(result), Not(HasSubstr("refused in")));
  result["summary"]["requests"]["refused"] = 1;
  result["summary"]["refused_ms"] = {{"count", 1}, {"mean", 3.0}, {"p50", 3.0},
                                     {"p90", 3.0}, {"p99", 3.0},  {"max", 3.0}};
  EXPECT_THAT(summary_text(result),
              HasSubstr("refused in        p50 3.0   p90 3.0   p99 3.0   mean 3.0   max 3.0 ms\n"));
}

TEST(SummaryText, SaysOfAnOpenLoopHowLateItSent) {
  OrderedJson result = plain_result();
  EXPECT_THAT(summary_text(result), Not(HasSubstr("sent late")));
  result["configuration"]["loop"] = "open";
  EXPECT_THAT(summary_text(result), HasSubstr("sent late         -\n"));
}

TEST(SummaryText, SharesArePercentages) {
  OrderedJson result = plain_result();
  result["summary"]["hit_rate"] = 0.12345;
  result["summary"]["goodput"] = {{"good", 9}, {"requests_per_s", 0.75}, {"share", 1.0}};
  const std::string text = summary_text(result);
  EXPECT_THAT(text, HasSubstr("cache hits        12.3 %\n"));
  EXPECT_THAT(text, HasSubstr("goodput           0.75 requests/s   100.0 % met the target\n"));
  result["summary"]["goodput"]["share"] = nullptr;  // nobody to be judged
  EXPECT_THAT(summary_text(result), HasSubstr("0.75 requests/s   not told met the target\n"));
}

TEST(SummaryText, NamesTheBalanceOfEachRole) {
  OrderedJson result = plain_result();
  result["balance"] = {
      {"prefill", {{"requests", {{"max_over_mean", 1.5}}}}},
      {"decode",
       {{"requests", {{"max_over_mean", 1.0}}}, {"output_tokens", {{"max_over_mean", 1.257}}}}}};
  EXPECT_THAT(summary_text(result),
              HasSubstr("prefill max/mean  requests 1.50\n"
                        "decode max/mean   requests 1.00   output_tokens 1.26\n"));
}

}  // namespace
}  // namespace baton::loadgen
