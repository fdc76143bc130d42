// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/index.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace baton::kvindex {
namespace {

constexpr std::uint32_t kDepth = 400;
constexpr int kRounds = 60;

std::vector<NewBlock> shared_prompt() {
  std::vector<NewBlock> blocks;
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    blocks.push_back({.engine = next_sequence(1, i), .block = next_sequence(2, i)});
  }
  return blocks;
}

std::vector<SequenceHash> sequences_of(const std::vector<NewBlock>& blocks) {
  std::vector<SequenceHash> sequences;
  for (const NewBlock& block : blocks) {
    sequences.push_back(sequences.empty() ? first_sequence(block.block)
                                          : next_sequence(sequences.back(), block.block));
  }
  return sequences;
}

// What a writer has done, and is about to do, to its prefix of the prompt. A reader that looks
// before and after knows the bounds of what it may have seen.
struct alignas(64) Progress {
  std::atomic<std::uint64_t> begun{0};                    // operations
  std::atomic<std::uint64_t> finished{0};                 // operations
  std::array<std::atomic<std::uint32_t>, 4096> length{};  // after each
};

void grow_and_shrink(Index& index, Slot slot, const std::vector<NewBlock>& prompt,
                     std::uint32_t seed, Progress& progress) {
  std::uint32_t length = 0;
  const auto apply = [&](std::uint32_t to) {
    const std::uint64_t number = progress.begun.load() + 1;
    progress.length[number % progress.length.size()].store(to);
    progress.begun.store(number);
    if (to > length) {
      std::optional<EngineHash> parent;
      if (length > 0) parent = prompt[length - 1].engine;
      index.store(slot, parent, std::span(prompt).subspan(length, to - length), Tier::Device);
    } else {
      std::vector<EngineHash> names;
      for (std::uint32_t i = length; i-- > to;) names.push_back(prompt[i].engine);
      index.remove(slot, names, Tier::Device);
    }
    length = to;
    progress.finished.store(number);
  };
  for (int round = 0; round < kRounds; ++round) {
    while (length < kDepth) {
      seed = seed * 1664525 + 1013904223;
      apply(std::min(kDepth, length + 1 + (seed >> 16) % 90));
    }
    while (length > 0) {
      seed = seed * 1664525 + 1013904223;
      apply(length - std::min(length, 1 + (seed >> 16) % 90));
    }
  }
}

TEST(IndexConcurrently, AReaderSeesWhatWasAppliedBeforeAndNothingThatNeverWas) {
  constexpr std::uint32_t kWriters = 3;
  Index index({});
  const auto prompt = shared_prompt();
  const auto sequences = sequences_of(prompt);
  std::array<Progress, kWriters> progress;
  std::vector<Slot> slots;
  // One that never changes keeps the blocks alive; the others' sets come and go around it.
  index.store(index.join({.worker = {100}, .rank = 0}), {}, prompt, Tier::Device);
  for (std::uint32_t i = 0; i < kWriters; ++i) {
    slots.push_back(index.join({.worker = {i + 1}, .rank = 0}));
  }

  std::atomic<std::uint32_t> writing{kWriters};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> compared{0};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i] {
      grow_and_shrink(index, slots[i], prompt, i + 1, progress[i]);
      writing.fetch_sub(1);
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      std::vector<Match> matches;
      while (writing.load() > 0) {
        std::array<std::uint64_t, kWriters> before{};
        for (std::uint32_t i = 0; i < kWriters; ++i) before[i] = progress[i].finished.load();
        index.match(sequences, matches);
        std::array<std::uint32_t, kWriters> seen{};
        bool fixed_seen = false;
        for (const Match& match : matches) {
          if (match.holder.worker.value == 100) {
            fixed_seen = match.blocks[0] == kDepth;
          } else {
            seen[match.holder.worker.value - 1] = match.blocks[0];
          }
        }
        if (!fixed_seen) wrong.fetch_add(1);
        for (std::uint32_t i = 0; i < kWriters; ++i) {
          const std::uint64_t after = progress[i].begun.load();
          if (after - before[i] + 2 > progress[i].length.size()) continue;  // overwritten meanwhile
          std::uint32_t least = kDepth;
          std::uint32_t most = 0;
          for (std::uint64_t number = before[i]; number <= after; ++number) {
            const std::uint32_t length = progress[i].length[number % 4096].load();
            least = std::min(least, length);
            most = std::max(most, length);
          }
          if (progress[i].begun.load() - before[i] + 2 > progress[i].length.size()) continue;
          if (seen[i] < least || seen[i] > most) wrong.fetch_add(1);
          compared.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_GT(compared.load(), 0U);
  EXPECT_EQ(index.size().blocks, kDepth);
  EXPECT_EQ(index.size().memberships, kDepth);
}

TEST(IndexConcurrently, WritersTogetherTakeNoMoreBlocksThanTheyMay) {
  constexpr std::size_t kMost = 5000;
  Index index({.blocks = kMost});
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> exceeded{false};
  for (std::uint64_t writer = 0; writer < 3; ++writer) {
    threads.emplace_back([&, writer] {
      const Slot slot = index.join({.worker = {writer + 1}, .rank = 0});
      for (std::uint64_t i = 0; i < 4000; ++i) {
        const std::uint64_t number = writer * 1'000'000 + i;
        done +=
            index
                .store(slot, {},
                       std::array{NewBlock{.engine = number, .block = next_sequence(3, number)}},
                       Tier::Device)
                .done;
        if (index.size().blocks > kMost) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done.load(), kMost);
  EXPECT_FALSE(exceeded.load());
}

TEST(IndexConcurrently, HoldersComeAndGoWhileOthersLook) {
  Index index({});
  const auto prompt = shared_prompt();
  const auto sequences = sequences_of(prompt);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> wrong{0};
  std::thread reader([&] {
    std::vector<Match> matches;
    while (!done.load()) {
      index.match(sequences, matches);
      for (const Match& match : matches) {
        // A slot's next holder is never taken for the one before: each has a length of its own.
        if (match.blocks[0] > match.holder.rank) wrong.fetch_add(1);
      }
      if (index.size().blocks > kDepth) wrong.fetch_add(1);
    }
  });
  std::vector<std::thread> writers;
  for (std::uint64_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      for (std::uint32_t i = 0; i < 300; ++i) {
        const std::uint32_t length =
            1 + (i * 131 + static_cast<std::uint32_t>(writer) * 57) % kDepth;
        const Slot slot = index.join({.worker = {writer + 1}, .rank = length});
        index.store(slot, {}, std::span(prompt).first(length), Tier::Device);
        std::size_t visited = 0;
        index.visit(slot, [&](const Index::Held&) { ++visited; });
        if (visited != length) wrong.fetch_add(1);
        index.leave(slot);
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_EQ(index.size().blocks, 0U);
}

}  // namespace
}  // namespace baton::kvindex
