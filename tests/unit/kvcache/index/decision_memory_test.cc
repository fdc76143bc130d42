// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/decision_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

namespace baton::kvcache {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Holder kFirst{.worker = {1}, .rank = 0};
const Holder kSecond{.worker = {2}, .rank = 3};
const DecisionMemory::Time kStart{seconds(1000)};

std::vector<SequenceHash> prompt_of(std::uint64_t salt, std::size_t count) {
  std::vector<SequenceHash> prompt;
  for (std::size_t i = 0; i < count; ++i) prompt.push_back(next_sequence(salt, i));
  return prompt;
}

std::uint32_t length_of(DecisionMemory& memory, std::span<const SequenceHash> prompt,
                        DecisionMemory::Time now, Holder holder = kFirst) {
  std::vector<Match> matches;
  memory.match(prompt, now, matches);
  for (const Match& match : matches) {
    if (match.holder == holder) return match.blocks[0];
  }
  return 0;
}

TEST(DecisionMemory, RemembersWhoWasGivenAPrompt) {
  DecisionMemory memory({});
  const auto prompt = prompt_of(1, 10);
  memory.remember(kFirst, prompt, kStart);
  memory.remember(kSecond, std::span(prompt).first(4), kStart);
  EXPECT_EQ(length_of(memory, prompt, kStart), 10U);
  EXPECT_EQ(length_of(memory, prompt, kStart, kSecond), 4U);
  EXPECT_EQ(memory.size().blocks, 10U);
  EXPECT_EQ(memory.size().memberships, 14U);
}

TEST(DecisionMemory, ForgetsAfterItsTimeRoundedUp) {
  DecisionMemory memory({.ttl = seconds(2)});
  const auto prompt = prompt_of(1, 3);
  memory.remember(kFirst, prompt, kStart + milliseconds(30));
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(2030)), 3U);
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(2099)), 3U);
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(2100)), 0U);
  EXPECT_EQ(memory.size().memberships, 0U);
}

TEST(DecisionMemory, AUsePutsOffForgettingOfWhatWasUsed) {
  DecisionMemory memory({.ttl = seconds(2)});
  const auto prompt = prompt_of(1, 10);
  memory.remember(kFirst, prompt, kStart);
  memory.remember(kFirst, std::span(prompt).first(6), kStart + seconds(1));
  EXPECT_EQ(length_of(memory, prompt, kStart + seconds(2)), 6U);
  memory.remember(kFirst, std::span(prompt).first(2), kStart + milliseconds(2500));
  EXPECT_EQ(length_of(memory, prompt, kStart + seconds(4)), 2U);
  EXPECT_EQ(length_of(memory, prompt, kStart + seconds(5)), 0U);
}

TEST(DecisionMemory, ForgetsAHolderAtOnce) {
  DecisionMemory memory({.ttl = seconds(2)});
  const auto prompt = prompt_of(1, 5);
  memory.remember(kFirst, prompt, kStart);
  memory.remember(kSecond, prompt, kStart);
  memory.forget(kFirst);
  memory.forget({.worker = {9}, .rank = 0});
  EXPECT_EQ(length_of(memory, prompt, kStart), 0U);
  EXPECT_EQ(length_of(memory, prompt, kStart, kSecond), 5U);
  // What was forgotten does not take along what came after.
  memory.remember(kFirst, prompt, kStart + seconds(1));
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(2500)), 5U);
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(3000)), 0U);
}

TEST(DecisionMemory, KeepsTheLatestWhenThereIsTooMuch) {
  DecisionMemory memory({.ttl = seconds(10), .blocks = 20});
  for (int i = 0; i < 5; ++i) {
    memory.remember(kFirst, prompt_of(static_cast<std::uint64_t>(i), 10), kStart + seconds(i));
    EXPECT_LE(memory.size().memberships, 20U);
  }
  EXPECT_EQ(length_of(memory, prompt_of(2, 10), kStart + seconds(5)), 0U);
  EXPECT_EQ(length_of(memory, prompt_of(3, 10), kStart + seconds(5)), 10U);
  EXPECT_EQ(length_of(memory, prompt_of(4, 10), kStart + seconds(5)), 10U);
  // More than there is room for at all: its beginning.
  memory.remember(kSecond, prompt_of(7, 30), kStart + seconds(5));
  EXPECT_EQ(length_of(memory, prompt_of(7, 30), kStart + seconds(5), kSecond), 20U);
  EXPECT_EQ(memory.size().memberships, 20U);
}

TEST(DecisionMemory, KeepsLongPromptsWhole) {
  DecisionMemory memory({.ttl = seconds(2)});
  const auto prompt = prompt_of(1, 20'000);
  memory.remember(kFirst, prompt, kStart);
  EXPECT_EQ(length_of(memory, prompt, kStart), 20'000U);
  memory.remember(kFirst, std::span(prompt).first(12'345), kStart + seconds(1));
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(2'500)), 12'345U);
  EXPECT_EQ(memory.size().memberships, 12'345U);
  memory.remember(kSecond, prompt_of(2, DecisionMemory::kLongest + 10), kStart);
  EXPECT_EQ(length_of(memory, prompt_of(2, 40'000), kStart, kSecond), DecisionMemory::kLongest);
}

TEST(DecisionMemory, CostsLittleForEachBlockOfALongPrompt) {
  DecisionMemory memory({});
  for (std::uint64_t i = 0; i < 20; ++i) memory.remember(kFirst, prompt_of(i, 10'000), kStart);
  EXPECT_LT(memory.size().bytes, 24U * memory.size().memberships);
}

// However much is due at once, a call does a part of it; what is left is forgotten by the next ones.
TEST(DecisionMemory, ForgetsInPartsWhereMuchIsDue) {
  DecisionMemory memory({.ttl = seconds(2)});
  for (std::uint64_t i = 0; i < 5'000; ++i) memory.remember(kFirst, prompt_of(i, 1), kStart);
  EXPECT_EQ(memory.size().memberships, 5'000U);
  memory.remember(kSecond, prompt_of(0, 1), kStart + seconds(3));
  EXPECT_GT(memory.size().memberships, 1U);
  memory.tidy(kStart + seconds(3));
  EXPECT_EQ(memory.size().memberships, 1U);
  EXPECT_EQ(length_of(memory, prompt_of(7, 1), kStart + seconds(3)), 0U);
}

// What each holder was sent, and when that is to be forgotten: block by block.
class DecisionModel {
 public:
  explicit DecisionModel(std::int64_t ttl_ticks) : ttl_(ttl_ticks) {}

  void remember(Holder holder, std::span<const SequenceHash> prompt, std::int64_t tick) {
    for (const SequenceHash block : prompt) until_[holder][block] = tick + ttl_;
  }
  void forget(Holder holder) { until_.erase(holder); }
  std::uint32_t length_of(Holder holder, std::span<const SequenceHash> prompt, std::int64_t tick) {
    const auto& blocks = until_[holder];
    std::uint32_t length = 0;
    for (; length < prompt.size(); ++length) {
      const auto found = blocks.find(prompt[length]);
      if (found == blocks.end() || found->second <= tick) break;
    }
    return length;
  }
  std::size_t count(std::int64_t tick) const {
    std::size_t count = 0;
    for (const auto& [holder, blocks] : until_) {
      for (const auto& [block, until] : blocks) count += until > tick ? 1 : 0;
    }
    return count;
  }

 private:
  std::int64_t ttl_;
  std::map<Holder, std::map<SequenceHash, std::int64_t>> until_;
};

TEST(DecisionMemory, AgreesWithAModel) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 chance(seed);
    const auto below = [&](std::uint32_t limit) {
      return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(chance);
    };
    DecisionMemory memory({.ttl = milliseconds(3'000)});
    DecisionModel model(30);
    std::int64_t tick = 0;
    // Prompts that part from each other at any block, some of them longer than a run.
    const auto any_prompt = [&] {
      std::vector<SequenceHash> prompt;
      const std::uint32_t length = 1 + below(below(4) == 0 ? 400 : 20);
      std::uint64_t kind = 0;
      for (std::uint32_t i = 0; i < length; ++i) {
        if (below(12) == 0) kind = below(3);
        prompt.push_back(i == 0 ? first_sequence(kind) : next_sequence(prompt.back(), kind));
      }
      return prompt;
    };
    for (int step = 0; step < 300; ++step) {
      const auto now = kStart + milliseconds(100) * tick;
      const Holder holder{.worker = {1 + below(4)}, .rank = 0};
      const auto prompt = any_prompt();
      if (below(40) == 0) {
        memory.forget(holder);
        model.forget(holder);
      } else {
        memory.remember(holder, prompt, now);
        model.remember(holder, prompt, tick);
      }
      tick += below(3);
      const auto later = kStart + milliseconds(100) * tick;
      const auto question = any_prompt();
      for (std::uint64_t worker = 1; worker <= 4; ++worker) {
        const Holder other{.worker = {worker}, .rank = 0};
        ASSERT_EQ(length_of(memory, question, later, other),
                  model.length_of(other, question, tick));
      }
      memory.tidy(later);
      ASSERT_EQ(memory.size().memberships, model.count(tick));
    }
  }
}

TEST(DecisionMemory, ServesThreadsAtOnce) {
  DecisionMemory memory({.ttl = milliseconds(500), .blocks = 1000});
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<Match> matches;
      const Holder holder{.worker = {thread + 1}, .rank = 0};
      for (int i = 0; i < 400; ++i) {
        const auto now = kStart + milliseconds(10 * i);
        memory.remember(holder, prompt_of(static_cast<std::uint64_t>(i % 7), 20), now);
        memory.match(prompt_of(static_cast<std::uint64_t>(i % 5), 20), now, matches);
        if (i % 50 == 0) memory.forget(holder);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(memory.size().memberships, 1000U);
  EXPECT_EQ(length_of(memory, prompt_of(0, 20), kStart + seconds(60)), 0U);
  EXPECT_EQ(memory.size().memberships, 0U);
}

TEST(DecisionMemory, RemembersNothingOfNothing) {
  DecisionMemory memory({});
  memory.remember(kFirst, {}, kStart);
  EXPECT_EQ(memory.size().memberships, 0U);
  std::vector<Match> matches{{.holder = kFirst}};
  memory.match({}, kStart, matches);
  EXPECT_TRUE(matches.empty());
  DecisionMemory none({.ttl = seconds(1), .blocks = 0});
  none.remember(kFirst, prompt_of(1, 5), kStart);
  EXPECT_EQ(length_of(none, prompt_of(1, 5), kStart), 0U);
}

TEST(DecisionMemory, AMatchIsOfAllTiersAlike) {
  DecisionMemory memory({});
  memory.remember(kFirst, prompt_of(1, 7), kStart);
  std::vector<Match> matches;
  memory.match(prompt_of(1, 9), kStart, matches);
  EXPECT_EQ(matches, (std::vector<Match>{{.holder = kFirst, .blocks = {7, 7, 7, 7}}}));
}

TEST(DecisionMemory, RanksOfAWorkerAreHoldersOfTheirOwn) {
  DecisionMemory memory({});
  const auto prompt = prompt_of(1, 6);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    memory.remember({.worker = {1}, .rank = rank}, std::span(prompt).first(rank + 2), kStart);
  }
  memory.forget({.worker = {1}, .rank = 2});
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(length_of(memory, prompt, kStart, {.worker = {1}, .rank = rank}),
              rank == 2 ? 0 : rank + 2);
  }
}

TEST(DecisionMemory, AnotherPromptWithTheSameBeginningSharesItsBlocks) {
  DecisionMemory memory({});
  auto one = prompt_of(1, 10);
  auto other = one;
  for (std::size_t i = 4; i < other.size(); ++i) other[i] = next_sequence(77, i);
  memory.remember(kFirst, one, kStart);
  memory.remember(kFirst, other, kStart);
  EXPECT_EQ(length_of(memory, one, kStart), 10U);
  EXPECT_EQ(length_of(memory, other, kStart), 10U);
  EXPECT_EQ(memory.size().memberships, 16U);
  EXPECT_EQ(memory.size().blocks, 16U);
}

TEST(DecisionMemory, ALaterUseOfABranchKeepsWhatLeadsToIt) {
  DecisionMemory memory({.ttl = seconds(2)});
  auto one = prompt_of(1, 10);
  auto other = one;
  for (std::size_t i = 4; i < other.size(); ++i) other[i] = next_sequence(77, i);
  memory.remember(kFirst, one, kStart);
  memory.remember(kFirst, other, kStart + seconds(1));
  EXPECT_EQ(length_of(memory, one, kStart + milliseconds(2500)), 4U);
  EXPECT_EQ(length_of(memory, other, kStart + milliseconds(2500)), 10U);
  EXPECT_EQ(length_of(memory, other, kStart + milliseconds(3500)), 0U);
}

TEST(DecisionMemory, AClockThatLagsDoesNotForgetTooMuch) {
  DecisionMemory memory({.ttl = seconds(2)});
  const auto prompt = prompt_of(1, 4);
  memory.remember(kFirst, prompt, kStart + seconds(1));
  memory.remember(kFirst, prompt, kStart);  // from a thread that looked at its clock before
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(2900)), 4U);
  EXPECT_EQ(length_of(memory, prompt, kStart + milliseconds(3100)), 0U);
}

// Under a limit: never more than that, and nothing that nobody was sent. Nearly always the latest
// prompt is whole: what leads to a run that is to go next may still take room.
TEST(DecisionMemory, AtItsLimitKeepsTheLatestOfWhatWasSent) {
  constexpr std::size_t kMost = 300;
  constexpr int kPrompts = 200;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 chance(seed);
    DecisionMemory memory({.ttl = seconds(100), .blocks = kMost});
    DecisionModel unbounded(1000);
    int whole = 0;
    for (int step = 0; step < kPrompts; ++step) {
      const auto now = kStart + milliseconds(100) * step;
      const Holder holder{.worker = {1 + chance() % 3}, .rank = 0};
      std::vector<SequenceHash> prompt;
      const std::uint32_t length = 1 + chance() % (chance() % 5 == 0 ? 280 : 40);
      std::uint64_t kind = 0;
      while (prompt.size() < length) {
        if (chance() % 10 == 0) kind = chance() % 4;
        prompt.push_back(prompt.empty() ? first_sequence(kind)
                                        : next_sequence(prompt.back(), kind));
      }
      memory.remember(holder, prompt, now);
      unbounded.remember(holder, prompt, step);
      ASSERT_LE(memory.size().memberships, kMost);
      whole += length_of(memory, prompt, now, holder) == length ? 1 : 0;
      for (std::uint64_t worker = 1; worker <= 3; ++worker) {
        const Holder other{.worker = {worker}, .rank = 0};
        ASSERT_LE(length_of(memory, prompt, now, other), unbounded.length_of(other, prompt, step));
      }
    }
    EXPECT_GT(whole, kPrompts * 9 / 10);
  }
}

TEST(DecisionMemory, GivesItsMemoryBack) {
  DecisionMemory memory({.ttl = seconds(1)});
  const std::size_t empty = memory.size().bytes;
  for (std::uint64_t i = 0; i < 200; ++i) {
    memory.remember({.worker = {i % 50}, .rank = 0}, prompt_of(i, 300), kStart);
  }
  EXPECT_GT(memory.size().bytes, empty + 500'000);
  memory.tidy(kStart + seconds(2));
  EXPECT_EQ(memory.size().blocks, 0U);
  EXPECT_LT(memory.size().bytes, empty + 100'000);
}

}  // namespace
}  // namespace baton::kvcache
