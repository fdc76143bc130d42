// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/run_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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

}  // namespace
}  // namespace baton::kvcache
