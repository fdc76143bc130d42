// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/cache.h"

#include <gtest/gtest.h>

#include <tuple>

namespace baton::kvcache {
namespace {

using config::IndexSource;
using std::chrono_literals::operator""s;

Cache make() {
  return Cache({.holder = {{1}, 0}, .worker = "w", .authority = "10.0.0.1:8000", .model = "m"},
               Slot{0}, {.size = 16});
}

void disbelieve(Cache& cache) {
  for (int i = 0; i < 20; ++i) cache.compare({.least = 100, .most = 100, .reported = 0});
  ASSERT_FALSE(cache.believed());
}

TEST(CacheTest, IsTrustedByHealthBeliefAndWhatIsMixed) {
  Cache cache = make();
  EXPECT_EQ(cache.trusted(IndexSource::Auto), Trusted::Decisions);
  EXPECT_EQ(cache.set_health(FeedHealth::Live), FeedHealth::None);
  EXPECT_EQ(cache.trusted(IndexSource::Auto), Trusted::Events);
  disbelieve(cache);
  EXPECT_EQ(cache.trusted(IndexSource::Auto), Trusted::Nothing);
  EXPECT_TRUE(cache.mix());
  EXPECT_FALSE(cache.mix());
  EXPECT_EQ(cache.trusted(IndexSource::Auto), Trusted::Decisions);
  cache.set_shape({.size = 32, .bigram = true});
  EXPECT_EQ(cache.shape(), (BlockShape{.size = 32, .bigram = true}));
  EXPECT_EQ(cache.health(), FeedHealth::Live);  // one thing changes, the others stay
  EXPECT_TRUE(cache.mixed());
}

TEST(CacheTest, TellsOnlyWhenTheJudgementChanges) {
  Cache cache = make();
  int changes = 0;
  for (int i = 0; i < 50; ++i)
    changes += cache.compare({.least = 100, .most = 100, .reported = 0}) ? 1 : 0;
  EXPECT_EQ(changes, 1);
  EXPECT_FALSE(cache.believed());
  for (int i = 0; i < 200; ++i)
    changes += cache.compare({.least = 100, .most = 100, .reported = 100}) ? 1 : 0;
  EXPECT_EQ(changes, 2);
  EXPECT_TRUE(cache.believed());
  const Cache::Truth truth = cache.truth();
  EXPECT_EQ(truth.samples, 250U);
  EXPECT_EQ(truth.predicted_tokens, 25'000U);
  EXPECT_EQ(truth.reported_tokens, 20'000U);
}

TEST(CacheTest, EventsAreDueFromTheEndOfAPromptThatLeftSome) {
  Cache cache = make();
  const Clock::time_point start{};
  EXPECT_EQ(cache.overdue_since(std::nullopt), std::nullopt);
  cache.expect_events(start + 10s, start + 15s);
  EXPECT_EQ(cache.overdue_since(std::nullopt), start + 15s);
  EXPECT_EQ(cache.overdue_since(start + 9s), start + 15s) << "came before it was sent";
  cache.expect_events(start + 20s, start + 25s);
  EXPECT_EQ(cache.overdue_since(start + 9s), start + 15s) << "due since the first";
}

TEST(CacheTest, AnEventWhileThePromptRanWasWhatWasDue) {
  Cache cache = make();
  const Clock::time_point start{};
  cache.expect_events(start + 10s, start + 100s);
  EXPECT_EQ(cache.overdue_since(start + 11s), std::nullopt);
  cache.expect_events(start + 101s, start + 102s);
  EXPECT_EQ(cache.overdue_since(start + 11s), start + 102s);
  EXPECT_EQ(cache.overdue_since(start + 101s), std::nullopt);
}

TEST(CacheTest, SaltsOfBeforeTheReleaseWasKnownMixItOnceItIs) {
  const Hidden salts{.salts = true};
  Cache cache = make();
  EXPECT_FALSE(cache.set_hidden({}));
  EXPECT_FALSE(cache.sent(salts));
  EXPECT_FALSE(cache.set_hidden({.keys = true})) << "it tells them";
  EXPECT_FALSE(cache.mixed());
  EXPECT_TRUE(cache.set_hidden(salts));
  EXPECT_TRUE(cache.mixed());
  EXPECT_FALSE(cache.set_hidden(salts)) << "that is no news";

  Cache plain = make();
  EXPECT_FALSE(plain.sent({}));
  EXPECT_FALSE(plain.set_hidden(salts)) << "it was sent none";
  EXPECT_TRUE(plain.sent(salts));
}

TEST(CacheTest, AdaptersOfBeforeTheReleaseWasKnownMixItOnceItIs) {
  const Hidden adapters{.adapters = true};
  Cache cache = make();
  EXPECT_FALSE(cache.sent(adapters));
  EXPECT_FALSE(cache.set_hidden({.salts = true, .keys = true})) << "it tells them";
  EXPECT_TRUE(cache.set_hidden(adapters));
  EXPECT_TRUE(cache.mixed());
}

TEST(CacheTest, EventsThatMixBlocksUpDoNotCount) {
  Cache cache = make();
  cache.set_health(FeedHealth::Live);
  EXPECT_EQ(cache.trusted(IndexSource::Auto), Trusted::Events);
  EXPECT_TRUE(cache.mix());
  EXPECT_FALSE(cache.mix()) << "that is no news";
  EXPECT_EQ(cache.trusted(IndexSource::Auto), Trusted::Decisions) << "at once";
  EXPECT_EQ(cache.trusted(IndexSource::Events), Trusted::Nothing);
}

}  // namespace
}  // namespace baton::kvcache
