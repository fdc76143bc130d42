// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/affinity.h"

#include <gtest/gtest.h>

#include <malloc.h>
#include <string>
#include <thread>
#include <vector>

namespace baton::scheduling {
namespace {

using namespace std::chrono_literals;

constexpr RankId kFirstRank{{1}, std::nullopt};
constexpr RankId kSecondRank{{2}, 3};

struct AffinityTest : testing::Test {
  AffinityTable::Time now{1h};
};

TEST_F(AffinityTest, RemembersTheRankOfASession) {
  AffinityTable sessions(10s, 100, [this] { return now; });
  EXPECT_EQ(sessions.find("s"), std::nullopt);
  const auto lease = sessions.bind("s", kSecondRank);
  EXPECT_EQ(sessions.find("s"), kSecondRank);
  EXPECT_EQ(sessions.find("t"), std::nullopt);
}

TEST_F(AffinityTest, CountsTheTtlFromTheEndOfTheLastUse) {
  AffinityTable sessions(10s, 100, [this] { return now; });
  {
    const auto lease = sessions.bind("s", kFirstRank);
    now += 1h;
    EXPECT_EQ(sessions.find("s"), kFirstRank);  // in use: it does not expire
  }
  now += 10s - 1ms;
  EXPECT_EQ(sessions.find("s"), kFirstRank);
  now += 1ms;
  EXPECT_EQ(sessions.find("s"), std::nullopt);
  EXPECT_EQ(sessions.size(), 0U);
}

TEST_F(AffinityTest, IsInUseUntilTheLastOfSeveralUsesEnds) {
  AffinityTable sessions(10s, 100, [this] { return now; });
  auto first = sessions.bind("s", kFirstRank);
  auto second = sessions.bind("s", kFirstRank);
  first = {};
  now += 1h;
  EXPECT_EQ(sessions.find("s"), kFirstRank);
  second = {};
  now += 10s;
  EXPECT_EQ(sessions.find("s"), std::nullopt);
}

TEST_F(AffinityTest, UsingASessionAgainRenewsIt) {
  AffinityTable sessions(10s, 100, [this] { return now; });
  for (int i = 0; i < 5; ++i) {
    const auto lease = sessions.bind("s", kFirstRank);
    now += 9s;
  }
  EXPECT_EQ(sessions.find("s"), kFirstRank);
}

TEST_F(AffinityTest, BindingAnewMovesTheSession) {
  AffinityTable sessions(10s, 100, [this] { return now; });
  const auto first = sessions.bind("s", kFirstRank);
  const auto second = sessions.bind("s", kSecondRank);
  EXPECT_EQ(sessions.find("s"), kSecondRank);
  EXPECT_EQ(sessions.size(), 1U);
}

TEST_F(AffinityTest, UnbindingForgetsAndLateLeasesHarmNobody) {
  AffinityTable sessions(10s, 100, [this] { return now; });
  auto old_use = sessions.bind("s", kFirstRank);
  sessions.unbind("s");
  sessions.unbind("never bound");
  EXPECT_EQ(sessions.find("s"), std::nullopt);
  const auto new_use = sessions.bind("s", kSecondRank);
  old_use = {};  // must not end the new session's use
  now += 1h;
  EXPECT_EQ(sessions.find("s"), kSecondRank);
}

TEST_F(AffinityTest, AtTheBoundTheLongestUnusedGoes) {
  AffinityTable sessions(10s, 3, [this] { return now; });
  auto a = sessions.bind("a", kFirstRank);
  auto b = sessions.bind("b", kFirstRank);
  auto c = sessions.bind("c", kFirstRank);
  b = {};
  now += 1s;
  a = {};
  const auto d = sessions.bind("d", kFirstRank);
  EXPECT_EQ(sessions.find("b"), std::nullopt);
  EXPECT_EQ(sessions.find("a"), kFirstRank);
  EXPECT_EQ(sessions.find("c"), kFirstRank);
  EXPECT_EQ(sessions.size(), 3U);
}

TEST_F(AffinityTest, WhereAllAreInUseANewSessionIsNotRemembered) {
  AffinityTable sessions(10s, 1, [this] { return now; });
  const auto a = sessions.bind("a", kFirstRank);
  {
    const auto b = sessions.bind("b", kSecondRank);
    EXPECT_EQ(sessions.find("b"), std::nullopt);
  }
  EXPECT_EQ(sessions.find("a"), kFirstRank);
}

TEST_F(AffinityTest, WithoutATtlOrANameNothingIsRemembered) {
  AffinityTable off(0ms, 100, [this] { return now; });
  const auto lease = off.bind("s", kFirstRank);
  EXPECT_FALSE(off.enabled());
  EXPECT_EQ(off.find("s"), std::nullopt);
  AffinityTable sessions(10s, 100, [this] { return now; });
  const auto nameless = sessions.bind("", kFirstRank);
  EXPECT_EQ(sessions.size(), 0U);
}

TEST_F(AffinityTest, ExpiredSessionsAreClearedAwayByOthers) {
  AffinityTable sessions(10s, 1000, [this] { return now; });
  for (int i = 0; i < 40; ++i) {
    const auto lease = sessions.bind("old" + std::to_string(i), kFirstRank);
  }
  now += 10s;
  for (int i = 0; i < 40; ++i) const auto lease = sessions.bind("new", kFirstRank);
  EXPECT_EQ(sessions.size(), 1U);
}

TEST_F(AffinityTest, MemoryIsFlatUnderChurn) {
  AffinityTable sessions(1h, 500, [this] { return now; });
  std::uint64_t next = 0;
  const auto churn = [&] {
    for (int i = 0; i < 20'000; ++i) {
      const auto lease = sessions.bind(
          "a session with a name of some length " + std::to_string(1'000'000 + next++), kFirstRank);
      now += 1ms;
      EXPECT_LE(sessions.size(), 500U);
    }
  };
  churn();
  const std::size_t before = mallinfo2().uordblks;
  churn();
  EXPECT_LE(mallinfo2().uordblks, before + 16 * 1024);
}

TEST_F(AffinityTest, ManyThreadsKeepTheCountRight) {
  AffinityTable sessions(1h, 64);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t id = 0; id < 4; ++id) {
      threads.emplace_back([&sessions, id] {
        for (std::uint64_t i = 0; i < 2'000; ++i) {
          const std::string session = std::to_string(i % 100);
          const auto lease = sessions.bind(session, RankId{{id}, std::nullopt});
          if (i % 7 == 0) sessions.unbind(session);
          (void)sessions.find(session);
        }
      });
    }
  }
  EXPECT_LE(sessions.size(), 64U);
  // Nothing is in use any more, so every place can be had again.
  for (int i = 0; i < 64; ++i)
    const auto lease = sessions.bind("fresh" + std::to_string(i), kFirstRank);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(sessions.find("fresh" + std::to_string(i)), kFirstRank);
}

}  // namespace
}  // namespace baton::scheduling
