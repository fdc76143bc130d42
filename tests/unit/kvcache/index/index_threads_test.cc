// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Listings, limits and decision memories while other threads write. Each thread knows what it did
// itself, so that nothing has to be guessed from timing.
#include "kvcache/index/decision_memory.h"
#include "kvcache/index/index.h"
#include "kvcache/index/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace baton::kvcache {
namespace {

std::vector<NewBlock> numbered(std::uint64_t salt, std::size_t count) {
  std::vector<NewBlock> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back({.engine = salt * 1'000'000 + i, .block = next_sequence(salt, i)});
  }
  return blocks;
}

std::vector<SequenceHash> numbered_sequences(std::uint64_t salt, std::size_t count) {
  std::vector<SequenceHash> sequences;
  for (const NewBlock& block : numbered(salt, count)) {
    sequences.push_back(sequences.empty() ? first_sequence(block.block)
                                          : next_sequence(sequences.back(), block.block));
  }
  return sequences;
}

// A listing is of one moment between two changes: here each change stores or removes a whole prompt,
// so no listing has a part of one.
TEST(IndexThreads, AListingHasEachChangeAsAWholeOrNotAtAll) {
  constexpr std::size_t kLength = 150;
  constexpr std::uint64_t kPromptCount = 4;
  Index index({});
  const Slot slot = index.join({.worker = {1}, .rank = 0});
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!done.load()) {
      std::array<std::size_t, kPromptCount> counts{};
      index.visit(slot, [&](const Index::Held& held) { ++counts[held.engine / 1'000'000]; });
      for (const std::size_t count : counts) {
        if (count != 0 && count != kLength) torn.fetch_add(1);
      }
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  for (std::uint64_t i = 0; i < 400 && std::chrono::steady_clock::now() < end; ++i) {
    const auto blocks = numbered(i % kPromptCount, kLength);
    EXPECT_EQ(index.store(slot, {}, blocks, Tier::Device).done, kLength);
    std::vector<EngineHash> names;
    for (const NewBlock& block : numbered((i + 2) % kPromptCount, kLength)) {
      names.push_back(block.engine);
    }
    index.remove(slot, names, Tier::Device);
  }
  done = true;
  reader.join();
  EXPECT_EQ(torn.load(), 0);
}

// What was saved while a writer went on can be restored, and is the beginning of each of its prompts.
TEST(IndexThreads, ASnapshotTakenMeanwhileCanBeRestored) {
  constexpr std::size_t kLength = 300;
  Index index({});
  const Slot slot = index.join({.worker = {1}, .rank = 0});
  std::atomic<bool> done{false};
  std::thread writer([&] {
    std::uint64_t salt = 0;
    do {
      const auto blocks = numbered(salt % 3, kLength);
      std::optional<EngineHash> parent;
      for (std::size_t at = 0; at < kLength; at += 50) {  // in order, in parts
        index.store(slot, parent, std::span(blocks).subspan(at, 50), Tier::Device);
        parent = blocks[at + 49].engine;
      }
      ++salt;
      if (salt % 3 == 0) index.clear(slot);
    } while (!done.load());
  });
  for (int i = 0; i < 30; ++i) {
    const auto blocks = list_blocks(index.list(slot));
    const std::vector<HolderSnapshot> saved{
        {.worker = "w", .rank = 0, .position = {}, .shape = {.size = 1}, .blocks = blocks}};
    const auto read = decode_snapshot(encode_snapshot(saved));
    EXPECT_TRUE(read);
    if (!read) break;
    Index restored({});
    const Slot again = restored.join({.worker = {1}, .rank = 0});
    EXPECT_EQ(restore_blocks(restored, again, read->at(0).blocks),
              (Applied{.done = static_cast<std::uint32_t>(blocks.size())}));
    std::size_t sum = 0;
    for (std::uint64_t salt = 0; salt < 3; ++salt) {
      const auto match = restored.match_one(again, numbered_sequences(salt, kLength));
      if (match) EXPECT_EQ(match->blocks[0] % 50, 0U);
      sum += match ? match->blocks[0] : 0;
    }
    EXPECT_EQ(sum, blocks.size());
  }
  done = true;
  writer.join();
}

TEST(IndexThreads, MembershipsStayBelowTheirMostHoweverManyWriteAtOnce) {
  constexpr std::size_t kMost = 2000;
  Index index({.blocks = 100'000, .memberships = kMost});
  std::atomic<bool> exceeded{false};
  std::array<std::size_t, 3> held{};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t writer = 0; writer < 3; ++writer) {
      threads.emplace_back([&, writer] {
        const Slot slot = index.join({.worker = {writer + 1}, .rank = 0});
        std::size_t mine = 0;
        for (std::uint64_t i = 0; i < 60; ++i) {
          const auto blocks = numbered(writer * 100 + i % 20, 77);
          mine += index.store(slot, {}, blocks, Tier::Device).done;
          if (i % 3 == 2) {
            std::vector<EngineHash> names;
            for (const NewBlock& block : blocks) names.push_back(block.engine);
            mine -= index.remove(slot, names, Tier::Device).done;
          }
          if (index.size().memberships > kMost) exceeded = true;
        }
        held[writer] = mine;
        if (index.holding(slot).blocks[0] != mine) exceeded = true;
      });
    }
  }
  EXPECT_FALSE(exceeded.load());
  EXPECT_EQ(index.size().memberships, held[0] + held[1] + held[2]);
}

// Writers of one prompt under names of their own, in different order: at the end each has all of it.
TEST(IndexThreads, WritersOfOnePromptDoNotLoseBlocksOfEachOther) {
  constexpr std::size_t kLength = 300;
  Index index({});
  std::vector<Slot> slots;
  for (std::uint64_t i = 0; i < 3; ++i) slots.push_back(index.join({.worker = {i + 1}, .rank = 0}));
  const auto blocks = numbered(1, kLength);
  const auto sequences = numbered_sequences(1, kLength);
  {
    std::vector<std::jthread> threads;
    for (std::size_t writer = 0; writer < slots.size(); ++writer) {
      threads.emplace_back([&, writer] {
        auto own = blocks;
        for (NewBlock& block : own) block.engine = block.engine * 8 + writer;
        for (std::size_t round = 0; round < 4; ++round) {
          const std::size_t step = 1 + (writer * 37 + round * 13) % 90;
          std::optional<EngineHash> parent;
          for (std::size_t at = 0; at < kLength; at += step) {
            const auto part = std::span(own).subspan(at, std::min(step, kLength - at));
            index.store(slots[writer], parent, part, Tier::Device);
            parent = part.back().engine;
          }
          if (round == 3) break;
          for (std::size_t at = kLength; at-- > 0;) {
            index.remove(slots[writer], std::array{own[at].engine}, Tier::Device);
          }
        }
      });
    }
  }
  std::vector<Match> matches;
  index.match(sequences, matches);
  ASSERT_EQ(matches.size(), slots.size());
  for (const Match& match : matches) EXPECT_EQ(match.blocks[0], kLength);
  EXPECT_EQ(index.size().blocks, kLength);
  EXPECT_EQ(index.size().memberships, kLength * slots.size());
}

// What is remembered of a holder is a beginning of a prompt that it was sent.
TEST(DecisionMemoryThreads, NobodyIsSaidToHaveWhatOthersWereSent) {
  using std::chrono::milliseconds;
  DecisionMemory memory({.ttl = milliseconds(1000), .blocks = 3000});
  const DecisionMemory::Time start{std::chrono::seconds(5)};
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    std::vector<Match> matches;
    for (std::uint64_t i = 0; !done.load(); ++i) {
      // Prompts of even salts go to the first holder only, odd ones to the second.
      const std::uint64_t salt = i % 8;
      memory.match(numbered_sequences(salt, 60), start, matches);
      for (const Match& match : matches) {
        if (match.holder.worker.value != salt % 2 + 1) wrong.fetch_add(1);
        if (match.blocks[0] > 40 || match.blocks[0] != match.blocks[3]) wrong.fetch_add(1);
      }
    }
  });
  {
    std::vector<std::jthread> writers;
    for (std::uint64_t writer = 0; writer < 2; ++writer) {
      writers.emplace_back([&, writer] {
        for (std::uint64_t i = 0; i < 200; ++i) {
          memory.remember({.worker = {writer + 1}, .rank = 0},
                          numbered_sequences(2 * (i % 4) + writer, 20 + i % 21),
                          start + milliseconds(i));
          if (i % 64 == 63) memory.forget({.worker = {writer + 1}, .rank = 0});
        }
      });
    }
  }
  done = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
  memory.tidy(start + std::chrono::seconds(60));
  EXPECT_EQ(memory.size().memberships, 0U);
  EXPECT_EQ(memory.size().blocks, 0U);
}

}  // namespace
}  // namespace baton::kvcache
