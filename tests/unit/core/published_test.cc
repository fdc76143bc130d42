// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace baton {
namespace {

TEST(Published, BeginsWithAnEmptyValue) {
  const Published<std::vector<int>> published;
  ASSERT_NE(published.get(), nullptr);
  EXPECT_TRUE(published.get()->empty());
}

TEST(Published, AReaderKeepsWhatItSaw) {
  Published<std::vector<int>> published;
  published.set({1});
  const auto seen = published.get();
  published.set({1, 2});
  EXPECT_EQ(*seen, (std::vector<int>{1}));
  EXPECT_EQ(*published.get(), (std::vector<int>{1, 2}));
}

// What looks at its own publisher when it ends: that must not be under the publisher's lock.
struct Curious {
  Published<Curious>* home = nullptr;
  bool* looked = nullptr;

  Curious() = default;
  Curious(Published<Curious>* at, bool* told) : home(at), looked(told) {}
  Curious(Curious&& other) noexcept
      : home(std::exchange(other.home, nullptr)), looked(std::exchange(other.looked, nullptr)) {}
  ~Curious() {
    if (home && home->get()) *looked = true;
  }
};

TEST(Published, WhatWasThereMayLookAtItsSuccessorAsItEnds) {
  bool looked = false;
  Published<Curious> published;
  published.set(Curious(&published, &looked));
  published.set(Curious());
  EXPECT_TRUE(looked);
}

TEST(Published, EveryReaderSeesAWholeValueAndNeverAnOlderOneAgain) {
  constexpr int kChanges = 2'000;
  Published<std::vector<int>> published;
  published.set(std::vector<int>(16, 0));
  std::atomic<int> begun{0};
  std::atomic<bool> mixed{false};
  std::atomic<bool> went_back{false};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] {
        ++begun;
        int last = 0;
        while (last < kChanges) {
          const auto seen = published.get();
          const int first = seen->front();
          if (std::ranges::any_of(*seen, [first](int one) { return one != first; })) mixed = true;
          if (first < last) went_back = true;
          last = std::max(last, first);
        }
      });
    }
    while (begun < 2) std::this_thread::yield();
    for (int i = 1; i <= kChanges; ++i) published.set(std::vector<int>(16, i));
  }
  EXPECT_FALSE(mixed);
  EXPECT_FALSE(went_back);
}

}  // namespace
}  // namespace baton
