// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/segment_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace baton::tokenizer {
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

// Goes through segments as somebody who has to make their tokens where they are not known.
void pass(SegmentCache& cache, const std::vector<std::size_t>& numbers) {
  SegmentCache::Cursor cursor;
  for (const std::size_t number : numbers) {
    const std::string text = text_of(number);
    const auto name = SegmentCache::name_of(text, Place::Later);
    TokenIds ids;
    if (!cache.append_known(name, text, cursor, ids))
      cache.remember(name, text, ids_of(number), cursor);
  }
}

// How many segments are known by what they follow, the first one apart.
std::size_t followed(SegmentCache& cache, const std::vector<std::size_t>& numbers) {
  SegmentCache::Cursor cursor;
  TokenIds ids;
  if (!cache.append_known(SegmentCache::name_of(text_of(numbers[0]), Place::Later),
                          text_of(numbers[0]), cursor, ids)) {
    return 0;
  }
  std::string text;
  for (const std::size_t number : std::span(numbers).subspan(1)) text += text_of(number);
  std::size_t count = 0;
  for (std::string_view rest = text; !rest.empty(); ++count) {
    ids.clear();
    const std::size_t length = cache.append_next(rest, cursor, ids);
    if (length == 0) break;
    EXPECT_EQ(length, 100U);
    EXPECT_EQ(ids, ids_of(numbers[count + 1]));
    rest.remove_prefix(length);
  }
  return count;
}

TEST(SegmentCache, KnowsWhatFollowedTheLastTime) {
  SegmentCache cache(1 << 16);
  pass(cache, {1, 2, 3});
  EXPECT_EQ(followed(cache, {1, 2, 3}), 2U);
  EXPECT_EQ(followed(cache, {1, 2, 4}), 1U);
  EXPECT_EQ(followed(cache, {1, 3}), 0U) << "known, but not from here";
  EXPECT_EQ(cache.stats().hits, 6U) << "with the first of each";

  pass(cache, {1, 4, 2});
  EXPECT_EQ(followed(cache, {1, 4, 2, 3}), 3U) << "what followed the second time";
  EXPECT_EQ(followed(cache, {1, 2}), 0U);
}

TEST(SegmentCache, ComparesWhatFollows) {
  SegmentCache cache(1 << 16);
  pass(cache, {1, 2});
  SegmentCache::Cursor cursor;
  TokenIds ids;
  const std::string first = text_of(1);
  ASSERT_TRUE(cache.append_known(SegmentCache::name_of(first, Place::Later), first, cursor, ids));
  ids.clear();
  std::string other = text_of(2);
  other.back() = 'y';
  EXPECT_EQ(cache.append_next(other, cursor, ids), 0U);
  EXPECT_EQ(cache.append_next(text_of(2).substr(1), cursor, ids), 0U) << "too short";
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(cache.append_next(text_of(2) + other, cursor, ids), 100U) << "nothing was lost";
}

TEST(SegmentCache, ForgetsWhatFollowsWithTheSegment) {
  SegmentCache cache(20'000);
  pass(cache, {1, 2});
  for (std::size_t number = 10; number < 1000; ++number) {
    TokenIds ids;
    ASSERT_TRUE(cache.append_known(text_of(1), Place::Later, ids));
    cache.remember(text_of(number), Place::Later, ids_of(number));
  }
  EXPECT_EQ(followed(cache, {1, 2}), 0U);
  pass(cache, {1, 2});
  EXPECT_EQ(followed(cache, {1, 2}), 1U);
}

TEST(SegmentCache, IsRightWhenThreadsUseItAtOnce) {
  // Large enough to be split, small enough to forget.
  constexpr std::size_t kBound = std::size_t{2} << 20;
  SegmentCache cache(kBound);
  const auto work = [&](std::size_t start) {
    TokenIds ids;
    SegmentCache::Cursor cursor;
    for (std::size_t step = 0; step < 4000; ++step) {
      const std::size_t number = (start + step * 7) % 3000;
      ids.clear();
      const std::string text = text_of(number, 1000);
      const auto name = SegmentCache::name_of(text, Place::Later);
      if (cache.append_next(text, cursor, ids) > 0 || cache.append_known(name, text, cursor, ids)) {
        EXPECT_EQ(ids, ids_of(number));
      } else {
        cache.remember(name, text, ids_of(number), cursor);
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
}  // namespace baton::tokenizer
