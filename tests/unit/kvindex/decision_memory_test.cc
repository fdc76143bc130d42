// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/decision_memory.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

namespace baton::kvindex {
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

}  // namespace
}  // namespace baton::kvindex
