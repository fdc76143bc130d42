// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/cache_trust.h"

#include <gtest/gtest.h>

namespace baton::kvcache {
namespace {

using config::IndexSource;

struct Row {
  IndexSource source;
  FeedHealth health;
  Trusted believed;
  Trusted doubted;
};

class TrustedTest : public testing::TestWithParam<Row> {};

TEST_P(TrustedTest, FollowsFromSourceHealthAndBelief) {
  CacheTrust trust{.health = GetParam().health};
  EXPECT_EQ(trust.trusted(GetParam().source), GetParam().believed);
  trust.believed = false;
  EXPECT_EQ(trust.trusted(GetParam().source), GetParam().doubted);
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
                    Row{IndexSource::Auto, FeedHealth::Unreachable, kDecisions, kDecisions},
                    Row{IndexSource::Auto, FeedHealth::Mixed, kDecisions, kDecisions},
                    Row{IndexSource::Events, FeedHealth::Mixed, kNothing, kNothing},
                    Row{IndexSource::Auto, FeedHealth::Broken, kDecisions, kDecisions}));

TEST(CacheTrust, NamesForPeople) {
  EXPECT_EQ(to_string(Trusted::Nothing), "nothing");
  EXPECT_EQ(to_string(Trusted::Events), "events");
  EXPECT_EQ(to_string(Trusted::Decisions), "decisions");
  EXPECT_EQ(to_string(FeedHealth::None), "none");
  EXPECT_EQ(to_string(FeedHealth::Waiting), "waiting");
  EXPECT_EQ(to_string(FeedHealth::Live), "live");
  EXPECT_EQ(to_string(FeedHealth::Silent), "silent");
  EXPECT_EQ(to_string(FeedHealth::Unreachable), "unreachable");
  EXPECT_EQ(to_string(FeedHealth::Mixed), "mixed");
  EXPECT_EQ(to_string(FeedHealth::Broken), "broken");
}

}  // namespace
}  // namespace baton::kvcache
