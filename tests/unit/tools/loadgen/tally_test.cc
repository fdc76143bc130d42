// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace baton::loadgen {
namespace {

using std::chrono::milliseconds;

RequestRecord answered(int sent_ms, int ttft_ms, int gap_ms, std::uint64_t events) {
  RequestRecord request;
  request.sent = milliseconds(sent_ms);
  request.first_token = milliseconds(sent_ms + ttft_ms);
  request.last_token = *request.first_token + milliseconds(gap_ms) * static_cast<int>(events - 1);
  request.ended = request.last_token;
  request.events = events;
  request.output_tokens = events;
  request.prompt_tokens = 100;
  request.ending = Ending::Completed;
  return request;
}

RequestRecord refused(int sent_ms, int after_ms, bool retry_after) {
  RequestRecord request;
  request.sent = milliseconds(sent_ms);
  request.ended = milliseconds(sent_ms + after_ms);
  request.ending = Ending::Refused;
  request.error = "http_429";
  request.retry_after = retry_after;
  return request;
}

// Tells a tally all of a request, as a thread does.
void tell(Tally& tally, const RequestRecord& request) {
  tally.sent(request.sent, milliseconds(0), request.measured);
  if (request.first_token) {
    tally.first_token(*request.first_token, *request.ttft(), request.measured);
    for (std::uint64_t i = 1; i < request.events; ++i) {
      const auto at = *request.first_token + *request.mean_gap() * static_cast<int>(i);
      tally.next_token(at, *request.mean_gap(), request.measured);
    }
  }
  tally.ended(request);
}

TEST(Target, IsMetOnlyByWhatCompletedWithinAllOfIt) {
  const Target both{.ttft_ms = 50, .itl_ms = 10};
  EXPECT_TRUE(both.met_by(answered(0, 50, 10, 5)));
  EXPECT_FALSE(both.met_by(answered(0, 51, 10, 5)));
  EXPECT_FALSE(both.met_by(answered(0, 50, 11, 5)));
  EXPECT_FALSE(both.met_by(refused(0, 1, true)));
  // One token has no gap to be too long.
  EXPECT_TRUE(both.met_by(answered(0, 50, 0, 1)));
  EXPECT_TRUE((Target{.ttft_ms = 50, .itl_ms = {}}).met_by(answered(0, 50, 1000, 5)));
}

TEST(Tally, CountsEachEndingByItself) {
  Tally tally({.ttft_ms = 30, .itl_ms = {}}, 100, 1);
  tell(tally, answered(0, 20, 5, 11));
  tell(tally, answered(100, 40, 5, 11));
  tell(tally, refused(200, 3, true));
  tell(tally, refused(210, 7, false));
  RequestRecord failed = refused(300, 1, false);
  failed.ending = Ending::Failed;
  failed.error = "broken";
  tell(tally, failed);
  RequestRecord cut = answered(400, 10, 5, 3);
  cut.ending = Ending::Cut;
  tell(tally, cut);
  tally.not_sent();

  EXPECT_EQ(tally.completed, 2U);
  EXPECT_EQ(tally.good, 1U);
  EXPECT_EQ(tally.refused, 2U);
  EXPECT_EQ(tally.refused_with_retry_after, 1U);
  EXPECT_EQ(tally.failed, 1U);
  EXPECT_EQ(tally.cut, 1U);
  EXPECT_EQ(tally.skipped, 1U);
  EXPECT_EQ(tally.all_sent, 6U);
  EXPECT_EQ(tally.output_tokens, 22U);
  EXPECT_EQ(tally.total.count(), 2U);
  EXPECT_EQ(tally.refusal.most_ms(), 7);
  EXPECT_EQ(tally.refusal.least_ms(), 3);
  EXPECT_EQ(tally.ttft.count(), 3U);
  EXPECT_EQ(tally.itl.count(), 22U);
  EXPECT_EQ(tally.errors.at("http_429"), 2U);
  EXPECT_EQ(tally.errors.at("broken"), 1U);
}

TEST(Tally, LeavesTheWarmUpOutOfAllButTheSeries) {
  Tally tally({}, 100, 1);
  RequestRecord early = answered(0, 500, 50, 5);
  early.measured = false;
  tell(tally, early);
  tell(tally, answered(1000, 10, 5, 5));
  EXPECT_EQ(tally.completed, 1U);
  EXPECT_EQ(tally.warmup, 1U);
  EXPECT_EQ(tally.ttft.count(), 1U);
  EXPECT_EQ(tally.first_sent, milliseconds(1000));
  EXPECT_EQ(tally.series.moments()[0].completed, 1U);
  EXPECT_EQ(tally.samples().size(), 1U);
}

TEST(Tally, ChargesThePromptToWhoeverComputedIt) {
  Tally tally({}, 0, 1);
  RequestRecord split = answered(0, 1, 1, 8);
  split.prefill_worker = "p1";
  split.decode_worker = "d1";
  split.cached_tokens = 60;
  tell(tally, split);
  RequestRecord whole = answered(0, 1, 1, 8);
  whole.decode_worker = "a1";
  tell(tally, whole);
  const auto& workers = tally.workers;
  EXPECT_EQ(workers.at({"prefill", "p1"}).prompt_tokens, 100U);
  EXPECT_EQ(workers.at({"prefill", "p1"}).cached_tokens, 60U);
  EXPECT_EQ(workers.at({"decode", "d1"}).prompt_tokens, 0U);
  EXPECT_EQ(workers.at({"decode", "d1"}).output_tokens, 8U);
  EXPECT_EQ(workers.at({"decode", "a1"}).prompt_tokens, 100U);
  // Hits are a share of the prompts whose hits were told.
  EXPECT_EQ(tally.cached_tokens, 60U);
  EXPECT_EQ(tally.cacheable_tokens, 100U);
}

TEST(Tally, MergedSaysTheSameAsOneThatWasToldEverything) {
  Draw draw(3);
  Tally one({.ttft_ms = 100, .itl_ms = 10}, 50, 1);
  std::vector<Tally> parts(3, Tally({.ttft_ms = 100, .itl_ms = 10}, 50, 2));
  for (int i = 0; i < 3000; ++i) {
    RequestRecord request = draw.chance(0.2)
                                ? refused(i, static_cast<int>(draw.below(10)), draw.chance(0.5))
                                : answered(i, static_cast<int>(draw.below(200)),
                                           static_cast<int>(draw.below(20)), 1 + draw.below(9));
    request.prefill_worker = "p" + std::to_string(draw.below(3));
    request.measured = i >= 100;
    tell(one, request);
    tell(parts[draw.below(3)], request);
  }
  Tally merged = parts[0];
  merged.merge(parts[1]);
  merged.merge(parts[2]);
  EXPECT_EQ(merged.completed, one.completed);
  EXPECT_EQ(merged.refused, one.refused);
  EXPECT_EQ(merged.refused_with_retry_after, one.refused_with_retry_after);
  EXPECT_EQ(merged.good, one.good);
  EXPECT_EQ(merged.warmup, one.warmup);
  EXPECT_EQ(merged.output_tokens, one.output_tokens);
  EXPECT_EQ(merged.errors, one.errors);
  EXPECT_EQ(merged.first_sent, one.first_sent);
  EXPECT_EQ(merged.last_end, one.last_end);
  EXPECT_EQ(merged.ttft.quantile_ms(0.9), one.ttft.quantile_ms(0.9));
  EXPECT_EQ(merged.itl.count(), one.itl.count());
  EXPECT_EQ(merged.workers.size(), 3U);
  EXPECT_EQ(merged.workers.at({"prefill", "p1"}).requests,
            one.workers.at({"prefill", "p1"}).requests);
  EXPECT_EQ(merged.series.moments()[1].completed, one.series.moments()[1].completed);
  EXPECT_EQ(merged.samples().size(), 50U);
}

TEST(Tally, SamplesEarlyAndLateRequestsAlike) {
  // Each of two parts saw its own half of the time, the second three times as many.
  double late = 0;
  double first_half = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Tally early({}, 100, seed);
    for (int i = 0; i < 1000; ++i) tell(early, answered(i, 1, 0, 1));
    Tally later({}, 100, seed + 1000);
    for (int i = 1000; i < 4000; ++i) tell(later, answered(i, 1, 0, 1));
    early.merge(later);
    ASSERT_EQ(early.samples().size(), 100U);
    late += static_cast<double>(std::ranges::count_if(
        early.samples(), [](const RequestRecord& r) { return r.sent >= milliseconds(1000); }));
    first_half += static_cast<double>(std::ranges::count_if(
        early.samples(), [](const RequestRecord& r) { return r.sent < milliseconds(500); }));
  }
  EXPECT_NEAR(late / 4000, 0.75, 0.03);
  EXPECT_NEAR(first_half / 4000, 0.125, 0.025);
}

TEST(Tally, KeepsNoMoreNamesThanItHasRoomFor) {
  Tally tally({}, 10, 1);
  for (std::size_t i = 0; i < 3 * Tally::kMostNames; ++i) {
    RequestRecord request = refused(0, 1, false);
    request.error = "e" + std::to_string(i);
    tell(tally, request);
    RequestRecord good = answered(0, 1, 0, 1);
    good.decode_worker = "w" + std::to_string(i);
    tell(tally, good);
  }
  EXPECT_LE(tally.errors.size(), Tally::kMostNames + 1);
  EXPECT_LE(tally.workers.size(), Tally::kMostNames + 1);
  EXPECT_EQ(tally.errors.at("others"), 2 * Tally::kMostNames);
  EXPECT_EQ(tally.samples().size(), 10U);
}

}  // namespace
}  // namespace baton::loadgen
