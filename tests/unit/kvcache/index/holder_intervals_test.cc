// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/holder_intervals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace baton::kvcache {
namespace {

// The tiers of each block of a run, slot by slot.
using Model = std::map<std::uint32_t, std::array<std::uint32_t, kMostInRun>>;

// What the list must be: whatever touches and has the same tiers is one interval.
std::vector<Interval> list_of(const Model& model) {
  std::vector<Interval> list;
  for (const auto& [slot, tiers] : model) {
    for (std::uint32_t i = 0; i < kMostInRun; ++i) {
      if (tiers[i] == 0) continue;
      if (i == 0 || tiers[i - 1] != tiers[i]) {
        list.push_back({.slot = slot,
                        .begin = static_cast<std::uint8_t>(i),
                        .end = 0,
                        .tiers = static_cast<std::uint8_t>(tiers[i])});
      }
      list.back().end = static_cast<std::uint8_t>(i + 1);
    }
  }
  return list;
}

TEST(HolderIntervals, SayWhoHoldsWhichBlocks) {
  PageArena arena;
  ArrayPool pool(arena);
  kvcache::Run run{};  // a test has a Run() of its own
  HolderIntervals intervals(run, pool);
  intervals.open();
  std::mt19937 chance(4);
  Model model;
  for (const std::uint32_t slots : {1U, 3U, 900U, 2U}) {
    for (int i = 0; i < 6000; ++i) {
      const std::uint32_t slot = chance() % slots * 7;
      auto& tiers = model[slot];
      const std::uint32_t from = chance() % kMostInRun;
      std::uint32_t to = from;
      while (to < kMostInRun && tiers[to] == 0 && to - from < static_cast<std::uint32_t>(i) % 20)
        ++to;
      ASSERT_EQ(intervals.tiers(slot, from), tiers[from]);
      ASSERT_EQ(intervals.free_from(slot, from, to), to - from);
      const std::uint32_t kind = 1 + chance() % (i % 3 == 0 ? 15 : 1);
      if (tiers[from] != 0) {
        tiers[from] = chance() % 4 == 0 ? kind : 0;
        intervals.set_tiers(slot, from, tiers[from]);
      } else if (to > from) {
        intervals.add(slot, from, to, kind);
        std::fill(tiers.begin() + from, tiers.begin() + to, kind);
      }
      if (i % 64 == 0) {
        const auto wanted = list_of(model);
        ASSERT_TRUE(std::ranges::equal(run.all_intervals(), wanted));
        const auto own = list_of({{slot, tiers}});
        ASSERT_TRUE(std::ranges::equal(intervals.of(slot), own));
      }
    }
    while (!model.empty()) {
      intervals.remove_all(model.begin()->first);
      model.erase(model.begin());
      ASSERT_EQ(run.interval_count, list_of(model).size());
    }
    // An empty list and one of one need no memory of their own.
    EXPECT_EQ(run.intervals, &run.single);
  }
  intervals.close();
}

TEST(HolderIntervals, AreFreeUpToWhatIsTaken) {
  PageArena arena;
  ArrayPool pool(arena);
  kvcache::Run run{};  // a test has a Run() of its own
  HolderIntervals intervals(run, pool);
  intervals.open();
  intervals.add(5, 10, 20, 1);
  EXPECT_EQ(intervals.free_from(5, 0, 128), 10U);
  EXPECT_EQ(intervals.free_from(5, 3, 8), 5U);
  EXPECT_EQ(intervals.free_from(5, 10, 128), 0U);
  EXPECT_EQ(intervals.free_from(5, 20, 128), 108U);
  EXPECT_EQ(intervals.free_from(4, 0, 128), 128U);
  intervals.close();
}

// Builds a list by hand and shows it as text: "slot:begin-end=tiers …".
class Intervals {
 public:
  Intervals() { intervals.open(); }
  ~Intervals() { intervals.close(); }

  std::string shown() const {
    std::string text;
    for (const Interval& one : run_.all_intervals()) {
      if (!text.empty()) text += ' ';
      text += fmt::format("{}:{}-{}={}", one.slot, one.begin, one.end, one.tiers);
    }
    return text;
  }

 private:
  PageArena arena_;
  ArrayPool pool_{arena_};
  kvcache::Run run_{};

 public:
  HolderIntervals intervals{run_, pool_};
};

TEST(HolderIntervals, JoinWhereTheyTouchWithTheSameTiers) {
  Intervals list;
  list.intervals.add(3, 0, 10, 1);
  list.intervals.add(3, 20, 30, 1);
  EXPECT_EQ(list.shown(), "3:0-10=1 3:20-30=1");
  list.intervals.add(3, 10, 20, 1);
  EXPECT_EQ(list.shown(), "3:0-30=1");
  list.intervals.add(3, 30, 128, 2);
  EXPECT_EQ(list.shown(), "3:0-30=1 3:30-128=2");
}

TEST(HolderIntervals, OfDifferentSlotsDoNotJoin) {
  Intervals list;
  list.intervals.add(5, 10, 20, 1);
  list.intervals.add(4, 0, 10, 1);
  list.intervals.add(6, 20, 30, 1);
  EXPECT_EQ(list.shown(), "4:0-10=1 5:10-20=1 6:20-30=1");
  list.intervals.remove_all(5);
  EXPECT_EQ(list.shown(), "4:0-10=1 6:20-30=1");
  list.intervals.remove_all(7);  // has none
  EXPECT_EQ(list.shown(), "4:0-10=1 6:20-30=1");
}

TEST(HolderIntervals, ABlockTakenFromTheMiddleSplitsThem) {
  Intervals list;
  list.intervals.add(1, 0, 128, 3);
  list.intervals.set_tiers(1, 64, 0);
  EXPECT_EQ(list.shown(), "1:0-64=3 1:65-128=3");
  list.intervals.set_tiers(1, 0, 0);
  list.intervals.set_tiers(1, 127, 0);
  EXPECT_EQ(list.shown(), "1:1-64=3 1:65-127=3");
  list.intervals.set_tiers(1, 63, 1);
  EXPECT_EQ(list.shown(), "1:1-63=3 1:63-64=1 1:65-127=3");
  list.intervals.add(1, 64, 65, 1);
  EXPECT_EQ(list.shown(), "1:1-63=3 1:63-65=1 1:65-127=3");
  list.intervals.set_tiers(1, 63, 3);
  list.intervals.set_tiers(1, 64, 3);
  EXPECT_EQ(list.shown(), "1:1-127=3");
}

TEST(HolderIntervals, AreListedBySlot) {
  Intervals list;
  for (const std::uint32_t slot : {9U, 2U, 5U, 7U}) list.intervals.add(slot, 0, slot, 1);
  EXPECT_EQ(list.shown(), "2:0-2=1 5:0-5=1 7:0-7=1 9:0-9=1");
  EXPECT_EQ(list.intervals.of(5).size(), 1U);
  EXPECT_TRUE(list.intervals.of(6).empty());
  EXPECT_EQ(list.intervals.tiers(7, 6), 1U);
  EXPECT_EQ(list.intervals.tiers(7, 7), 0U);
}

}  // namespace
}  // namespace baton::kvcache
