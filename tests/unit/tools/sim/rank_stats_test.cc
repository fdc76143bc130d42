// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/rank_stats.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

TEST(RankStats, FirstTokensAndThoseBetweenAreCountedApart) {
  RankStats stats;
  SequenceTimes times{.arrived = std::chrono::steady_clock::now()};
  stats.token(times, true);
  stats.token(times, false);
  stats.token(times, false);
  stats.finished(times, {.prompt_tokens = 40, .cached_tokens = 32, .output_tokens = 3},
                 Finish::Length);
  EXPECT_EQ(stats.first_token_seconds.count(), 1U);
  EXPECT_EQ(stats.between_tokens_seconds.count(), 2U);
  EXPECT_EQ(stats.whole_seconds.count(), 1U);
  EXPECT_EQ(stats.prompt_tokens.sum(), 40);
  EXPECT_EQ(stats.computed_tokens.sum(), 8);
  EXPECT_EQ(stats.cut_by_length, 1U);
  EXPECT_EQ(stats.stopped, 0U);
}

TEST(RankStats, AValueIsInTheFirstBucketThatHoldsIt) {
  RankStats stats;
  stats.request(1);
  stats.request(2);
  stats.request(3);
  stats.request(100);
  EXPECT_EQ(stats.choices.counts()[0], 1U);
  EXPECT_EQ(stats.choices.counts()[1], 1U);
  EXPECT_EQ(stats.choices.counts()[2], 1U);
  EXPECT_EQ(stats.choices.count(), 4U);
}

TEST(RankStats, WhatIsFetchedIsExternal) {
  RankStats stats;
  stats.fetched(0.004, 64, 4);
  EXPECT_EQ(stats.external_tokens, 64U);
  EXPECT_EQ(stats.transfer_seconds.counts()[0], 1U);
  EXPECT_EQ(stats.transfer_descriptors.sum(), 4);
}

}  // namespace
}  // namespace baton::sim
