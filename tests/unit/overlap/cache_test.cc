// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "overlap/cache.h"

#include <gtest/gtest.h>

#include <tuple>

namespace baton::overlap {
namespace {

using config::IndexSource;
using std::chrono_literals::operator""s;

Cache make() {
  return Cache({.holder = {{1}, 0}, .worker = "w", .authority = "10.0.0.1:8000", .model = "m"},
               kvindex::Slot{0}, {.size = 16});
}

void disbelieve(Cache& cache) {
  for (int i = 0; i < 20; ++i) cache.compare({.least = 100, .most = 100, .reported = 0});
  ASSERT_FALSE(cache.believed());
}

struct Row {
  IndexSource source;
  FeedHealth health;
  Trusted believed;
  Trusted doubted;
};

class TrustedTest : public testing::TestWithParam<Row> {};

TEST_P(TrustedTest, FollowsFromSourceHealthAndBelief) {
  Cache cache = make();
  cache.set_health(GetParam().health);
  EXPECT_EQ(cache.trusted(GetParam().source), GetParam().believed);
  disbelieve(cache);
  EXPECT_EQ(cache.trusted(GetParam().source), GetParam().doubted);
}

constexpr auto kNothing = Trusted::Nothing;
constexpr auto kEvents = Trusted::Events;
constexpr auto kDecisions = Trusted::Decisions;

INSTANTIATE_TEST_SUITE_P(
    All, TrustedTest,
    testing::Values(Row{IndexSource::Off, FeedHealth::None, kNothing, kNothing},
                    Row{IndexSource::Off, FeedHealth::Live, kNothing, kNothing},
                    Row{IndexSource::Decisions, FeedHealth::None, kDecisions, kDecisions},
                    Row{IndexSource::Decisions, FeedHealth::Live, kDecisions, kDecisions},
                    Row{IndexSource::Events, FeedHealth::None, kNothing, kNothing},
                    Row{IndexSource::Events, FeedHealth::Waiting, kNothing, kNothing},
                    Row{IndexSource::Events, FeedHealth::Live, kEvents, kNothing},
                    Row{IndexSource::Events, FeedHealth::Silent, kNothing, kNothing},
                    Row{IndexSource::Events, FeedHealth::Broken, kNothing, kNothing},
                    Row{IndexSource::Auto, FeedHealth::None, kDecisions, kDecisions},
                    Row{IndexSource::Auto, FeedHealth::Waiting, kDecisions, kDecisions},
                    Row{IndexSource::Auto, FeedHealth::Live, kEvents, kNothing},
                    Row{IndexSource::Auto, FeedHealth::Silent, kDecisions, kDecisions},
                    Row{IndexSource::Auto, FeedHealth::Broken, kDecisions, kDecisions}));

TEST(CacheTest, NamesForPeople) {
  EXPECT_EQ(to_string(Trusted::Nothing), "nothing");
  EXPECT_EQ(to_string(Trusted::Events), "events");
  EXPECT_EQ(to_string(Trusted::Decisions), "decisions");
  EXPECT_EQ(to_string(FeedHealth::None), "none");
  EXPECT_EQ(to_string(FeedHealth::Waiting), "waiting");
  EXPECT_EQ(to_string(FeedHealth::Live), "live");
  EXPECT_EQ(to_string(FeedHealth::Silent), "silent");
  EXPECT_EQ(to_string(FeedHealth::Broken), "broken");
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

}  // namespace
}  // namespace baton::overlap
