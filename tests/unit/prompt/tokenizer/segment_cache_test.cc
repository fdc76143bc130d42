// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/segment_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace baton::prompt {
namespace {

// A text of its own, and the tokens that go with it.
std::string text_of(std::size_t number, std::size_t length = 100) {
  std::string text = std::to_string(number) + ' ';
  text.resize(length, 'x');
  return text;
}
TokenIds ids_of(std::size_t number) {
  return TokenIds(10 + number % 5, static_cast<TokenId>(number));
}

TEST(SegmentCache, GivesBackWhatItWasTold) {
  SegmentCache cache(1 << 16);
  TokenIds ids{7};
  EXPECT_FALSE(cache.append_known(text_of(1), Place::First, ids));
  cache.remember(text_of(1), Place::First, ids_of(1));
  EXPECT_TRUE(cache.append_known(text_of(1), Place::First, ids));
  TokenIds expected{7};
  expected.insert(expected.end(), 11, 1);
  EXPECT_EQ(ids, expected);
  const auto stats = cache.stats();
  EXPECT_EQ(stats.hits, 1U);
  EXPECT_EQ(stats.misses, 1U);
  EXPECT_EQ(stats.hit_bytes, 100U);
}

TEST(SegmentCache, TellsPlacesApart) {
  SegmentCache cache(1 << 16);
  cache.remember(text_of(1), Place::First, ids_of(1));
  TokenIds ids;
  EXPECT_FALSE(cache.append_known(text_of(1), Place::Later, ids));
  EXPECT_TRUE(ids.empty());
}

TEST(SegmentCache, RemembersASegmentWithoutTokens) {
  SegmentCache cache(1 << 16);
  cache.remember(text_of(1), Place::First, {});
  TokenIds ids;
  EXPECT_TRUE(cache.append_known(text_of(1), Place::First, ids));
  EXPECT_TRUE(ids.empty());
}

TEST(SegmentCache, StaysUnderItsBound) {
  constexpr std::size_t kBound = 20'000;
  SegmentCache cache(kBound);
  for (std::size_t number = 0; number < 1000; ++number) {
    cache.remember(text_of(number), Place::First, ids_of(number));
    ASSERT_LE(cache.stats().bytes, kBound);
  }
  // What one costs is at least its text and tokens, so it cannot hold more than this many.
  EXPECT_GT(cache.stats().bytes, kBound / 2);
}

TEST(SegmentCache, ForgetsTheLongestUnusedFirst) {
  SegmentCache cache(20'000);
  TokenIds ids;
  cache.remember(text_of(0), Place::First, ids_of(0));
  for (std::size_t number = 1; number < 1000; ++number) {
    cache.remember(text_of(number), Place::First, ids_of(number));
    ASSERT_TRUE(cache.append_known(text_of(0), Place::First, ids)) << "in use, after " << number;
  }
  EXPECT_FALSE(cache.append_known(text_of(1), Place::First, ids));
  EXPECT_TRUE(cache.append_known(text_of(999), Place::First, ids));
}

TEST(SegmentCache, DoesNotTakeWhatIsLargerThanItself) {
  SegmentCache cache(1000);
  cache.remember(text_of(1), Place::First, ids_of(1));
  cache.remember(text_of(2, 5000), Place::First, ids_of(2));
  TokenIds ids;
  EXPECT_FALSE(cache.append_known(text_of(2, 5000), Place::First, ids));
  EXPECT_TRUE(cache.append_known(text_of(1), Place::First, ids)) << "nothing was put out for it";
}

TEST(SegmentCache, CountsASegmentToldTwiceOnce) {
  SegmentCache cache(1 << 16);
  cache.remember(text_of(1), Place::First, ids_of(1));
  const std::size_t bytes = cache.stats().bytes;
  cache.remember(text_of(1), Place::First, ids_of(1));
  EXPECT_EQ(cache.stats().bytes, bytes);
}

TEST(SegmentCache, IsRightWhenThreadsUseItAtOnce) {
  // Large enough to be split, small enough to forget.
  constexpr std::size_t kBound = std::size_t{2} << 20;
  SegmentCache cache(kBound);
  const auto work = [&](std::size_t start) {
    TokenIds ids;
    for (std::size_t step = 0; step < 4000; ++step) {
      const std::size_t number = (start + step * 7) % 3000;
      ids.clear();
      const std::string text = text_of(number, 1000);
      if (cache.append_known(text, Place::Later, ids)) {
        EXPECT_EQ(ids, ids_of(number));
      } else {
        cache.remember(text, Place::Later, ids_of(number));
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t start = 0; start < 4; ++start) threads.emplace_back(work, start * 500);
  threads.clear();
  const auto stats = cache.stats();
  EXPECT_EQ(stats.hits + stats.misses, 16'000U);
  EXPECT_LE(stats.bytes, kBound);
}

}  // namespace
}  // namespace baton::prompt
