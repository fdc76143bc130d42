// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/cache_summary.h"

#include "unit/api/cache_fixture.h"

#include <gtest/gtest.h>

#include <vector>

namespace baton::api {
namespace {

using kvcache::FeedHealth;
using kvcache::Trusted;

const std::vector<kvcache::TokenId> kPrompt{1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(CacheSummary, IsNothingWhereNobodyKeepsBook) {
  CacheFixture fixture;
  EXPECT_EQ(summarize_cache(fixture.caches, *fixture.add_worker("w")), std::nullopt);
}

TEST(CacheSummary, CountsTheBlocksOfAllTiersAndRanks) {
  CacheFixture fixture;
  const auto worker = fixture.add_worker("w", "m", 2);
  const auto other = fixture.add_worker("other");
  fixture.store(*fixture.add_cache(*worker, 0), kPrompt, 2);
  fixture.store(*fixture.add_cache(*worker, 1), kPrompt, 1, kvcache::Tier::Disk);
  fixture.store(*fixture.add_cache(*other), kPrompt, 2);
  EXPECT_EQ(summarize_cache(fixture.caches, *worker), (CacheSummary{.source = Trusted::Events,
                                                                    .feed = FeedHealth::Live,
                                                                    .reason = {},
                                                                    .block_size = 4,
                                                                    .blocks = 3}));
}

TEST(CacheSummary, TellsOfTheRankThatIsWorstOff) {
  for (const std::uint32_t bad : {0U, 1U}) {
    CacheFixture fixture;
    const auto worker = fixture.add_worker("w", "m", 2);
    const auto cache = fixture.add_cache(*worker, bad);
    fixture.add_cache(*worker, 1 - bad);
    const auto summary = [&] { return summarize_cache(fixture.caches, *worker).value(); };
    for (const FeedHealth health :
         {FeedHealth::None, FeedHealth::Waiting, FeedHealth::Silent, FeedHealth::Unreachable,
          FeedHealth::Mixed, FeedHealth::Broken}) {
      cache->set_health(health);
      cache->set_reason("why");
      EXPECT_EQ(summary().feed, health) << bad;
      EXPECT_EQ(summary().reason, "why") << bad;
      EXPECT_EQ(summary().source, Trusted::Decisions) << bad;
    }
    cache->set_health(FeedHealth::Live);
    EXPECT_EQ(summary().source, Trusted::Events);
    // It says that nothing is cached, and the engine says that much is.
    for (int i = 0; i < 100; ++i) cache->compare({.least = 0, .most = 0, .reported = 1000});
    EXPECT_EQ(summary().feed, FeedHealth::Live);
    EXPECT_EQ(summary().source, Trusted::Nothing) << bad;
  }
}

}  // namespace
}  // namespace baton::api
