// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
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

// A record of any kind, as an endpoint could bring it about.
RequestRecord any_record(Draw& draw, int sent_ms) {
  const std::uint64_t kind = draw.below(10);
  RequestRecord request = kind < 6 ? answered(sent_ms, static_cast<int>(draw.below(300)),
                                              static_cast<int>(draw.below(30)), 1 + draw.below(6))
                                   : refused(sent_ms, static_cast<int>(draw.below(50)), kind == 6);
  if (kind == 8) {
    request.ending = Ending::Failed;
    request.error = draw.chance(0.5) ? "broken" : "timeout";
  }
  if (kind == 9) request.ending = Ending::Cut;
  if (draw.chance(0.6)) request.cached_tokens = draw.below(101);
  if (draw.chance(0.5)) request.prefill_worker = "p" + std::to_string(draw.below(3));
  if (draw.chance(0.8)) request.decode_worker = "d" + std::to_string(draw.below(3));
  request.measured = draw.chance(0.9);
  return request;
}

double exact_quantile(std::vector<double> values, double quantile) {
  std::ranges::sort(values);
  const auto rank =
      static_cast<std::size_t>(std::ceil(quantile * static_cast<double>(values.size())));
  return values.at(std::max<std::size_t>(rank, 1) - 1);
}

// Every figure, computed from the list of all records.
TEST(Tally, SaysWhatAListOfAllRequestsSays) {
  const Target target{.ttft_ms = 150, .itl_ms = 15};
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Draw draw(seed);
    Tally tally(target, 20, seed);
    std::vector<RequestRecord> all;
    for (int i = 0; i < 1500; ++i) {
      all.push_back(any_record(draw, 7 * i));
      tell(tally, all.back());
    }
    const auto count = [&all](auto condition) {
      return static_cast<std::uint64_t>(std::ranges::count_if(
          all, [&](const RequestRecord& r) { return r.measured && condition(r); }));
    };
    const auto sum = [&all](auto value) {
      std::uint64_t total = 0;
      for (const RequestRecord& r : all) {
        if (r.measured && r.ending == Ending::Completed) total += value(r);
      }
      return total;
    };
    EXPECT_EQ(tally.completed, count([](const auto& r) { return r.ending == Ending::Completed; }));
    EXPECT_EQ(tally.refused, count([](const auto& r) { return r.ending == Ending::Refused; }));
    EXPECT_EQ(tally.failed, count([](const auto& r) { return r.ending == Ending::Failed; }));
    EXPECT_EQ(tally.cut, count([](const auto& r) { return r.ending == Ending::Cut; }));
    EXPECT_EQ(tally.warmup,
              static_cast<std::uint64_t>(std::ranges::count(all, false, &RequestRecord::measured)));
    EXPECT_EQ(tally.all_ended, 1500U);
    EXPECT_EQ(tally.refused_with_retry_after,
              count([](const auto& r) { return r.ending == Ending::Refused && r.retry_after; }));
    EXPECT_EQ(tally.good, count([](const auto& r) {
                if (r.ending != Ending::Completed) return false;
                const bool soon = *r.first_token - r.sent <= milliseconds(150);
                const bool dense =
                    r.events < 2 || (r.last_token - *r.first_token) <=
                                        milliseconds(15) * static_cast<int>(r.events - 1);
                return soon && dense;
              }));
    EXPECT_EQ(tally.prompt_tokens, sum([](const auto& r) { return r.prompt_tokens; }));
    EXPECT_EQ(tally.output_tokens, sum([](const auto& r) { return r.output_tokens; }));
    EXPECT_EQ(tally.cached_tokens, sum([](const auto& r) { return r.cached_tokens.value_or(0); }));
    EXPECT_EQ(tally.cacheable_tokens,
              sum([](const auto& r) { return r.cached_tokens ? r.prompt_tokens : 0; }));
    for (const std::string kind : {"broken", "timeout", "http_429"}) {
      const auto told = tally.errors.find(kind);
      EXPECT_EQ(told == tally.errors.end() ? 0 : told->second,
                count([&](const auto& r) { return r.error == kind && r.ending != Ending::Cut; }));
    }
    std::vector<double> ttft;
    for (const RequestRecord& r : all) {
      if (!r.measured || !r.first_token) continue;
      ttft.push_back(std::chrono::duration<double, std::milli>(*r.ttft()).count());
    }
    ASSERT_EQ(tally.ttft.count(), ttft.size());
    for (const double quantile : {0.5, 0.9, 0.99}) {
      const double exact = exact_quantile(ttft, quantile);
      EXPECT_NEAR(tally.ttft.quantile_ms(quantile), exact, exact / 128 + 0.001);
    }
    for (const RequestRecord& sample : tally.samples()) {
      EXPECT_TRUE(sample.measured);
      EXPECT_NE(sample.ending, Ending::Cut);
    }
    EXPECT_EQ(tally.samples().size(), 20U);
  }
}

TEST(Tally, WorkersDoNoMoreThanAllOfThemTogether) {
  Draw draw(9);
  Tally tally({}, 0, 1);
  std::uint64_t prompts = 0;
  std::uint64_t outputs = 0;
  for (int i = 0; i < 800; ++i) {
    const RequestRecord request = any_record(draw, i);
    tell(tally, request);
    if (!request.measured || request.ending != Ending::Completed) continue;
    if (!request.prefill_worker.empty() || !request.decode_worker.empty()) {
      prompts += request.prompt_tokens;
    }
    if (!request.decode_worker.empty()) outputs += request.output_tokens;
  }
  std::uint64_t their_prompts = 0;
  std::uint64_t their_outputs = 0;
  for (const auto& [who, load] : tally.workers) {
    their_prompts += load.prompt_tokens;
    their_outputs += load.output_tokens;
    EXPECT_LE(load.cached_tokens, load.prompt_tokens);
  }
  EXPECT_EQ(their_prompts, prompts);
  EXPECT_EQ(their_outputs, outputs);
}

TEST(RequestRecord, HasTimesOnlyWhereTokensCame) {
  RequestRecord none;
  none.sent = milliseconds(5);
  EXPECT_EQ(none.ttft(), std::nullopt);
  EXPECT_EQ(none.mean_gap(), std::nullopt);
  const RequestRecord one = answered(10, 25, 0, 1);
  EXPECT_EQ(one.ttft(), milliseconds(25));
  EXPECT_EQ(one.mean_gap(), std::nullopt);
  const RequestRecord five = answered(10, 25, 7, 5);
  EXPECT_EQ(five.mean_gap(), milliseconds(7));
}

TEST(Target, WithoutALimitIsMetByWhateverCompleted) {
  const Target none{};
  EXPECT_FALSE(none.given());
  EXPECT_TRUE(none.met_by(answered(0, 100'000, 100'000, 3)));
  RequestRecord cut = answered(0, 1, 1, 3);
  cut.ending = Ending::Cut;
  EXPECT_FALSE(none.met_by(cut));
  EXPECT_TRUE((Target{.ttft_ms = {}, .itl_ms = 1}.given()));
  // An answer without a token had no first one to be late.
  RequestRecord silent;
  silent.ending = Ending::Completed;
  EXPECT_TRUE((Target{.ttft_ms = 1, .itl_ms = 1}.met_by(silent)));
}

TEST(Tally, MergedWithNothingIsAsItWas) {
  Tally tally({}, 5, 1);
  tell(tally, answered(3, 2, 1, 2));
  tally.merge(Tally({}, 5, 2));
  EXPECT_EQ(tally.first_sent, milliseconds(3));
  EXPECT_EQ(tally.completed, 1U);
  EXPECT_EQ(tally.samples().size(), 1U);
  Tally empty({}, 5, 2);
  empty.merge(tally);
  EXPECT_EQ(empty.first_sent, milliseconds(3));
  EXPECT_EQ(empty.last_end, tally.last_end);
  EXPECT_EQ(empty.samples().size(), 1U);
}

TEST(Tally, WhatIsCutIsNoErrorAndEndsNothing) {
  Tally tally({}, 5, 1);
  RequestRecord cut = answered(0, 10, 5, 3);
  cut.ending = Ending::Cut;
  cut.error = "cut";
  tell(tally, cut);
  EXPECT_TRUE(tally.errors.empty());
  EXPECT_EQ(tally.last_end, std::chrono::nanoseconds(0));
  EXPECT_TRUE(tally.samples().empty());
  EXPECT_EQ(tally.output_tokens, 0U);
  EXPECT_EQ(tally.series.moments()[0].output_tokens, 3U);  // they came, all the same
}

}  // namespace
}  // namespace baton::loadgen
