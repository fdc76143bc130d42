// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/kvcache/events/feed_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace baton::kvcache {
namespace {

using baton::test::MsgpackEncoder;
using test::Overlap;
using test::Tokens;

constexpr std::size_t kDevice = 0;
constexpr std::size_t kHost = 1;

// A block of one prompt, as the engine knows it.
struct Block {
  std::uint64_t hash = 0;
  Tokens tokens;      // all that it spans
  std::string image;  // empty: none
  SequenceHash sequence = 0;
  unsigned tiers = 0;  // bits
};

struct Prompt {
  std::string lora;
  std::string salt;
  std::vector<std::size_t> blocks;  // indices into the engine's
};

// Role. An engine that stores, moves, evicts and clears at random, and says so in every encoding
//   there is. It keeps what it holds, and what that is called is computed from whole prompts.
// Lifetime. Of one run.
class RandomEngine {
 public:
  RandomEngine(unsigned seed, BlockShape shape) : random_(seed), shape_(shape) {
    for (int i = 0; i < 40; ++i) add_prompt();
  }

  // The next batch.
  std::string batch() {
    events_ = MsgpackEncoder();
    count_ = 0;
    const std::size_t steps = 1 + below(4);
    for (std::size_t i = 0; i < steps; ++i) step();
    MsgpackEncoder batch;
    batch.array(below(2) == 0 ? 3 : 4);
    const bool longer = static_cast<unsigned char>(batch.encoded()[0]) == 0x94;
    below(2) == 0 ? batch.number(1.25) : batch.unsigned_integer(1'700'000'000);
    batch.array(count_, width()).raw(events_.encoded());
    below(2) == 0 ? batch.nil() : batch.unsigned_integer(0, width());
    if (longer) batch.map(1).text("new").array(0);
    return batch.encoded();
  }

  using Holding = std::map<std::uint64_t, std::pair<SequenceHash, unsigned>>;
  Holding holding() const {
    Holding held;
    for (const Block& block : blocks_) {
      if (block.tiers != 0) held[block.hash] = {block.sequence, block.tiers};
    }
    return held;
  }
  std::vector<std::vector<SequenceHash>> prompts() const {
    std::vector<std::vector<SequenceHash>> all;
    for (const Prompt& prompt : prompts_) {
      auto& hashes = all.emplace_back();
      for (const std::size_t at : prompt.blocks) hashes.push_back(blocks_[at].sequence);
    }
    return all;
  }
  std::pair<std::vector<SequenceHash>, Overlap> some_prompt() {
    const Prompt& prompt = prompts_[below(prompts_.size())];
    std::vector<SequenceHash> hashes;
    Overlap overlap{};
    std::array<bool, kTiers> open;
    open.fill(true);
    for (const std::size_t at : prompt.blocks) {
      hashes.push_back(blocks_[at].sequence);
      for (std::size_t tier = 0; tier < kTiers; ++tier) {
        open[tier] = open[tier] && (blocks_[at].tiers & ((2U << tier) - 1)) != 0;
        if (open[tier]) ++overlap[tier];
      }
    }
    return {hashes, overlap};
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  unsigned width() {
    constexpr std::array kWidths = {0U, 0U, 0U, 1U, 2U, 4U, 8U};
    return kWidths[below(kWidths.size())];
  }

  // Shares some blocks with the beginning of an earlier one.
  void add_prompt() {
    Prompt prompt;
    if (!prompts_.empty() && below(3) != 0) {
      prompt = prompts_[below(prompts_.size())];
      prompt.blocks.resize(below(prompt.blocks.size()) + 1);
    } else {
      if (below(3) == 0) prompt.lora = "adapter-" + std::to_string(below(2));
      if (below(3) == 0) prompt.salt = "tenant-" + std::to_string(below(2));
    }
    const std::uint64_t seed = seed_of({.lora = prompt.lora, .salt = prompt.salt});
    const std::size_t more = 1 + below(12);
    for (std::size_t i = 0; i < more; ++i) {
      const Block* before = prompt.blocks.empty() ? nullptr : &blocks_[prompt.blocks.back()];
      Block block;
      block.hash = random_() << 32U | random_();
      if (shape_.bigram && before != nullptr) block.tokens.push_back(before->tokens.back());
      while (block.tokens.size() < shape_.size + (shape_.bigram ? 1U : 0U))
        block.tokens.push_back(static_cast<std::uint32_t>(random_() >> below(30)));
      std::vector<std::uint64_t> images;
      if (!shape_.bigram && below(6) == 0) {
        const std::uint64_t number = random_() << 32U | random_();
        images.push_back(number);
        block.image = fmt::format("{:016x}", number) + std::string(48, 'e');
      }
      const auto own = hash_block(block.tokens, seed, images);
      block.sequence =
          before == nullptr ? first_sequence(own) : next_sequence(before->sequence, own);
      prompt.blocks.push_back(blocks_.size());
      blocks_.push_back(std::move(block));
    }
    prompts_.push_back(std::move(prompt));
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return compute(prompts_[below(prompts_.size())]);
      case 4:
      case 5:
      case 6:
        return evict(kDevice);
      case 7:
        return evict(kHost);
      case 8:
        return offload();
      case 9:
        if (below(20) == 0) return clear();
        return;
      default:
        return say_something_else();
    }
  }

  // Stores what the device lacks of a prompt.
  void compute(const Prompt& prompt) {
    const std::size_t length = 1 + below(prompt.blocks.size());
    for (std::size_t at = 0; at < length;) {
      if (has(prompt.blocks[at], kDevice)) {
        ++at;
        continue;
      }
      std::size_t end = at;
      const std::size_t most = 1 + below(8);
      while (end < length && end - at < most && !has(prompt.blocks[end], kDevice)) ++end;
      if (below(8) == 0 && at > 0) --at;  // one that it had
      say_stored(prompt, at, end, kDevice);
      at = end;
    }
  }
  bool has(std::size_t block, std::size_t tier) const {
    return (blocks_[block].tiers >> tier & 1U) != 0;
  }

  void evict(std::size_t tier) {
    std::vector<std::uint64_t> hashes;
    for (Block& block : blocks_) {
      if (below(10) != 0) continue;
      hashes.push_back(block.hash);  // the engine may say so twice
      block.tiers &= ~(1U << tier);
    }
    std::shuffle(hashes.begin(), hashes.end(), random_);
    ++count_;
    const std::string_view medium = tier == kHost   ? (below(2) == 0 ? "CPU" : "cpu_pinned")
                                    : below(2) == 0 ? "GPU"
                                                    : "";
    if (below(2) == 0) {
      events_.array(medium.empty() ? 2 : 3).text("BlockRemoved");
      write_hashes(hashes);
      if (!medium.empty()) events_.text(medium);
    } else {
      events_.map(3).text("medium").text(medium).text("block_hashes");
      write_hashes(hashes);
      events_.text("type").text("BlockRemoved");
    }
  }

  // Copies blocks to the host: with all that is in them, or only by their names.
  void offload() {
    if (below(2) == 0) {
      const Prompt& prompt = prompts_[below(prompts_.size())];
      const std::size_t at = below(prompt.blocks.size());
      if (at > 0 && blocks_[prompt.blocks[at - 1]].tiers == 0) return;
      say_stored(prompt, at, at + 1, kHost);
      return;
    }
    ++count_;
    std::vector<std::uint64_t> hashes;
    for (Block& block : blocks_) {
      if (below(10) != 0) continue;
      hashes.push_back(block.hash);
      if (block.tiers != 0) block.tiers |= 1U << kHost;
    }
    events_.map(6).text("type").text("BlockStored").text("block_hashes");
    write_hashes(hashes);
    events_.text("parent_block_hash").nil().text("token_ids").array(0);
    events_.text("block_size").unsigned_integer(0).text("medium").text("CPU");
  }

  void clear() {
    ++count_;
    for (Block& block : blocks_) block.tiers = 0;
    below(2) == 0 ? events_.array(1).text("AllBlocksCleared")
                  : events_.map(1).text("type").text("AllBlocksCleared");
  }

  // None of it is to have an effect.
  void say_something_else() {
    ++count_;
    const std::uint64_t hash = blocks_[below(blocks_.size())].hash;
    switch (below(5)) {
      case 0:
        events_.array(3).text("BlockPinned").map(1).nil().nil().array(1).nil();
        return;
      case 1:
        events_.array(2).text("BlockRemoved").text("nothing");
        return;
      case 2:
        events_.array(4).text("BlockRemoved").array(1).unsigned_integer(hash).text("GPU");
        events_.unsigned_integer(5);
        return;
      case 3:
        events_.map(3).text("type").text("BlockRemoved").text("block_hashes").array(1);
        events_.unsigned_integer(hash).text("locality").text("REMOTE");
        return;
      default:
        events_.map(4).text("type").text("BlockStored").text("block_hashes").array(1);
        events_.unsigned_integer(hash ^ 1U).text("token_ids").array(1).unsigned_integer(1);
        events_.text("block_size").unsigned_integer(shape_.size + 1U);
    }
  }

  void say_stored(const Prompt& prompt, std::size_t begin, std::size_t end, std::size_t tier) {
    ++count_;
    for (std::size_t i = begin; i < end; ++i) blocks_[prompt.blocks[i]].tiers |= 1U << tier;
    if (below(2) == 0) {
      say_stored_as_array(prompt, begin, end, tier);
    } else {
      say_stored_as_map(prompt, begin, end, tier);
    }
  }

  void say_stored_as_array(const Prompt& prompt, std::size_t begin, std::size_t end,
                           std::size_t tier) {
    const bool sglang = prompt.lora.empty() && !has_image(prompt, begin, end) && below(2) == 0;
    const bool salted = !prompt.salt.empty();
    events_.array(sglang ? (salted ? 8 : 7) : 12, below(2) == 0 ? 0U : 2U)
        .text("BlockStored", width() / 2);
    write_hashes(prompt, begin, end);
    write_parent(prompt, begin);
    write_tokens(prompt, begin, end);
    events_.unsigned_integer(shape_.size, width()).nil().text(tier == kHost ? "CPU" : "GPU");
    if (sglang) {
      if (salted) events_.map(1).text("cache_salt").text(prompt.salt);
      return;
    }
    prompt.lora.empty() ? events_.nil() : events_.text(prompt.lora);
    write_keys(prompt, begin, end);
    events_.unsigned_integer(0).text("full_attention").nil();
  }

  void say_stored_as_map(const Prompt& prompt, std::size_t begin, std::size_t end,
                         std::size_t tier) {
    const bool relay = !prompt.salt.empty() && !has_image(prompt, begin, end) && below(2) == 0;
    events_.map(8 + (relay ? 1U : 0U), below(2) == 0 ? 0U : 2U).text("type").text("BlockStored");
    events_.text("token_ids");
    write_tokens(prompt, begin, end);
    events_.text("block_hashes");
    write_hashes(prompt, begin, end);
    events_.text("parent_block_hash");
    write_parent(prompt, begin);
    events_.text("lora_name");
    prompt.lora.empty() ? events_.nil() : events_.text(prompt.lora);
    events_.text("extra_keys");
    relay ? static_cast<void>(events_.nil()) : write_keys(prompt, begin, end);
    events_.text("medium").text(tier == kHost ? "cpu" : "GPU");
    events_.text("block_size").unsigned_integer(shape_.size, width());
    if (relay) events_.text("cache_salt").text(prompt.salt);
  }

  bool has_image(const Prompt& prompt, std::size_t begin, std::size_t end) const {
    return std::any_of(prompt.blocks.begin() + static_cast<std::ptrdiff_t>(begin),
                       prompt.blocks.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](std::size_t at) { return !blocks_[at].image.empty(); });
  }
  void write_hash(std::uint64_t hash) {
    switch (below(3)) {
      case 0:
        events_.unsigned_integer(hash, width());
        return;
      case 1:
        events_.signed_integer(static_cast<std::int64_t>(hash), width());
        return;
      default:
        std::string digest(24, 'd');
        for (unsigned shift = 64; shift > 0; shift -= 8)
          digest += static_cast<char>(hash >> (shift - 8));
        events_.bytes(digest, width() / 2);
    }
  }
  void write_hashes(const std::vector<std::uint64_t>& hashes) {
    events_.array(hashes.size(), width());
    for (const std::uint64_t hash : hashes) write_hash(hash);
  }
  void write_hashes(const Prompt& prompt, std::size_t begin, std::size_t end) {
    std::vector<std::uint64_t> hashes;
    for (std::size_t i = begin; i < end; ++i) hashes.push_back(blocks_[prompt.blocks[i]].hash);
    write_hashes(hashes);
  }
  void write_parent(const Prompt& prompt, std::size_t begin) {
    if (begin == 0) {
      below(2) == 0 ? events_.nil() : events_.unsigned_integer(0);
    } else {
      write_hash(blocks_[prompt.blocks[begin - 1]].hash);
    }
  }
  void write_tokens(const Prompt& prompt, std::size_t begin, std::size_t end) {
    events_.array((end - begin) * shape_.size, width());
    for (std::size_t i = begin; i < end; ++i) {
      const Tokens& tokens = blocks_[prompt.blocks[i]].tokens;
      for (std::size_t j = 0; j < shape_.size; ++j) {
        if (shape_.bigram) events_.array(2).unsigned_integer(tokens[j]);
        events_.unsigned_integer(tokens[shape_.bigram ? j + 1 : j], width());
      }
    }
  }
  void write_keys(const Prompt& prompt, std::size_t begin, std::size_t end) {
    events_.array(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const Block& block = blocks_[prompt.blocks[i]];
      const bool salted = i == 0 && !prompt.salt.empty();
      const std::size_t keys =
          (prompt.lora.empty() ? 0U : 1U) + (block.image.empty() ? 0U : 1U) + (salted ? 1U : 0U);
      if (keys == 0 && below(2) == 0) {
        events_.nil();
        continue;
      }
      events_.array(keys);
      if (!prompt.lora.empty()) events_.text(prompt.lora);
      if (!block.image.empty()) events_.array(2).text(block.image).signed_integer(-4);
      if (salted) events_.text(prompt.salt);
    }
  }

  std::mt19937_64 random_;
  BlockShape shape_;
  std::vector<Block> blocks_;
  std::vector<Prompt> prompts_;
  MsgpackEncoder events_;
  std::size_t count_ = 0;
};

// Role. Looks prompts up as fast as it can while somebody else writes: whatever it finds is possible.
class Onlooker {
 public:
  Onlooker(const Index& index, std::vector<std::vector<SequenceHash>> prompts)
      : thread_([this, &index, all = std::move(prompts)](const std::stop_token& stop) {
          std::vector<Match> matches;
          for (std::size_t next = 0; !stop.stop_requested(); next = (next + 1) % all.size()) {
            index.match(all[next], matches);
            for (const Match& match : matches) {
              const bool nested = std::ranges::is_sorted(match.blocks);
              if (!nested || match.blocks.back() > all[next].size()) impossible_ = true;
            }
            if (matches.size() > 1) impossible_ = true;
          }
        }) {}
  bool impossible() {
    thread_.request_stop();
    thread_.join();
    return impossible_;
  }

 private:
  std::atomic<bool> impossible_ = false;
  std::jthread thread_;
};

class ApplierRandomTest : public test::FeedFixture {
 protected:
  RandomEngine::Holding holding() const {
    RandomEngine::Holding held;
    index_.visit(slot_, [&](const Index::Held& block) {
      held[block.engine] = {block.sequence, block.tiers};
    });
    return held;
  }
  void run(unsigned seed, BlockShape shape, int batches) {
    RandomEngine engine(seed, shape);
    feed().forget();
    Onlooker onlooker(index_, engine.prompts());
    for (int i = 0; i < batches; ++i) {
      ASSERT_TRUE(apply(engine.batch()));
      ASSERT_EQ(holding(), engine.holding()) << "seed " << seed << ", batch " << i;
      for (int j = 0; j < 3; ++j) {
        const auto [hashes, expected] = engine.some_prompt();
        ASSERT_EQ(overlap_of(hashes), expected) << "seed " << seed << ", batch " << i;
      }
    }
    EXPECT_FALSE(onlooker.impossible()) << "seed " << seed;
    EXPECT_EQ(skipped(Skipped::AmbiguousSalt), 0U);
    EXPECT_EQ(skipped(Skipped::UnknownParent), 0U);
  }
};

TEST_F(ApplierRandomTest, TheIndexHoldsWhatTheEngineHolds) {
  for (unsigned seed = 1; seed <= 12; ++seed) run(seed, {.size = 4}, 150);
  EXPECT_GT(feed().tally().stored, 1000U);
  EXPECT_GT(feed().tally().removed, 1000U);
}

TEST_F(ApplierRandomTest, SoItDoesWithPagesOfOneToken) {
  for (unsigned seed = 21; seed <= 24; ++seed) run(seed, {.size = 1}, 150);
}

TEST_F(ApplierRandomTest, SoItDoesWithEagle) {
  for (unsigned seed = 31; seed <= 36; ++seed) run(seed, {.size = 4, .bigram = true}, 150);
}

}  // namespace
}  // namespace baton::kvcache
