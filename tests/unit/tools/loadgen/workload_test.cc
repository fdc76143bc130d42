// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/workload.h"

#include "support/temporary_directory.h"
#include "tools/loadgen/arrivals.h"
#include "tools/loadgen/budget.h"
#include "tools/loadgen/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace baton::loadgen {
namespace {

using Speaker = Piece::Speaker;

std::unique_ptr<const Workload> make(const WorkloadOptions& options) {
  Options all;
  all.url = "http://127.0.0.1:1";
  all.workload = options;
  const auto plan = make_plan(all);
  EXPECT_TRUE(plan) << plan.error().message();
  auto workload = make_workload(*plan);
  EXPECT_TRUE(workload) << workload.error().message();
  return *std::move(workload);
}

bool same(const Piece& a, const Piece& b) { return a.key == b.key && a.tokens == b.tokens; }

std::uint32_t length(const Turn& turn) {
  std::uint32_t tokens = 0;
  for (const Piece& piece : turn.says) tokens += piece.tokens;
  return tokens;
}

class EveryWorkload : public testing::TestWithParam<WorkloadKind> {};

TEST_P(EveryWorkload, SaysTheSameForTheSameSeedInAnyOrder) {
  const WorkloadOptions options{.kind = GetParam(), .seed = 5, .spread = 0.5, .trace_file = ""};
  const auto one = make(options);
  const auto two = make(options);
  for (const std::uint64_t number : {7U, 0U, 3U, 7U}) {
    const Conversation a = one->conversation(number);
    const Conversation b = two->conversation(number);
    ASSERT_EQ(a.turns.size(), b.turns.size());
    for (std::size_t i = 0; i < a.turns.size(); ++i) {
      EXPECT_EQ(a.turns[i].output_tokens, b.turns[i].output_tokens);
      EXPECT_EQ(a.turns[i].think, b.turns[i].think);
      ASSERT_EQ(a.turns[i].says.size(), b.turns[i].says.size());
      for (std::size_t k = 0; k < a.turns[i].says.size(); ++k)
        EXPECT_TRUE(same(a.turns[i].says[k], b.turns[i].says[k]));
    }
  }
}

TEST_P(EveryWorkload, SaysOtherThingsForAnotherSeed) {
  const auto one = make({.kind = GetParam(), .seed = 5, .trace_file = ""});
  const auto two = make({.kind = GetParam(), .seed = 6, .trace_file = ""});
  EXPECT_NE(one->conversation(1).turns[0].says[0].key, two->conversation(1).turns[0].says[0].key);
}

INSTANTIATE_TEST_SUITE_P(All, EveryWorkload,
                         testing::Values(WorkloadKind::Distinct, WorkloadKind::SharedPrefix,
                                         WorkloadKind::MultiTurn, WorkloadKind::HotDocument,
                                         WorkloadKind::LongShort, WorkloadKind::Trace));

TEST(Distinct, SharesNothingAndHasTheLengthsAskedFor) {
  const auto workload = make(
      {.kind = WorkloadKind::Distinct, .input_tokens = 77, .output_tokens = 9, .trace_file = ""});
  std::set<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Conversation talk = workload->conversation(i);
    ASSERT_EQ(talk.turns.size(), 1U);
    EXPECT_EQ(length(talk.turns[0]), 77U);
    EXPECT_EQ(talk.turns[0].output_tokens, 9U);
    keys.insert(talk.turns[0].says[0].key);
  }
  EXPECT_EQ(keys.size(), 1000U);
}

TEST(Distinct, SpreadsLengthsWithinTheirBounds) {
  const auto workload =
      make({.kind = WorkloadKind::Distinct, .input_tokens = 100, .spread = 0.2, .trace_file = ""});
  std::uint32_t least = 1000;
  std::uint32_t most = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint32_t tokens = length(workload->conversation(i).turns[0]);
    least = std::min(least, tokens);
    most = std::max(most, tokens);
  }
  EXPECT_GE(least, 80U);
  EXPECT_LT(least, 85U);
  EXPECT_LE(most, 120U);
  EXPECT_GT(most, 115U);
}

TEST(SharedPrefix, HasAsManyPrefixesAsGroupsAndADistinctEnd) {
  const auto workload = make({.kind = WorkloadKind::SharedPrefix,
                              .input_tokens = 10,
                              .prefix_tokens = 90,
                              .groups = 4,
                              .trace_file = ""});
  std::map<std::uint64_t, int> prefixes;
  std::set<std::uint64_t> ends;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Turn turn = workload->conversation(i).turns[0];
    ASSERT_EQ(turn.says.size(), 2U);
    EXPECT_EQ(turn.says[0].speaker, Speaker::System);
    EXPECT_EQ(turn.says[0].tokens, 90U);
    EXPECT_EQ(turn.says[1].tokens, 10U);
    ++prefixes[turn.says[0].key];
    ends.insert(turn.says[1].key);
  }
  EXPECT_EQ(prefixes.size(), 4U);
  EXPECT_EQ(ends.size(), 1000U);
  for (const auto& [key, count] : prefixes) EXPECT_GT(count, 180);
}

TEST(SharedPrefix, MayHaveNone) {
  const auto workload =
      make({.kind = WorkloadKind::SharedPrefix, .prefix_tokens = 0, .trace_file = ""});
  EXPECT_EQ(workload->conversation(0).turns[0].says.size(), 1U);
}

TEST(MultiTurn, ThinksBetweenTurnsAndSaysSomethingNewInEach) {
  const auto workload = make({.kind = WorkloadKind::MultiTurn,
                              .turns = 3,
                              .think_time = std::chrono::milliseconds(100),
                              .trace_file = ""});
  std::set<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Conversation talk = workload->conversation(i);
    ASSERT_EQ(talk.turns.size(), 3U);
    EXPECT_EQ(talk.turns[0].think.count(), 0);
    EXPECT_EQ(talk.turns[0].says.front().speaker, Speaker::System);
    for (std::size_t turn = 0; turn < 3; ++turn) {
      keys.insert(talk.turns[turn].says.back().key);
      if (turn == 0) continue;
      EXPECT_EQ(talk.turns[turn].says.size(), 1U);
      EXPECT_GE(talk.turns[turn].think, std::chrono::milliseconds(50));
      EXPECT_LE(talk.turns[turn].think, std::chrono::milliseconds(150));
    }
  }
  EXPECT_EQ(keys.size(), 150U);
}

TEST(HotDocument, IsWhatTheGivenShareAsksAbout) {
  const auto workload = make({.kind = WorkloadKind::HotDocument,
                              .input_tokens = 5,
                              .document_tokens = 1000,
                              .hot_share = 0.3,
                              .other_tokens = 40,
                              .trace_file = ""});
  std::set<std::uint64_t> documents;
  int hot = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Turn turn = workload->conversation(i).turns[0];
    if (turn.says.size() == 1) {
      EXPECT_EQ(length(turn), 40U);
      continue;
    }
    ++hot;
    EXPECT_EQ(length(turn), 1005U);
    documents.insert(turn.says[0].key);
  }
  EXPECT_EQ(documents.size(), 1U);
  EXPECT_NEAR(hot, 600, 80);
}

TEST(LongShort, MixesTheTwoLengths) {
  const auto workload = make({.kind = WorkloadKind::LongShort,
                              .long_tokens = 500,
                              .short_tokens = 20,
                              .long_share = 0.25,
                              .trace_file = ""});
  int longs = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint32_t tokens = length(workload->conversation(i).turns[0]);
    EXPECT_TRUE(tokens == 500 || tokens == 20);
    longs += tokens == 500 ? 1 : 0;
  }
  EXPECT_NEAR(longs, 500, 80);
}

class Replayed : public testing::Test {
 protected:
  const test::TemporaryDirectory directory_;
  const std::string path_ = directory_.write(
      "trace.jsonl", R"({"timestamp":0,"input_length":1100,"output_length":3,"hash_ids":[1,2,3]}
{"timestamp":500,"input_length":1000,"output_length":4,"hash_ids":[1,2]}
{"timestamp":900,"input_length":1300,"output_length":5,"hash_ids":[1]}
)");
  std::unique_ptr<const Workload> replay(double time_scale = 1) const {
    return make({.kind = WorkloadKind::Trace, .trace_file = path_, .time_scale = time_scale});
  }
};

TEST_F(Replayed, EqualIdsAreEqualPrefixesOfExactLength) {
  const auto workload = replay();
  ASSERT_EQ(workload->size(), 3U);
  const Turn first = workload->conversation(0).turns[0];
  const Turn second = workload->conversation(1).turns[0];
  EXPECT_EQ(length(first), 1100U);
  EXPECT_EQ(length(second), 1000U);
  EXPECT_EQ(second.output_tokens, 4U);
  EXPECT_TRUE(same(first.says[0], second.says[0]));
  EXPECT_EQ(first.says[0].tokens, kTraceBlock);
  // Cut short, it is still the beginning of the same.
  EXPECT_EQ(first.says[1].key, second.says[1].key);
  EXPECT_EQ(second.says[1].tokens, 1000 - kTraceBlock);
  EXPECT_EQ(first.says[2].tokens, 1100 - 2 * kTraceBlock);
}

TEST_F(Replayed, WhatNoIdSpeaksOfIsNobodyElses) {
  const Turn turn = replay()->conversation(2).turns[0];
  ASSERT_EQ(turn.says.size(), 2U);
  EXPECT_EQ(length(turn), 1300U);
  EXPECT_NE(turn.says[1].key, replay()->conversation(0).turns[0].says[1].key);
}

TEST_F(Replayed, KeepsItsTimesScaled) {
  EXPECT_EQ(replay()->begins(1), std::chrono::milliseconds(500));
  EXPECT_EQ(replay(4)->begins(1), std::chrono::milliseconds(125));
  EXPECT_EQ(replay(0.5)->begins(2), std::chrono::milliseconds(1800));
}

TEST(ArrivalTimes, AreEvenWhereAskedFor) {
  ArrivalTimes times(Arrivals::Even, 4, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(times.next(), std::chrono::milliseconds(250 * i));
}

TEST(ArrivalTimes, OfAPoissonProcessHaveItsMeanAndItsSpread) {
  ArrivalTimes times(Arrivals::Poisson, 100, 1);
  constexpr int kCount = 20'000;
  double sum = 0;
  double squares = 0;
  auto last = times.next();
  for (int i = 0; i < kCount; ++i) {
    const auto next = times.next();
    const double gap = static_cast<double>((next - last).count()) / 1000;
    last = next;
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 10, 0.3);
  // Of an exponential distribution the deviation is the mean.
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), 10, 0.5);
}

TEST(Budget, GivesEachNumberOnceAndNoMoreThanThereAre) {
  Budget budget(1000);
  std::vector<std::vector<std::uint64_t>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : taken) {
      threads.emplace_back([&budget, &mine] {
        while (const auto number = budget.take_request()) mine.push_back(*number);
      });
    }
  }
  std::set<std::uint64_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 1000U);
  EXPECT_EQ(*all.rbegin(), 999U);
  EXPECT_TRUE(budget.spent());
}

}  // namespace
}  // namespace baton::loadgen
