// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/run_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace baton::kvcache {
namespace {

struct Fixture {
  PageArena arena;
  RunSlab runs{arena};
  RunTable table{arena, runs};

  RunNumber add(SequenceHash key) {
    const RunNumber run = runs.take();
    runs[run].key = key;
    if (table.insert(run)) return run;
    runs.give(run);
    return kNoRun;
  }
  void drop(RunNumber run) {
    table.erase(run);
    runs.give(run);
  }
};

TEST(RunTable, FindsWhatIsInItAndNothingElse) {
  Fixture fixture;
  std::mt19937_64 chance(2);
  std::vector<std::pair<SequenceHash, RunNumber>> added;
  for (const std::size_t most : {100U, 50'000U, 300U, 20'000U, 0U}) {
    while (added.size() < most) {
      const SequenceHash key = chance();
      ASSERT_EQ(fixture.table.find(key), kNoRun);
      added.emplace_back(key, fixture.add(key));
    }
    std::ranges::shuffle(added, chance);
    while (added.size() > most) {
      fixture.drop(added.back().second);
      ASSERT_EQ(fixture.table.find(added.back().first), kNoRun);
      added.pop_back();
    }
    for (const auto& [key, run] : added) ASSERT_EQ(fixture.table.find(key), run);
  }
  EXPECT_EQ(fixture.table.bytes(), 0U);
}

TEST(RunTable, RefusesKeysMadeToLieInOnePlaceBeforeItGrowsForThem) {
  Fixture fixture;
  // The inverse of mix()'s factor: these keys agree in all bits but the last ten.
  std::uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E3779B97F4A7C15U * inverse;
  ASSERT_EQ(mix(inverse), 1U);
  std::size_t taken = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) taken += fixture.add(i * inverse) != kNoRun ? 1 : 0;
  EXPECT_GT(taken, 100U);
  EXPECT_LT(taken, 1000U);
  EXPECT_LT(fixture.table.bytes(), 1'000'000U);
}

TEST(RunTable, ThatIsEmptyFindsNothing) {
  Fixture fixture;
  EXPECT_EQ(fixture.table.find(0), kNoRun);
  fixture.table.prefetch_line(1);
  fixture.table.prefetch_run(1);
  EXPECT_EQ(fixture.table.bytes(), 0U);
}

TEST(RunTable, EveryKeyIsOneAlsoTheExtremes) {
  Fixture fixture;
  const std::vector<SequenceHash> keys{0, 1, 0xFFFFFFFFFFFFFFFF, 0x8000000000000000};
  std::vector<RunNumber> runs;
  for (const SequenceHash key : keys) runs.push_back(fixture.add(key));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(fixture.table.find(keys[i]), runs[i]);
    fixture.table.prefetch_line(keys[i]);
    fixture.table.prefetch_run(keys[i]);
  }
  EXPECT_EQ(fixture.table.find(2), kNoRun);
}

// Keys of one line: those that went further on are found when others before them have gone.
TEST(RunTable, FindsKeysThatWentFurtherOnAfterOthersWentAway) {
  Fixture fixture;
  std::uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E3779B97F4A7C15U * inverse;
  std::vector<std::pair<SequenceHash, RunNumber>> added;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const RunNumber run = fixture.add(i * inverse);
    ASSERT_NE(run, kNoRun);
    added.emplace_back(i * inverse, run);
  }
  for (const std::size_t step : {2U, 3U, 1U}) {
    std::vector<std::pair<SequenceHash, RunNumber>> left;
    for (std::size_t i = 0; i < added.size(); ++i) {
      if (i % step == 0) {
        fixture.drop(added[i].second);
      } else {
        left.push_back(added[i]);
      }
    }
    for (const auto& [key, run] : left) ASSERT_EQ(fixture.table.find(key), run);
    added = left;
  }
  EXPECT_TRUE(added.empty());
  EXPECT_EQ(fixture.table.bytes(), 0U);
}

}  // namespace
}  // namespace baton::kvcache
