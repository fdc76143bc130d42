// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace baton::kvcache {
namespace {

constexpr std::uint32_t kDepth = 400;
constexpr std::uint32_t kShared = 150;  // blocks, after which prompts branch
constexpr std::uint32_t kPrompts = 2;
constexpr int kRounds = 40;

// Threads that meet at a lock take turns, and where others want the cores each turn may be a long
// wait: then fewer rounds have to do.
class Enough {
 public:
  bool operator()() const { return std::chrono::steady_clock::now() > end_; }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

using Prompt = std::vector<NewBlock>;

Prompt prompt_number(std::uint32_t number) {
  Prompt blocks;
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    const std::uint32_t branch = i < kShared ? 0 : number * kDepth;
    blocks.push_back(
        {.engine = next_sequence(1, branch + i), .block = next_sequence(2, branch + i)});
  }
  return blocks;
}

std::vector<SequenceHash> sequences_of(const Prompt& blocks) {
  std::vector<SequenceHash> sequences;
  for (const NewBlock& block : blocks) {
    sequences.push_back(sequences.empty() ? first_sequence(block.block)
                                          : next_sequence(sequences.back(), block.block));
  }
  return sequences;
}

// The beginning of one prompt that a holder has in each of two tiers.
struct Beginning {
  std::uint32_t prompt = 0;
  std::uint32_t device = 0;
  std::uint32_t host = 0;

  std::uint32_t packed() const { return prompt << 30U | device << 15U | host; }
  static Beginning unpack(std::uint32_t packed) {
    return {.prompt = packed >> 30U, .device = packed >> 15U & 0x7FFF, .host = packed & 0x7FFF};
  }
  // What a match with a prompt is to say.
  std::array<std::uint32_t, 2> of(std::uint32_t other) const {
    const std::uint32_t most = other == prompt ? kDepth : kShared;
    return {std::min(device, most), std::min(std::max(device, host), most)};
  }
};

// What a writer has done, and is about to do, to what it holds. A reader that looks before and after
// knows the bounds of what it may have seen.
struct alignas(64) Progress {
  std::atomic<std::uint64_t> begun{0};                  // operations
  std::atomic<std::uint64_t> finished{0};               // operations
  std::array<std::atomic<std::uint32_t>, 4096> held{};  // after each, packed

  // Whether what was seen of a prompt can have been, by what was finished before; nothing where too
  // much has happened since.
  std::optional<bool> allows(std::uint64_t before, std::uint32_t prompt,
                             std::array<std::uint32_t, 2> seen) const {
    const std::uint64_t after = begun.load();
    if (after - before + 2 > held.size()) return std::nullopt;
    std::array<std::uint32_t, 2> least{kDepth, kDepth};
    std::array<std::uint32_t, 2> most{0, 0};
    for (std::uint64_t number = before; number <= after; ++number) {
      const auto one = Beginning::unpack(held[number % held.size()].load()).of(prompt);
      for (std::size_t tier = 0; tier < one.size(); ++tier) {
        least[tier] = std::min(least[tier], one[tier]);
        most[tier] = std::max(most[tier], one[tier]);
      }
    }
    if (begun.load() - before + 2 > held.size()) return std::nullopt;
    return least[0] <= seen[0] && seen[0] <= most[0] && least[1] <= seen[1] && seen[1] <= most[1];
  }
};

// Role. Lets a holder's beginnings of prompts grow and shrink, now of one prompt and now of another.
class Writer {
 public:
  Writer(Index& index, Slot slot, const std::array<Prompt, kPrompts>& prompts, std::uint32_t seed,
         Progress& progress)
      : index_(index), slot_(slot), prompts_(prompts), seed_(seed), progress_(progress) {}

  void run() {
    const Enough enough;
    for (int round = 0; round < kRounds && !enough(); ++round) {
      begin_operation([&](Beginning& next) { next.prompt = below(kPrompts); });
      while (held_.device < kDepth) {
        begin_operation(
            [&](Beginning& next) { next.device = std::min(kDepth, held_.device + 1 + below(90)); });
        if (below(3) == 0 && held_.host < held_.device)
          begin_operation([&](Beginning& next) {
            next.host = held_.host + 1 + below(held_.device - held_.host);
          });
      }
      shrink(below(kShared));
    }
    shrink(0);
  }

 private:
  std::uint32_t below(std::uint32_t bound) {
    seed_ = seed_ * 1664525 + 1013904223;
    return (seed_ >> 16U) % bound;
  }
  // Until no more than so many blocks are left.
  void shrink(std::uint32_t left) {
    while (std::max(held_.device, held_.host) > left) {
      const bool of_host = below(2) == 0;
      begin_operation([&](Beginning& next) {
        std::uint32_t& length = of_host ? next.host : next.device;
        length -= std::min(length, 1 + below(90));
      });
    }
  }
  // One that changes a single number.
  template <class Change>
  void begin_operation(Change change) {
    Beginning next = held_;
    change(next);
    const std::uint64_t number = progress_.begun.load() + 1;
    progress_.held[number % progress_.held.size()].store(next.packed());
    progress_.begun.store(number);
    const Prompt& prompt = prompts_[next.prompt];
    if (next.device > held_.device) {
      std::optional<EngineHash> parent;
      if (held_.device > 0) parent = prompt[held_.device - 1].engine;
      const auto more = std::span(prompt).subspan(held_.device, next.device - held_.device);
      index_.store(slot_, parent, more, Tier::Device);
    }
    if (next.host > held_.host)
      index_.copy(slot_, names(prompt, held_.host, next.host), Tier::Host);
    index_.remove(slot_, names(prompt, next.device, held_.device), Tier::Device);
    index_.remove(slot_, names(prompt, next.host, held_.host), Tier::Host);
    held_ = next;
    progress_.finished.store(number);
  }
  // The last one first, as engines evict.
  static std::vector<EngineHash> names(const Prompt& prompt, std::uint32_t from, std::uint32_t to) {
    std::vector<EngineHash> names;
    for (std::uint32_t i = to; i > from; --i) names.push_back(prompt[i - 1].engine);
    return names;
  }

  Index& index_;
  Slot slot_;
  const std::array<Prompt, kPrompts>& prompts_;
  std::uint32_t seed_;
  Progress& progress_;
  Beginning held_;
};

std::array<std::uint32_t, 2> two_tiers(const Match& match) {
  return {match.blocks[static_cast<std::size_t>(Tier::Device)],
          match.blocks[static_cast<std::size_t>(Tier::Host)]};
}

TEST(IndexConcurrently, AReaderSeesWhatWasAppliedBeforeAndNothingThatNeverWas) {
  constexpr std::uint32_t kWriters = 3;
  constexpr std::uint64_t kFixed = 100;
  Index index({});
  const std::array<Prompt, kPrompts> prompts{prompt_number(0), prompt_number(1)};
  const std::array sequences{sequences_of(prompts[0]), sequences_of(prompts[1])};
  std::array<Progress, kWriters> progress;
  std::vector<Slot> slots;
  // One that never changes keeps the blocks of one prompt alive; those of the other come and go.
  index.store(index.join({.worker = {kFixed}, .rank = 0}), {}, prompts[0], Tier::Device);
  for (std::uint32_t i = 0; i < kWriters; ++i) {
    slots.push_back(index.join({.worker = {i + 1}, .rank = 0}));
  }

  std::atomic<std::uint32_t> writing{kWriters};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> compared{0};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i] {
      Writer(index, slots[i], prompts, i + 1, progress[i]).run();
      writing.fetch_sub(1);
    });
  }
  const auto judge = [&](std::optional<bool> right) {
    if (!right) return;
    compared.fetch_add(1);
    if (!*right) wrong.fetch_add(1);
  };
  threads.emplace_back([&] {  // looks at everybody
    std::vector<Match> matches;
    std::uint32_t prompt = 0;
    do {
      std::array<std::uint64_t, kWriters> before{};
      for (std::uint32_t i = 0; i < kWriters; ++i) before[i] = progress[i].finished.load();
      index.match(sequences[prompt], matches);
      std::array<std::array<std::uint32_t, 2>, kWriters> seen{};
      const std::uint32_t fixed = prompt == 0 ? kDepth : kShared;
      bool fixed_seen = false;
      for (const Match& match : matches) {
        if (match.holder.worker.value == kFixed) {
          fixed_seen = two_tiers(match) == std::array{fixed, fixed};
        } else {
          seen[match.holder.worker.value - 1] = two_tiers(match);
        }
      }
      if (!fixed_seen) wrong.fetch_add(1);
      for (std::uint32_t i = 0; i < kWriters; ++i)
        judge(progress[i].allows(before[i], prompt, seen[i]));
      prompt = (prompt + 1) % kPrompts;
    } while (writing.load() > 0);
  });
  threads.emplace_back([&] {  // looks at one after the other
    for (std::uint32_t look = 0; writing.load() > 0; ++look) {
      const std::uint32_t i = look % kWriters;
      const std::uint32_t prompt = look / kWriters % kPrompts;
      const std::uint64_t before = progress[i].finished.load();
      const auto match = index.match_one(slots[i], sequences[prompt]);
      if (match && match->holder.worker.value != i + 1) wrong.fetch_add(1);
      const auto seen = match ? two_tiers(*match) : std::array<std::uint32_t, 2>{};
      judge(progress[i].allows(before, prompt, seen));
    }
  });
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
  const auto prompt = prompt_number(0);
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
      const Enough enough;
      for (std::uint32_t i = 0; i < 300 && !enough(); ++i) {
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
}  // namespace baton::kvcache
